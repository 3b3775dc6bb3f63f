"""Whether training on the warm-up of the same chains biases an estimate: 2,000 replicates.

`python -m benchmarks.posteriors.chains.bias` estimates from 4 x 25 draws after 4 x 100 warm-up draws of the
same chains, with `steinax.data.with_warmup`: on a banana driven by AR(1) chains, whose expectations are
known, and on the eight schools sampled by NUTS, where the mean of all estimates is compared with that of all
plain averages. `leak` is the banana with neighbours of the draws among the training points: it has to fail.
It writes `bias.json` and `bias.md`.
"""

import argparse
import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

import steinax as sx
from steinax.data import with_warmup

from ..._markdown import table
from ..._pinned import ROOT
from ..._provenance import provenance
from .._data import folder
from ._estimates import Constants, labels, part
from ._registry import MODELS
from ._run import CHAINS, sampled
from .warmup import finite, sample_of

DRAWS, WARMUP, KEY = 25, 100, 7
MODEL = "eight_schools_noncentered"
BANANA = np.array([0.0, 3.0, 3.0])
KERNEL = sx.Polynomial(1) + sx.KernelTranslates(sx.kernels.SquaredExponential(2.0))
INTEGRANDS = {"y": lambda x: x[1], "y^2": lambda x: x[1] ** 2, "x^4": lambda x: x[0] ** 4}


def banana(seed: int, rho: float) -> sx.Sample:
    """Four AR(1) chains bent into a banana: the warm-up, then the draws."""
    z = np.random.default_rng(seed).normal(size=(CHAINS, WARMUP + DRAWS, 2))
    for i in range(1, z.shape[1]):
        z[:, i] = rho * z[:, i - 1] + np.sqrt(1 - rho**2) * z[:, i]
    x = np.stack([z[..., 0], z[..., 1] + z[..., 0] ** 2 - 1], axis=-1)
    score = np.stack([-z[..., 0] + 2 * z[..., 1] * z[..., 0], -z[..., 1]], axis=-1)
    return sx.Sample(x, score)


def of_banana(
    rho: float, kind: str = "trained", folds: int | None = None
) -> Callable[[int], np.ndarray]:
    """The errors of one replicate, by its number: with the warm-up, "alone", or with a "leak"."""

    def errors(seed: int) -> np.ndarray:
        whole = banana(seed, rho)
        draws = whole[:, WARMUP:]
        sample = draws if kind == "alone" else with_warmup(draws, whole[:, :WARMUP])
        if kind == "leak":
            x, score = (np.roll(array, draws.size // 2, axis=0) for array in (draws.x, draws.score))
            sample = draws.with_training(sx.Sample(x + 1e-9, score))
        found = sx.estimate(INTEGRANDS, sample, KERNEL, split=sx.CrossFit(folds), audit="off")
        return found.value - BANANA

    return errors


def of_model(replicates: int) -> tuple[Callable[[int], np.ndarray], list[str]]:
    """The differences between estimates and plain averages of a model's replicates."""
    early, late = sampled(
        MODELS[MODEL], folder(), KEY, CHAINS * replicates, DRAWS, 2 * WARMUP, keep=True
    )
    assert early is not None
    constants = Constants(late.values.mean(axis=(0, 1)), late.values.std(axis=(0, 1)))

    def differences(i: int) -> np.ndarray:
        rows = slice(CHAINS * i, CHAINS * (i + 1))
        sample = sample_of(part(late, rows, slice(None)), constants)
        warmup = sample_of(finite(part(early, rows, slice(None))), constants)
        family = sx.Polynomial(2)
        found = sx.estimate(labels(late), with_warmup(sample, warmup), family, audit="off")
        return np.asarray(found.value - found.plain_value)

    return differences, labels(late)


def row(name: str, names: list[str], errors: np.ndarray) -> dict:
    """The mean error over its standard error, of each integrand."""
    z = errors.mean(axis=0) / (errors.std(axis=0) / np.sqrt(len(errors)))
    print(name, "mean error in standard errors:", np.round(z, 2).tolist(), flush=True)
    rmse = np.sqrt((errors**2).mean(axis=0))
    return {
        "case": name,
        "replicates": len(errors),
        "integrands": names,
        "z": z.tolist(),
        "mean": errors.mean(axis=0).tolist(),
        "rmse": rmse.tolist(),
    }


HEAD = """# Bias from training points

Whether training on the warm-up of the same chains biases an estimate: the mean error of many replicates of
4 x {draws} draws, in its own standard errors, for the integrand where it is largest, and relative to the root
mean squared error. The banana is driven by AR(1) chains with correlation rho; its warm-up has {warmup} draws
a chain.
"""
METHOD = """
Between training points and draws there is the default gap. *Alone* has no training points. *Whole chains* is
`split=CrossFit(4)`: each chain is a fold. By default a fold is half a chain here, 12 or 13 draws. At rho 0.9
the autocorrelation time is 19, so the draws next to a fold resemble those in it. That bias is there without
training points too, and gone if folds are whole chains. *Leak* has copies of the draws of other chains among
the training points: it has to show. For {model} the mean of all estimates is compared with that of
all plain averages.

Command: `{command}`, {date}, {cpu}, source {source}.
"""


def page(rows: list[dict], about: dict) -> str:
    """All of `bias.md`."""
    lines = []
    for each in rows:
        worst = int(np.argmax(np.abs(each["z"])))
        share = each["mean"][worst] / each["rmse"][worst]
        z = f"{each['z'][worst]:.1f} ({each['integrands'][worst]})"
        lines.append([each["case"], f"{each['replicates']:,}", z, f"{share:.1%}"])
    columns = ("case", "replicates", "mean error, standard errors", "of the rms error")
    head = HEAD.format(draws=DRAWS, warmup=WARMUP)
    return "\n".join([head, table(columns, lines), METHOD.format(model=MODEL, **about)])


def main() -> None:
    """Run all cases, and write what was found."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.posteriors.chains.bias", description=__doc__
    )
    parser.add_argument("--replicates", type=int, default=2000)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "benchmarks")
    given = parser.parse_args()
    command = shlex.join(["python", "-m", "benchmarks.posteriors.chains.bias", *sys.argv[1:]])
    cases = {f"banana, rho {rho:g}": of_banana(rho) for rho in (0.0, 0.5, 0.9)} | {
        "banana, rho 0.9, alone": of_banana(0.9, "alone"),
        "banana, rho 0.9, whole chains": of_banana(0.9, folds=CHAINS),
        "leak": of_banana(0.0, "leak"),
    }
    rows = []
    for name, errors in cases.items():
        count = min(given.replicates, 200) if name == "leak" else given.replicates
        found = np.array([errors(seed) for seed in range(count)])
        rows.append(row(name, list(INTEGRANDS), found))
    differences, names = of_model(given.replicates)
    found = np.array([differences(i) for i in range(given.replicates)])
    rows.append(row(MODEL, names, found))
    given.out.mkdir(parents=True, exist_ok=True)
    about = {"command": command, **provenance()}
    text = json.dumps({**about, "rows": rows}, indent=1) + "\n"
    (given.out / "bias.json").write_text(text, encoding="utf-8")
    (given.out / "bias.md").write_text(page(rows, about), encoding="utf-8")


if __name__ == "__main__":
    main()
