"""Probabilities and quantiles: what functions that jump gain, with control variates that jump and without.

`python -m benchmarks.posteriors.jumps` measures four parts, or some with `--part`, and writes `jumps.json`
and `jumps.md`: `posteriors`, the 22 of posteriordb, ten blocks of 1,000 reference draws each; `chains`, nine
models by NUTS, 20 times 4 x 250 draws; `events`, contrasts and predictions of the applied panel, by NUTS too,
ten times 4 x 250 draws; `gaussian`, 200 times 4 x 100 draws in five dimensions. *Before* are the same
indicators with control variates that have no kinks.
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from scipy.stats import norm

import steinax as sx

from .._command import cache_folder
from .._markdown import about, figure, known, origin, table, write
from .._pinned import ROOT, run
from ._data import REFERENCE, TOTAL, folder, load
from ._score import NORMAL_95, geometric_mean

LEVELS = (0.05, 0.95)  # of quantiles
FAMILY = sx.Polynomial(2)  # for what is left of these
THRESHOLDS = (0.0, 1.0, 2.0)  # of the Gaussian
SAMPLES = {"chains": 20, "events": 10, "gaussian": 200}
type Arrays = dict[str, np.ndarray]  # by kind, estimates (k,); stacked, (sample, k)


def posteriors(name: str, cache: Path) -> dict:
    """The row of one posterior."""
    posterior = load(name)
    medians = np.median(posterior.u, axis=0)
    rows = (slice(start, start + REFERENCE) for start in range(0, TOTAL, REFERENCE))
    found = [_parameters(sx.Sample(posterior.u[r], posterior.score[r]), medians) for r in rows]
    return _row(found, _halves(len(medians)))


def chains(name: str, cache: Path) -> dict:
    """The row of one model by NUTS."""
    from .chains._estimates import replicate
    from .chains._registry import MODELS
    from .chains._run import cached

    count = SAMPLES["chains"]
    every = cached(MODELS[name], folder(), cache / "chains", "replicates", count)
    medians = np.median(every.draws, axis=(0, 1))
    each = (replicate(every, i) for i in range(count))
    found = [_parameters(sx.Sample(one.draws, one.scores), medians) for one in each]
    return _row(found, _halves(len(medians)))


def events(name: str, cache: Path) -> dict:
    """The row of one target of the applied panel: contrasts above 0, predictions above their medians."""
    from ..applied._chains import names_of, replicates
    from ..applied._models import TARGETS

    target = TARGETS[name]()
    _, unravel = ravel_pytree(jax.tree.map(jnp.asarray, target.start))

    def quantities(x: Any) -> Any:
        return target.quantities(unravel(x))

    every = replicates(name, target, SAMPLES["events"], cache / "applied")
    together = np.concatenate([one.draws.reshape(-1, one.draws.shape[-1]) for one in every])
    medians = np.median(jax.vmap(quantities)(together)["predictions"], axis=0)
    f = {
        "contrasts": lambda x: quantities(x)["contrasts"],
        "predictions": lambda x: quantities(x)["predictions"] - medians,
    }
    found = []
    for one in every:
        sample = sx.Sample(one.draws, one.scores, names_of(target))
        values = {key: np.asarray(jax.vmap(g)(sample.x)) for key, g in f.items()}
        above = {key: (v > 0).reshape(*one.draws.shape[:2], -1) for key, v in values.items()}
        now = sx.estimate(f, sample, threshold=0.0, audit="off")
        found.append(_arrays(sx.estimate(above, sample, audit="off"), now))
    return _row(found, {"contrasts": slice(0, 1), "predictions": slice(1, None)})


def gaussian(name: str, cache: Path) -> dict:
    """The row of a standard Gaussian in five dimensions: probabilities of its first coordinate."""
    found = []
    for seed in range(SAMPLES["gaussian"]):
        x = np.random.default_rng(seed).normal(size=(4, 100, 5))
        sample, thresholds = sx.Sample(x, -x), np.array(THRESHOLDS)
        above = {"p": x[..., :1] > thresholds}
        now = sx.estimate({"p": lambda x: x[0] > np.array(THRESHOLDS)}, sample, audit="off")
        found.append(_arrays(sx.estimate(above, sample, audit="off"), now))
    kinds = {f"P(x > {t:g})": slice(i, i + 1) for i, t in enumerate(THRESHOLDS)}
    return _row(found, kinds, norm.sf(THRESHOLDS))


PARTS: dict[str, Callable[[str, Path], dict]] = {
    "posteriors": posteriors,
    "chains": chains,
    "events": events,
    "gaussian": gaussian,
}


def measure(part: str, name: str, cache: str) -> list[dict]:
    """The row of one target."""
    return [{"part": part, "target": name} | PARTS[part](name, Path(cache))]


def _halves(dim: int) -> dict[str, slice]:
    return {"probabilities": slice(0, dim), "quantiles": slice(dim, None)}


def _arrays(before: sx.Estimate, now: sx.Estimate) -> Arrays:
    """The figures of estimates without and with kinks."""
    return {
        "before": before.value,
        "before_mcse": before.mcse,
        "now": now.value,
        "now_mcse": now.mcse,
        "plain": now.plain_value,
    }


def _parameters(sample: sx.Sample, medians: np.ndarray) -> Arrays:
    """Estimates of the probabilities that parameters exceed their medians, and then of their quantiles."""
    probabilities = _arrays(
        sx.estimate({"p": sample.draws > medians}, sample, audit="off"),
        sx.estimate({"p": lambda x: x > medians}, sample, audit="off"),
    )
    quantiles = _quantiles(sample)
    return {kind: np.concatenate([probabilities[kind], quantiles[kind]]) for kind in quantiles}


def _quantiles(sample: sx.Sample) -> Arrays:
    """Quantiles of parameters by `summary`; before, by weights, and plain ones where their error is less."""
    # weights, even if they are all equal, keep integrands as they are
    logs = np.zeros((sample.chains, sample.length))
    weighted = sx.Sample(sample.draws, sample.scores, log_weights=logs)
    before = sx.weigh(weighted, FAMILY, audit="off").quantile("x", LEVELS)
    helps = before.mcse < before.plain_mcse
    now = sx.summary(
        sample, family=FAMILY, ci_prob=0.9, ci_kind="eti", round_to="none", audit="off"
    )

    def ends(prefix: str) -> np.ndarray:
        return now[[f"{prefix}eti90_lb", f"{prefix}eti90_ub"]].to_numpy(float).ravel()

    return {
        "before": np.where(helps, before.value, before.plain_value),
        "before_mcse": np.where(helps, before.mcse, before.plain_mcse),
        "now": ends(""),
        "now_mcse": ends("mcse_"),
        "plain": ends("plain_"),
    }


def _row(found: Sequence[Arrays], kinds: dict[str, slice], truth: np.ndarray | None = None) -> dict:
    """Gains by kind, the least of any integrand, calibration and coverage, before and now."""
    arrays = {key: np.stack([one[key] for one in found]) for key in found[0]}
    others = len(found) - 1
    reference, error = truth, np.zeros(arrays["now"].shape[1])
    if reference is None:  # the average of the estimates with kinks from the other samples
        reference = (arrays["now"].sum(axis=0) - arrays["now"]) / others
        error = arrays["now_mcse"].mean(axis=0) / np.sqrt(others)
    plain, row = np.mean((arrays["plain"] - reference) ** 2, axis=0), {"samples": len(found)}
    for by in ("before", "now"):
        error_squared = np.mean((arrays[by] - reference) ** 2, axis=0)
        gain = np.where(plain > 0, plain, np.nan) / np.where(plain > 0, error_squared, 1.0)
        z = (arrays[by] - reference) / np.hypot(arrays[f"{by}_mcse"], error)
        row[by] = {kind: geometric_mean(gain[at]) for kind, at in kinds.items()} | {
            "least": float(np.nanmin(gain)),
            "calibration": float(np.sqrt(np.nanmean(z**2))),
            "held": float(np.nanmean(np.abs(z[~np.isnan(z)]) < NORMAL_95)),
            "count": z.shape[1],
        }
    return row


HEAD = """# Probabilities and quantiles

