"""What the paper says of Gaussian processes, and what the rows say."""

from collections.abc import Iterator, Sequence

import numpy as np

from ._experiment import Claim, Row
from ._gaussian_processes_rows import (
    BEST,
    PAPER,
    VARIANCE,
    cost,
    dims,
    error,
    exponent,
    of,
    places,
    share,
    size,
    sizes,
)
from ._methods import AUTOMATIC, NETWORK, PLAIN
from ._statistics import mae

TWICE = ("polynomial, SGD", "kernel, SGD", NETWORK)


def claims(rows: Sequence[Row]) -> Iterator[Claim]:
    """All of them."""
    yield from _one_dimension(rows)
    yield from _dimensions(rows)
    yield from _objectives(rows)
    yield from _times(rows)
    yield from _automatic(rows)


def _one_dimension(rows: Sequence[Row]) -> Iterator[Claim]:
    m = size(rows)
    polynomial, kernel = (share(rows, f"{one}, exact", m, 1) for one in ("polynomial", "kernel"))
    yield Claim(
        "polynomials are not flexible enough in one dimension: more than half of the error is left",
        polynomial > 0.5,
        f"{polynomial:.2f} of plain Monte Carlo's error is left (exact, m = {m})",
    )
    for name, method, left in (
        ("kernels", "kernel, exact", kernel),
        ("kernels by SGD", "kernel, SGD", share(rows, "kernel, SGD", m, 1)),
        ("networks", NETWORK, share(rows, NETWORK, m, 1)),
    ):
        floor = share(rows, BEST, m, 1)
        yield Claim(
            f"{name} reduce the error substantially in one dimension: less than half is left",
            left < 0.5,
            f"{left:.2f} of plain Monte Carlo's error is left ({method}, m = {m}); floor {floor:.1g}",
        )


def _dimensions(rows: Sequence[Row]) -> Iterator[Claim]:
    for name, method, degrades in (
        ("kernels degrade", "kernel, exact", True),
        ("polynomials degrade", "polynomial, exact", True),
        ("networks do not degrade", NETWORK, False),
    ):
        where = dims(rows, method)
        left = [share(rows, method, size(rows), d) for d in where]
        grown = left[-1] > 1.25 * left[0]
        yield Claim(
            f"{name} with d (by a quarter, from d = 1 to d = {where[-1]})",
            bool(grown == degrades),
            "left in d = "
            + ", ".join(f"{d}: {one:.2f}" for d, one in zip(where, left, strict=True)),
        )
    above = {
        (method, *place): error(rows, method, *place) / error(rows, BEST, *place)
        for method in (*PAPER, AUTOMATIC)
        for place in places(rows)
    }
    least = min((ratio, key) for key, ratio in above.items() if np.isfinite(ratio))
    yield Claim(
        "in one dimension no method comes within twice the floor",
        min(r for (_, _, d), r in above.items() if d == 1 and np.isfinite(r)) > 2,
        f"the nearest of all: {least[0]:.2g} times ({least[1][0]}, m = {least[1][1]}, d = {least[1][2]})",
    )
    floors = [share(rows, BEST, size(rows), d) for d in dims(rows)]
    yield Claim(
        "the floor itself rises with d: no weighted mean of the values does in the highest as in one",
        bool(floors[-1] > 10 * floors[0]),
        "floor over plain's error in d = "
        + ", ".join(f"{d}: {one:.1g}" for d, one in zip(dims(rows), floors, strict=True)),
        at_any_size=True,
    )


def _objectives(rows: Sequence[Row]) -> Iterator[Claim]:
    ratios = {
        (method, m, d): error(rows, method, m, d, objective=VARIANCE) / error(rows, method, m, d)
        for method in TWICE
        for m, d in places(rows)
    }
    ratios = {key: ratio for key, ratio in ratios.items() if np.isfinite(ratio)}
    better = sum(ratio > 1 for ratio in ratios.values())
    means = [
        f"{method} {np.exp(np.mean([np.log(r) for k, r in ratios.items() if k[0] == method])):.2f}"
        for method in TWICE
    ]
    yield Claim(
        "least squares has less error than the variance objective, for each method and problem",
        better == len(ratios),
        f"in {better} of {len(ratios)}; variance objective's error over least squares', geometric "
        f"means: {', '.join(means)}",
    )
    m = size(rows)
    given = {row.repetition: row for row in of(rows, "kernel, exact", m, 1)}
    other = of(rows, "kernel, exact", m, 1, objective=VARIANCE)
    apart = max(float(np.abs(row.error - given[row.repetition].error).max()) for row in other)
    plain, _ = mae(of(rows, PLAIN, m, 1))
    yield Claim(
        "for exact solves the objective, which only halves the penalty, hardly moves the estimate (at most "
        "a tenth of plain Monte Carlo's error)",
        apart <= 0.1 * plain,
        f"estimates differ by at most {apart:.1e}, plain Monte Carlo's error is {plain:.1e}",
    )


def _times(rows: Sequence[Row]) -> Iterator[Claim]:
    for variable in ("m", "d"):
        found = {}
        for method in PAPER[:-1]:
            if variable == "m":
                at = sizes(rows, method)[-2:]
                found[method] = exponent(at, [cost(rows, method, m, 1) for m in at])
            else:
                at = dims(rows, method)[-2:]
                found[method] = exponent(at, [cost(rows, method, size(rows), d) for d in at])
        said = ", ".join(f"{method} {power:.1f}" for method, power in found.items())
        stochastic = [power for method, power in found.items() if method.endswith("SGD")]
        last = f"CPU time as a power of {variable}, between the two largest: {said}"
        yield Claim(
            f"the time of SGD is linear in {variable} (a power of at most 1.2)",
            max(stochastic) <= 1.2,
            last,
        )
        if variable == "m":
            yield Claim(
                "the time of the exact kernel solve is cubic in m (a power of 2.5 to 3.5)",
                2.5 <= found["kernel, exact"] <= 3.5,
                last,
            )
    m = sizes(rows, "kernel, exact")[-1]
    exact, sgd = (cost(rows, f"kernel, {how}", m, 1) for how in ("exact", "SGD"))
    yield Claim(
        f"kernels by SGD are faster than the exact solve at m = {m}",
        sgd < exact,
        f"{sgd:.2f} s against {exact:.2f} s of CPU",
    )


def _automatic(rows: Sequence[Row]) -> Iterator[Claim]:
    for panel, where in (
        ("against m", [place for place in places(rows) if place[1] == 1]),
        ("against d", [place for place in places(rows) if place[0] == size(rows)]),
    ):
        ratios = {}
        for place in where:
            best = np.nanmin([error(rows, method, *place) for method in PAPER])
            ratios[place] = error(rows, AUTOMATIC, *place) / best
        yield Claim(
            f"the automatic estimate's error is at most that of the paper's best method ({panel})",
            max(ratios.values()) <= 1,
            "ratio: " + ", ".join(f"m = {m}, d = {d}: {r:.2f}" for (m, d), r in ratios.items()),
        )
    ratios = {place: share(rows, AUTOMATIC, *place) for place in places(rows)}
    yield Claim(
        "the automatic estimate is nowhere much worse than plain Monte Carlo (at most 1.1 times)",
        max(ratios.values()) <= 1.1,
        "left: " + ", ".join(f"m = {m}, d = {d}: {r:.2f}" for (m, d), r in ratios.items()),
    )
