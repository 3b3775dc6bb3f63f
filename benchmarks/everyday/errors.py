"""The reported error of every mean, and the true one, against the number of draws."""

from pathlib import Path

import numpy as np

import steinax as sx

from .._pictures import pyplot
from ._sampling import CHAINS, LONGEST, RUNS, cached, cut
from .models import MODELS

LENGTHS = (50, 100, 250, 500, 750, 760, 1000, 2000, LONGEST)


def measure(
    cache: Path,
    only: str | None = None,
    runs: int = RUNS,
    lengths: tuple[int, ...] = LENGTHS,
) -> list[dict]:
    """A row for each model and length, of means over parameters (geometric) and runs.

    Errors are in units of the posterior standard deviation. The true one is the distance to the mean of the
    other runs at the longest length, less what is expected of that mean's own error.
    """
    rows = []
    for name in [only] if only else MODELS:
        chains = cached(name, cache)
        found = {length: [_means(chains, run, length) for run in range(runs)] for length in lengths}
        rows += [_row(name, length, found[length], found[lengths[-1]]) for length in lengths]
    return [row | {"to the one before": _ratio(rows, i)} for i, row in enumerate(rows)]


def _means(chains: dict[str, np.ndarray], run: int, length: int) -> dict[str, np.ndarray]:
    """Values, errors and plain errors of all parameters, over their standard deviations."""
    values, sample = cut(chains, run, length)
    sd = chains["values"].std(axis=(0, 1, 2))
    made = sx.estimate({"f": values / sd}, sample, audit="off")
    return {"value": made.value, "mcse": made.mcse, "plain_mcse": made.plain_mcse}


def _row(name: str, length: int, found: list[dict], longest: list[dict]) -> dict:
    def each(rows: list[dict], field: str) -> np.ndarray:
        return np.stack([row[field] for row in rows])

    best, error = each(longest, "value"), each(longest, "mcse")
    others = [np.arange(len(longest)) != run for run in range(len(longest))]
    truth = np.stack([best[some].mean(axis=0) for some in others])
    unsure = np.stack([(error[some] ** 2).sum(axis=0) / some.sum() ** 2 for some in others])
    away = (each(found, "value") - truth) ** 2
    mcse, plain = each(found, "mcse"), each(found, "plain_mcse")
    z = away / (mcse**2 + unsure)
    return {
        "model": name,
        "d": MODELS[name].dim,
        "draws": f"{CHAINS} x {length}",
        "n": CHAINS * length,
        "plain error": _typical(plain),
        "reported error": _typical(mcse),
        "true error": _typical(np.sqrt((away * mcse**2 / (mcse**2 + unsure)).mean(axis=0))),
        "chi-squared": float(z.mean()),
        "worth": _typical(plain / mcse) ** 2,
    }


def _typical(numbers: np.ndarray) -> float:
    return float(np.exp(np.log(numbers).mean()))


def _ratio(rows: list[dict], i: int) -> float | None:
    if not i or rows[i - 1]["model"] != rows[i]["model"]:
        return None
    return rows[i]["reported error"] / rows[i - 1]["reported error"]


def draw(rows: list[dict], folder: Path) -> None:
    """Write `everyday_errors.png`: a panel for each model."""
    names = list(dict.fromkeys(row["model"] for row in rows))
    figure, axes = pyplot().subplots(2, 4, figsize=(11, 5.2), layout="constrained")
    for ax, name in zip(axes.ravel(), names, strict=False):
        own = [row for row in rows if row["model"] == name]
        n = [row["n"] for row in own]
        ax.plot(n, [row["plain error"] for row in own], color="tab:orange", label="plain")
        ax.plot(n, [row["reported error"] for row in own], color="tab:blue", label="reported")
        true = [row["true error"] for row in own]
        ax.plot(n, true, "o", color="tab:blue", mfc="none", markersize=5, label="true")
        ax.set(xscale="log", yscale="log", title=f"{name}, d = {own[0]['d']}")
        ax.grid(alpha=0.3)
    axes[0, 0].legend()
    figure.supxlabel("draws")
    figure.supylabel("error of a mean, in posterior standard deviations")
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "everyday_errors.png", dpi=130)