What functions that jump gain with control variates that have kinks (*now*) and without (*before*). **Gain**
is the mean squared error of plain averages and quantiles over that of estimates, in the geometric mean over
integrands. *Least* is that of the integrand that gains least, a noisy figure: of two equally good estimates
one seems to gain 0.7 or less in three of ten cases, from ten samples with independent errors. *Calibration*
is the root mean square of errors over standard errors; above 1, error bars are too short. *Held* is the share
of 95% intervals that hold the truth.

"""
METHOD = """
The truth is known for the Gaussian. Elsewhere the reference of a sample is the average of the estimates with
kinks from the other samples, and its error is counted. Each row says which source it was measured with. The
last run:

"""
TITLES = {
    "posteriors": """## 22 posteriors

The probability that each unconstrained parameter exceeds its median, by
`estimate(lambda x: x > medians, sample)`, and its 5% and 95% quantiles, by
`summary(sample, family=Polynomial(2), ci_prob=0.9, ci_kind="eti")`, which keeps plain quantiles where control
variates do not help; *before*, by `weigh` with the same family, and plain ones where these have the smaller
error: ten blocks of 1,000 reference draws of each of {count} posteriors of posteriordb.""",
    "chains": """## Real chains

The same, from {count} models of posteriordb in NumPyro, 20 times 4 chains of 250 draws by NUTS.""",
    "events": """## Contrasts and predictions

