"""The page of the LIDAR experiment: a picture, two tables and the claims."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._markdown import table
from ._experiment import Claim, Report, Row
from ._lidar_model import INTEGRANDS
from ._lidar_picture import draw
from ._methods import AUTOMATIC, NETWORK, PLAIN
from ._statistics import mae, seconds, tuning, where

OF_THE_PAPER = ("polynomial, SGD", "kernel, SGD", NETWORK)  # what its figure shows
FAMILIES = ("polynomial, exact", "kernel, exact", "polynomial + kernel, exact")
ALLOWED = 4.0  # standard errors, of a mean
LEAST = 3.0  # times that the automatic estimate is better than plain draws
INTRODUCTION = """
The posterior of the two hyper-parameters of a Gaussian process, given the 221 LIDAR observations:
moments of phi, the log likelihood, and the likelihood over its largest value. The Cauchy priors are on
x = (2 phi1, 2 phi2 - log 2), as in the published code and chains of Chen et al., whom the paper thanks
for its draws, not on phi as the paper writes; the last table has the exact moments under both priors.
Draws are NumPyro's sample-adaptive Metropolis, thinned, one chain cut into a stretch for each
repetition; the first m draws of a stretch are both fitted to and averaged. The network, which is slow,
was run at the least and the largest m only. Errors are mean absolute errors, the truth is quadrature.
"""


def report(rows: Sequence[Row], folder: Path, methods: Sequence[str]) -> Report:
    """The picture, the errors at the most draws, how the model was checked, and the claims."""
    methods = [method for method in methods if where(rows, method=method)]
    draw(rows, methods, folder / "lidar_errors.png")
    most = max(row.cell["m"] for row in rows)
    largest = where(rows, m=most)
    checks = next(row.extra for row in largest if "quadrature" in row.extra)
    parts = [
        INTRODUCTION.strip(),
        "![Mean absolute error against the number of draws](lidar_errors.png)",
        f"**Mean absolute errors at m = {most}**, with standard errors",
        _errors_table(largest, methods),
        "**The exact expectations, and the means of whole chains**, less the exact ones under the "
        "priors on x, in standard errors",
        _checks_table(checks),
    ]
    claims = (*_claims(largest, methods, most), *_checked(checks))
    return Report("\n\n".join(parts), claims)


def _errors_table(rows: Sequence[Row], methods: Sequence[str]) -> str:
    body = []
    for method in methods:
        mine = where(rows, method=method)
        errors = [mae(mine, i) for i in range(len(INTEGRANDS))]
        body.append(
            [
                method,
                *(f"{value:.1e} ± {error:.0e}" for value, error in errors),
                f"{_over(rows, method, PLAIN):.3f}",
                f"{seconds(mine):.1f}",
                f"{tuning(mine):.0f}",
            ]
        )
    return table(("method", *INTEGRANDS, "over plain", "CPU s", "tuning, CPU s"), body)


def _checks_table(checks: dict[str, Any]) -> str:
    ours = _standard_errors(checks["ours"], checks["truth"])
    given = np.array([_standard_errors(one, checks["truth"]) for one in checks["given"]])
    body = []
    for i, name in enumerate(INTEGRANDS):
        there = i < given.shape[1]
        body.append(
            [
                name,
                f"{checks['truth'][i]:.6g}",
                f"{checks['papers_prior'][i]:.6g}",
                f"{ours[i]:+.1f}",
                f"{checks['ours']['ess'][i]:,.0f}",
                f"{given[:, i].min():+.1f} to {given[:, i].max():+.1f}" if there else "",
            ]
        )
    head = ("integrand", "exact, priors on x", "exact, priors on phi", "our chain")
    return table((*head, "its effective size", "the seven given chains"), body)


def _standard_errors(found: dict[str, list[float]], truth: Sequence[float]) -> np.ndarray:
    """Means less the truth, of as many integrands as there are means."""
    mean = np.array(found["mean"])
    return (mean - np.array(truth)[: len(mean)]) / np.array(found["mcse"])


def _ratios(rows: Sequence[Row], method: str, other: str) -> np.ndarray:
    """The error of one method over that of another, of each integrand."""
    mine, theirs = where(rows, method=method), where(rows, method=other)
    return np.array([mae(mine, i)[0] / mae(theirs, i)[0] for i in range(len(INTEGRANDS))])


def _over(rows: Sequence[Row], method: str, other: str) -> float:
    """The geometric mean of these ratios over integrands."""
    return float(np.exp(np.log(_ratios(rows, method, other)).mean()))


def _claims(rows: Sequence[Row], methods: Sequence[str], most: int) -> Iterator[Claim]:
    trained = [method for method in methods if method not in {PLAIN, AUTOMATIC}]
    gains = {method: _over(rows, method, PLAIN) for method in methods}
    errors = np.array(
        [[mae(where(rows, method=f), i)[0] for i in range(len(INTEGRANDS))] for f in FAMILIES]
    )
    spread = errors.max(axis=0) / errors.min(axis=0)
    best = [FAMILIES[i].removesuffix(", exact") for i in errors.argmin(axis=0)]
    said = (
        f"{n}: {s:.1f} times, best {b}" for n, s, b in zip(INTEGRANDS, spread, best, strict=True)
    )
    yield Claim(
        "the paper: performance varies significantly with the Stein class (worst over best of "
        f"three families, solved exactly, m = {most}: at least 2)",
        bool(spread.min() >= 2),
        "; ".join(said),
    )
    yield Claim(
        "every control variate beats plain Monte Carlo (geometric mean over integrands)",
        max(gains[method] for method in trained) < 1,
        ", ".join(f"{method} {gains[method]:.3f}" for method in trained),
    )
    in_figure = [method for method in OF_THE_PAPER if method in gains]
    for group, others in (("in the paper's figure", in_figure), ("here", trained)):
        rival = min(others, key=lambda method: gains[method])
        ratio = gains[AUTOMATIC] / gains[rival]
        each = _ratios(rows, AUTOMATIC, rival)
        yield Claim(
            f"the automatic estimate's error is at most that of the best method {group}",
            ratio <= 1,
            f"{ratio:.2f} times that of {rival} ({each.min():.2f} to {each.max():.2f} by integrand)",
        )
    ratios = 1 / _ratios(rows, AUTOMATIC, PLAIN)
    yield Claim(
        f"the automatic estimate is at least {LEAST:g} times better than plain Monte Carlo "
        "(geometric mean over integrands)",
        gains[AUTOMATIC] <= 1 / LEAST,
        f"{1 / gains[AUTOMATIC]:.1f} times ({ratios.min():.1f} to {ratios.max():.1f} by integrand)",
        at_any_size=True,
    )
    for solver in ("SGD", "Point-SAGA"):
        each = _ratios(rows, f"kernel, {solver}", "kernel, exact")
        yield Claim(
            f"kernels: {solver} in 10 epochs comes within 10% of the exact solve",
            bool(each.max() <= 1.1),
            f"error {each.min():.2f} to {each.max():.2f} times the exact solve's",
        )


def _checked(checks: dict[str, Any]) -> Iterator[Claim]:
    yield Claim(
        "our scores are those of the file, and our quadrature gives its moments",
        checks["score"] < 1e-8 and checks["quadrature"] < 1e-5,
        f"largest differences {checks['score']:.0e} and {checks['quadrature']:.0e}",
        at_any_size=True,
    )
    ours = np.abs(_standard_errors(checks["ours"], checks["truth"])).max()
    given = max(np.abs(_standard_errors(o, checks["truth"])).max() for o in checks["given"])
    yield Claim(
        "the audit passes, and the means of our chain and of the seven given ones are exact within "
        f"{ALLOWED:g} standard errors",
        bool(checks["audit"] and max(ours, given) < ALLOWED),
        f"{checks['audit_text'].splitlines()[0]}; at most {ours:.1f} and {given:.1f} standard errors",
        at_any_size=True,
    )
