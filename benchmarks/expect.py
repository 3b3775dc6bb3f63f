"""What users can expect, from what was measured: `python -m benchmarks.expect` writes `expect.md`.

Nothing is measured here. The rows are those of `applied.json`, of the models with differential equations in
`posteriors.json`, and, for events given as functions, of `jumps.json`.
"""

from pathlib import Path

from ._markdown import figure, known, table
from ._pinned import ROOT

APPLIED = {  # what the targets of the applied panel are, in the order of the table
    "normal hierarchy, centred": "hierarchy of 50 groups, centred",
    "normal hierarchy": "hierarchy of 50 groups, non-centred",
    "varying slopes": "varying intercepts and slopes, 85 groups",
    "logistic hierarchy": "hierarchy of 300 groups, counts",
    "item response": "item response, 120 x 100",
    "logistic, 20": "logistic regression, 20 covariates",
    "German credit": "logistic regression, German credit",
    "Sonar": "logistic regression, Sonar",
    "logistic, 200": "logistic regression, 200 covariates",
    "horseshoe": "horseshoe regression",
    "Gaussian process": "Gaussian process, counts",
    "network": "neural network",
}
EQUATIONS = {  # posteriors of posteriordb
    "hudson_lynx_hare-lotka_volterra": "ODE, lynxes and hares",
    "one_comp_mm_elim_abs-one_comp_mm_elim_abs": "ODE, pharmacokinetics",
}
DRAWS = (100, 1000)
HEAD = ("model", "d", "draws", "means", "sds", "events, as functions", "events, as arrays", "CPU s")


def expect(folder: Path) -> str:
    """All of `expect.md`, from the files of results in a folder."""
    panel = {row["target"]: row for row in known(folder, "applied")}
    events = {(row["part"], row["target"]): row["now"] for row in known(folder, "jumps")}
    rows = [_applied(panel[name], label, events) for name, label in APPLIED.items()]
    posteriors = {(row["posterior"], row["n"]): row for row in known(folder, "posteriors")}
    for name, label in EQUATIONS.items():
        rows += [_equation(posteriors[name, n], label, events) for n in DRAWS]
    return f"{table(HEAD, rows)}\n"


def _applied(row: dict, label: str, events: dict) -> list[str]:
    gain = row["trained"]["gain"]
    jump = events.get(("events", row["target"]), {}).get("predictions")
    return [
        *(label, str(row["dim"]), "4 x 250"),
        *(_shown(gain.get(kind)) for kind in ("means", "sds")),
        *(_shown(jump), _shown(gain.get("probabilities")), f"{row['seconds']:.1f}"),
    ]


def _equation(row: dict, label: str, events: dict) -> list[str]:
    measured = events["posteriors", row["posterior"]] if row["n"] == 1000 else {}
    gain = row["gain"]
    return [
        *(label, str(row["dim"]), f"{row['n']:,}"),
        *(_shown(gain["means"]), _shown(gain["squares"])),
        *(_shown(measured.get("probabilities")), "-", f"{row['seconds']:.1f}"),
    ]


def _shown(gain: float | None) -> str:
    return "-" if gain is None else figure(gain)


def main() -> None:
    """Write the table."""
    folder = ROOT / "docs" / "benchmarks"
    (folder / "expect.md").write_text(expect(folder), encoding="utf-8")


if __name__ == "__main__":
    main()
