"""The extra `stan`: what CmdStan wrote. To compile and sample takes a minute: tests/adapters does it."""


def main() -> None:
    import os
    from pathlib import Path

    import cmdstanpy
    import expect
    import stan

    import steinax as sx

    expect.installed()
    assert stan.build and cmdstanpy.CmdStanMCMC
    folder = os.environ.get("STEINAX_DATA")
    if folder is None:
        print("STEINAX_DATA is not set: no CmdStan output was read")
        return
    sample = sx.from_cmdstan(Path(folder, "cmdstan_eight_schools"))
    estimate = sx.estimate("mu", sample, sx.Polynomial(2))
    assert estimate.mcse[0] < estimate.plain_mcse[0], estimate


if __name__ == "__main__":
    main()
