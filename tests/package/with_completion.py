"""The extra `completion`: a script that bash can read."""


def main() -> None:
    import subprocess
    import sys

    import expect

    expect.installed()
    command = [sys.executable, "-m", "steinax", "completion", "bash"]
    script = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "summary" in script
    subprocess.run(["bash", "-n"], input=script, check=True, text=True)


if __name__ == "__main__":
    main()
