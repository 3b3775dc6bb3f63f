"""Do the lower bounds keep to SPEC 0? `python requirements/spec0.py` asks PyPI, and prints a table.

SPEC 0 (https://scientific-python.org/specs/spec-0000/) lets a project drop a Python version three years, and
a minor version of a core package two years after its release. A later bound has a reason in `REASONS`.
"""

import json
import re
import tomllib
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path

CORE = (
    "matplotlib",
    "numpy",
    "scikit-learn",
    "scipy",
    "xarray",
    "zarr",
)  # of SPEC 0, that are used here
REASONS = {
    "xarray": "older ones were not tried with the adapters",
    "zarr": "before 3.1.3 shards fail their own checksums",
}


def bounds() -> dict[str, str]:
    """The lower bound of each requirement of pyproject.toml."""
    path = Path(__file__).parents[1] / "pyproject.toml"
    project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    several = [project["dependencies"], *project["optional-dependencies"].values()]
    found = (
        re.match(r"([\w-]+)(?:\[.*\])?>=([\d.]+)", one) for all_of in several for one in all_of
    )
    return {match[1]: match[2] for match in found if match}


def minor(version: str) -> tuple[int, ...]:
    """The first two numbers of a version."""
    return tuple(int(part) for part in version.split(".")[:2])


def oldest(package: str, since: datetime) -> tuple[tuple[int, ...], datetime]:
    """The oldest minor version that was released later, and its date."""
    with urllib.request.urlopen(f"https://pypi.org/pypi/{package}/json") as answer:
        releases = json.load(answer)["releases"]
    dates: dict[tuple[int, ...], datetime] = {}
    for version, files in releases.items():
        if files and re.fullmatch(r"[\d.]+", version) and "." in version:
            date = min(datetime.fromisoformat(file["upload_time_iso_8601"]) for file in files)
            dates[minor(version)] = min(date, dates.get(minor(version), date))
    return min((key, date) for key, date in dates.items() if date >= since)


def main() -> None:
    """Print a row for each core package, and fail if a bound is too late without a reason."""
    since, wrong = datetime.now(UTC) - timedelta(days=730), []
    print(
        "| package | lower bound | oldest that SPEC 0 asks for | released | |\n|---|---|---|---|---|"
    )
    for package in CORE:
        bound = bounds()[package]
        version, date = oldest(package, since)
        late = minor(bound) > version or bound.count(".") > 1
        why = REASONS.get(package, "") if late else ""
        print(f"| {package} | {bound} | {'.'.join(map(str, version))} | {date:%Y-%m-%d} | {why} |")
        if late and not why:
            wrong.append(f"{package}>={bound} is too late: lower it, or give a reason in REASONS")
    if wrong:
        raise SystemExit("\n".join(wrong))


if __name__ == "__main__":
    main()
