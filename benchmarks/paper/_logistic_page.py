"""The pages of the two logistic regressions: a picture, a table, and claims."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from .._markdown import figure, table
from .._pictures import pyplot
from ._experiment import Claim, Report, Row
from ._logistic_study import EXACT, METHODS, STOCHASTIC
from ._methods import AUTOMATIC, NETWORK, PILOTS, PLAIN
from ._statistics import mae, seconds, tuning, where

LARGE = 1000  # from here on the ensemble is said to surpass networks
ENSEMBLES = tuple(method for method in (*EXACT, *STOCHASTIC) if " + " in method)
PAPERS = (*EXACT, *(one for one in STOCHASTIC if one.endswith("SGD")), NETWORK)
SIGNIFICANT, SURE = 2.0, 3.0  # standard errors of a ratio


def page(name: str, dim: int, rows: list[Row], folder: Path, tuned: str) -> Report:
    """A picture as the paper's, a table of all figures, and claims at the largest m up to 1000.

    Args:
        name: of the experiment.
        dim: the number of coefficients.
        rows: all that was measured.
        folder: for the picture.
        tuned: on which draws hyper-parameters are chosen.
    """
    sizes = sorted({row.cell["m"] for row in rows})
    m = max(size for size in sizes if size <= LARGE)
    _picture(rows, sizes, folder / f"{name}_errors.png")
    about, repetitions = rows[0].extra, len({row.repetition for row in rows})
    parts = [
        f"The posterior of a logistic regression with {dim} coefficients was sampled by NumPyro's NUTS; "
        f"ten predictive probabilities are estimated from {repetitions} disjoint subsets of m draws, in "
        "sample (m = n), with least squares and 25 epochs in batches of 8. The truth is the average over "
        "all draws of f - g, with control variates made for these integrands and cross-fitted; its "
        f"standard error is {about['truth_error']:.1e} on average, and the plain average of all draws "
        f"differs from it by {about['truth_shift']:.1e}. Hyper-parameters are chosen on two further "
        f"subsets, of {tuned}.",
        f"![mean absolute error and CPU time against m]({name}_errors.png)",
        _table(rows, sizes),
    ]
    return Report("\n\n".join(parts), tuple(_claims(rows, m)))


def _picture(rows: Sequence[Row], sizes: list[int], path: Path) -> None:
    plt = pyplot()
    canvas, (left, right) = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
    for i, method in enumerate(METHODS):
        there = [m for m in sizes if where(rows, m=m, method=method)]
        if not there:
            continue
        mine = [where(rows, m=m, method=method) for m in there]
        ours = method == AUTOMATIC
        style = {
            "color": plt.get_cmap("tab20")(i % 20) if not ours else "black",
            "linestyle": "--" if "SGD" in method else "-",
            "marker": "os^vD<>ph*XP"[i % 12],
            "linewidth": 2.5 if ours else 1.3,
        }
        error = np.array([mae(each) for each in mine])
        left.errorbar(there, error[:, 0], error[:, 1], label=method, **style)
        if method != PLAIN:
            right.plot(there, [seconds(each) for each in mine], **style)
    for axes, what in ((left, "mean absolute error"), (right, "CPU seconds, without tuning")):
        axes.set(xscale="log", yscale="log", xlabel="m", ylabel=what)
        axes.set_xticks(sizes, [str(m) for m in sizes])
        axes.xaxis.minorticks_off()
        axes.grid(alpha=0.3)
    canvas.legend(loc="outside right center", fontsize=8)
    canvas.savefig(path, dpi=150)
    plt.close(canvas)


def _table(rows: Sequence[Row], sizes: list[int]) -> str:
    body = []
    for m in sizes:
        plain = mae(where(rows, m=m, method=PLAIN))[0]
        for method in METHODS:
            mine = where(rows, m=m, method=method)
            if mine:
                value, error = mae(mine)
                used, tuned = seconds(mine), tuning(mine)
                body.append(
                    [
                        str(m),
                        method,
                        f"{value:.2e} ± {error:.0e}" if np.isfinite(error) else f"{value:.2e}",
                        str(len(mine)),
                        f"{value / plain:.2f}",
                        figure(used),
                        figure(tuned) if tuned else "",
                    ]
                )
    head = (
        *("m", "method", "mean absolute error", "repetitions", "over plain", "CPU s"),
        "tuning, CPU s",
    )
    return table(head, body)


def _ratio(ours: Sequence[Row], theirs: Sequence[Row]) -> tuple[float, float]:
    """The ratio of two mean absolute errors over the same repetitions, and its standard error.

    The error is missing, NaN, if there is only one.
    """
    theirs_by = {row.repetition: np.abs(row.error).mean() for row in theirs}
    pairs = [
        (np.abs(r.error).mean(), theirs_by[r.repetition]) for r in ours if r.repetition in theirs_by
    ]
    a, b = np.array(pairs).reshape(-1, 2).T
    if len(a) == 0:
        return float("nan"), float("nan")
    ratio = float(a.mean() / b.mean())
    if len(a) == 1:
        return ratio, float("nan")
    return ratio, float(np.std(a - ratio * b, ddof=1) / np.sqrt(len(a)) / b.mean())


def _claims(rows: Sequence[Row], m: int) -> list[Claim]:
    at = {one: where(rows, m=m, method=one) for one in METHODS if where(rows, m=m, method=one)}
    found = [_better_than_plain(at, m), _ours(at, m), *_cheaper(at, m)]
    if any(one in at for one in ENSEMBLES):
        found.append(_ensembles(at, m))
        found.append(_surpasses(at, m))
    found.append(_stochastic(at, m))
    return found


def _better_than_plain(at: dict[str, list[Row]], m: int) -> Claim:
    ratio, error = _ratio(at[AUTOMATIC], at[PLAIN])
    return Claim(
        f"the automatic estimate is not worse than plain Monte Carlo (m = {m})",
        ratio <= 1 + SURE * error,
        f"error {ratio:.2f} ± {error:.2f} times",
        at_any_size=True,
    )


def _ours(at: dict[str, list[Row]], m: int) -> Claim:
    ratios = {one: _ratio(at[AUTOMATIC], at[one]) for one in PAPERS if one in at}
    said = ", ".join(f"{one} {r:.2f} ± {e:.2f}" for one, (r, e) in ratios.items())
    holds = max(r for r, _ in ratios.values()) <= 0.5
    return Claim(
        f"the automatic estimate's error is at most half of the best of the paper's (m = {m})",
        holds,
        f"its error over that of: {said}",
    )


def _cheaper(at: dict[str, list[Row]], m: int) -> Iterator[Claim]:
    """With the time that choosing hyper-parameters took on one set of draws, and without."""
    ours, names = seconds(at[AUTOMATIC]), [one for one in PAPERS if one in at]
    on_one = {one: tuning(at[one]) / at[one][0].extra.get("sets", len(PILOTS)) for one in names}
    for said, share in (("hyper-parameters chosen", 1), ("none chosen", 0)):
        theirs = {one: seconds(at[one]) + share * on_one[one] for one in names}
        yield Claim(
            f"the automatic estimate takes less CPU time than any of the paper's, {said} (m = {m})",
            ours < min(theirs.values()),
            f"{ours:.2g} s; " + ", ".join(f"{one} {used:.2g}" for one, used in theirs.items()),
        )


def _ensembles(at: dict[str, list[Row]], m: int) -> Claim:
    good = [one for one in (*ENSEMBLES, NETWORK) if one in at]
    single = [one for one in (*EXACT, *STOCHASTIC, PLAIN) if one in at and one not in ENSEMBLES]
    best = min(single, key=lambda one: mae(at[one])[0])
    ratios = {one: _ratio(at[one], at[best]) for one in good}
    return Claim(
        f"ensembles and networks perform significantly better than the other methods (m = {m})",
        all(r < 1 - SIGNIFICANT * e for r, e in ratios.values()),
        f"error over that of {best}, the best of the others: "
        + ", ".join(f"{one} {r:.2f} ± {e:.2f}" for one, (r, e) in ratios.items()),
    )


def _surpasses(at: dict[str, list[Row]], m: int) -> Claim:
    named = [one for one in at if one.startswith("polynomial + two kernels")]
    ratios = {one: _ratio(at[one], at[NETWORK]) for one in named}
    return Claim(
        "the ensemble with two kernels surpasses networks from m = 1000 on",
        m >= LARGE and bool(ratios) and all(r < 1 for r, _ in ratios.values()),
        f"m = {m}: error over the network's: "
        + (", ".join(f"{k} {r:.2f} ± {e:.2f}" for k, (r, e) in ratios.items()) or "not run"),
    )


def _stochastic(at: dict[str, list[Row]], m: int) -> Claim:
    said, holds = [], True
    for family in ("polynomial", "kernel", "polynomial + kernel"):
        exact, sgd = f"{family}, exact", f"{family}, SGD"
        if exact in at and sgd in at:
            ratio, error = _ratio(at[sgd], at[exact])
            cost = seconds(at[sgd]) / seconds(at[exact])
            holds &= ratio <= 1.1 + SIGNIFICANT * error and cost < 1
            said.append(f"{family}: error {ratio:.2f} ± {error:.2f}, CPU time {cost:.1f} times")
    return Claim(
        f"SGD has an error comparable with the exact solve's at a fraction of the cost (m = {m})",
        holds and bool(said),
        "; ".join(said) or "not run",
    )