The probability that a contrast exceeds 0, and that predictions exceed their medians, by
`estimate(f, sample, threshold=0)`: {count} targets of [the applied panel](applied.md), ten times 4 chains of
250 draws by NUTS. In hierarchies that are not centred, and for the network, contrasts and predictions are
curved functions of the coordinates. A dash marks an event that holds on every draw.""",
    "gaussian": """## A Gaussian in five dimensions

200 times 4 x 100 independent draws. Control variates with kinks are exact for it: the remainder is the error
of tables, about 1e-8 and no Monte Carlo error, so that intervals hold too often.""",
}


def page(rows: list[dict], told: dict) -> str:
    """All of `jumps.md`."""
    parts = [HEAD]
    for part, title in TITLES.items():
        some = [row for row in rows if row["part"] == part]
        if some:
            summary = _summary(some) if len(some) > 1 else ""
            parts.append(f"{title.format(count=len(some))}\n\n{summary}{_table(some)}\n\n")
    return f"{''.join(parts)}{METHOD.lstrip()}{origin(told)}\n"


def _kinds(rows: Sequence[dict]) -> list[str]:
    return [key for key in rows[0]["now"] if key not in ("least", "calibration", "held", "count")]


def _summary(rows: Sequence[dict]) -> str:
    """Medians over targets, and the calibration of all errors together."""
    lines = []
    for kind in _kinds(rows):
        values = [np.array([row[by][kind] for row in rows]) for by in ("before", "now")]
        ratio = np.nanmedian(values[1] / values[0])
        lines.append([f"median gain, {kind}", *(figure(float(np.nanmedian(v))) for v in values)])
        lines[-1].append(figure(float(ratio)))
    least = [figure(np.nanmin([row[by]["least"] for row in rows])) for by in ("before", "now")]
    lines.append(["least gain of any integrand", *least, ""])
    for key, form in (("calibration", "{:.2f}"), ("held", "{:.1%}")):
        shown = []
        for by in ("before", "now"):
            weights = [row[by]["count"] * row["samples"] for row in rows]
            power = 2 if key == "calibration" else 1
            mean = np.average([row[by][key] ** power for row in rows], weights=weights)
            shown.append(form.format(mean ** (1 / power)))
        lines.append([f"{key}, all together", *shown, ""])
    return table(("", "before", "now", "median ratio"), lines) + "\n\n"


def _table(rows: Sequence[dict]) -> str:
    kinds = _kinds(rows)
    columns = ["target"]
    for kind in [*kinds, "least"]:
        columns += [f"{kind}, before", "now"]
    columns += ["calibration, before", "now", "held, before", "now", "source"]
    lines = []
    for row in rows:
        pair = [row["before"], row["now"]]
        gains = [each[kind] for kind in [*kinds, "least"] for each in pair]
        cells = ["-" if np.isnan(gain) else figure(gain) for gain in gains]
        cells += [f"{each['calibration']:.2f}" for each in pair]
        cells += [f"{each['held']:.1%}" for each in pair]
        lines.append([row["target"], *cells, row["source"][:7]])
    return table(columns, lines)


def targets(part: str) -> list[str]:
    """The names of the targets of a part."""
    if part == "posteriors":
        return sorted(path.name for path in folder().iterdir() if (path / "scores.npz").exists())
    if part == "chains":
        from .chains._registry import MODELS

        return list(MODELS)
    if part == "events":
        from ..applied._models import TARGETS

        return list(TARGETS)
    return ["N(0, 1) in 5 dimensions"]


def main() -> None:
    """Measure every target, each in a process of its own, and write all that is known."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.posteriors.jumps", description=__doc__
    )
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--only", nargs="+", metavar="NAME", help="some targets")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "benchmarks")
    parser.add_argument("--cache", type=Path, default=cache_folder("chains").parent)
    given = parser.parse_args()
    told = about("benchmarks.posteriors.jumps")
    for part in given.part:
        for name in targets(part):
            if given.only and name not in given.only:
                continue
            kept = (row for row in known(given.out, "jumps") if "part" in row)
            rows = {(row["part"], row["target"]): row for row in kept}
            if rows.get((part, name), {}).get("source") == told["source"]:
                continue
            (row,) = run(
                "posteriors.jumps", {"part": part, "name": name, "cache": str(given.cache)}
            )
            rows[part, name] = row | {"source": told["source"]}
            print(part, name, row["before"], row["now"], flush=True)
            ordered = [rows[p, n] for p in PARTS for n in targets(p) if (p, n) in rows]
            write(given.out, "jumps", page(ordered, told), told, ordered)


if __name__ == "__main__":
    main()
