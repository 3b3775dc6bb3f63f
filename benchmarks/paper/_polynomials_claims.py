"""What the paper says of polynomial integrands, and whether the rows bear it out."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ._experiment import Claim, Row
from ._methods import AUTOMATIC
from ._polynomials_problem import Problem, problems
from ._statistics import mae, seconds, where

CLOSE = 1.1  # times the exact solve's error
FRACTION = 0.5  # of the exact solve's time, below which SGD is much the cheaper
EXACT = 1e-8


def claims(rows: Sequence[Row]) -> Iterator[Claim]:
    """All claims, the paper's first."""
    found = problems(rows)
    yield _approaches(found)
    yield _regardless(found)
    yield _fraction_of_the_cost(found)
    yield _near_enough(found)
    yield _advantage_grows(found)
    yield from _work(found)
    yield _exact(found)
    yield _too_many_coefficients(found)
    yield _automatic(rows)


def _falls(found: list[Problem], statistic: Callable[[np.ndarray], float]) -> tuple[bool, str]:
    """Whether a statistic of the distances to the exact solve falls with epochs, and the figures."""
    holds, said = True, []
    for problem in found:
        by_epochs = problem.stochastic("SGD")
        few, many = min(by_epochs), max(by_epochs)
        first, last = (statistic(problem.distances(by_epochs[one])) for one in (few, many))
        holds = holds and bool(last < first)
        said.append(f"{problem}: {first:.1e} to {last:.1e} ({few} to {many} epochs)")
    return holds, "; ".join(said)


def _approaches(found: list[Problem]) -> Claim:
    holds, said = _falls(found, np.mean)
    statement = "the paper's: SGD's estimate approaches the exact solve's as epochs grow"
    return Claim(statement, holds, f"mean distance of the two: {said}")


def _regardless(found: list[Problem]) -> Claim:
    holds, said = _falls(found, np.max)
    statement = "the paper's: it does so whatever the initialisation, in the worst realization too"
    return Claim(statement, holds, f"largest distance over all realizations: {said}")


def _fraction_of_the_cost(found: list[Problem]) -> Claim:
    """Of each problem, the fewest epochs that give nearly the exact solve's error."""
    cheap, said = [], []
    for problem in found:
        near = {
            epochs: problem.ratios(rows)
            for epochs, rows in problem.stochastic("SGD").items()
            if problem.ratios(rows)[0] <= CLOSE
        }
        if not near:
            said.append(f"{problem}: never")
            continue
        epochs = min(near)
        cheap.append(near[epochs][1] < FRACTION and _useful(problem))
        useless = "" if _useful(problem) else ", but the exact solve is no better than plain draws"
        said.append(f"{problem}: {_epochs(epochs)}, {near[epochs][1]:.2f} times the time{useless}")
    statement = (
        "the paper's: SGD comes within 10% of the exact solve's error in less than half its time, "
        "at some size"
    )
    return Claim(statement, any(cheap), "; ".join(said))


def _epochs(number: int) -> str:
    return f"{number} epoch" + ("s" if number > 1 else "")


def _useful(problem: Problem) -> bool:
    return mae(problem.exact)[0] < mae(problem.plain)[0]


def _near_enough(found: list[Problem]) -> Claim:
    """The same, when all that is asked is a tenth of the error of plain draws."""
    cheap, said = [], []
    for problem in found:
        goal = mae(problem.plain)[0] / 10
        if not mae(problem.exact)[0] <= goal:
            said.append(f"{problem}: not by the exact solve either")
            continue
        enough = {e: r for e, r in problem.stochastic("SGD").items() if mae(r)[0] <= goal}
        if not enough:
            said.append(f"{problem}: never")
            continue
        time = problem.ratios(enough[min(enough)])[1]
        cheap.append(time < 1)
        said.append(f"{problem}: {_epochs(min(enough))}, {time:.2f} times the time")
    statement = (
        "SGD takes less time than the exact solve to reach a tenth of plain draws' error, "
        "at some size"
    )
    return Claim(statement, any(cheap), "; ".join(said))


def _advantage_grows(found: list[Problem]) -> Claim:
    """The time of five epochs over that of the exact solve, by dimension."""
    holds, said = [], []
    for family, m in dict.fromkeys((one.family, one.fitted) for one in found):
        mine = [one for one in found if (one.family, one.fitted) == (family, m)]
        ratios = {one.dim: one.ratios(one.stochastic("SGD")[5])[1] for one in mine}
        if len(ratios) < 2:
            continue
        holds.append(ratios[max(ratios)] < ratios[min(ratios)])
        each = ", ".join(f"{ratio:.2f} (d = {dim})" for dim, ratio in sorted(ratios.items()))
        said.append(f"{family} m = {m}: {each}")
    statement = "the paper's: the advantage of SGD in time grows with the dimension"
    evidence = "time of 5 epochs over the exact solve's: " + "; ".join(said)
    return Claim(statement, bool(holds) and all(holds), evidence)


def _work(found: list[Problem]) -> Iterator[Claim]:
    """The exponent of the time of an epoch in the work that the paper counts."""
    for family, work in (("polynomial", "m d^2"), ("kernel", "m^2 d")):
        mine = [one for one in found if one.family == family]
        if len(mine) < 3:
            continue
        times = np.array([one.seconds_of_an_epoch() for one in mine])
        works = np.array([one.work for one in mine], dtype=float)
        slope = np.polyfit(np.log(works), np.log(np.fmax(times, 1e-6)), 1)[0]
        said = ", ".join(f"{one} {1e3 * t:.2g} ms" for one, t in zip(mine, times, strict=True))
        yield Claim(
            f"the paper's: the time of an epoch of SGD grows at most linearly with {work} ({family})",
            bool(slope <= 1.1),
            f"exponent {slope:.2f} in the work; an epoch: {said}",
        )


def _exact(found: list[Problem]) -> Claim:
    mine = [one for one in found if one.family == "polynomial" and one.unknowns <= one.fitted / 2]
    errors = {str(one): max(abs(row.error[0]) for row in one.exact) for one in mine}
    return Claim(
        "the polynomial of the exact solve has no error where there are two draws per coefficient",
        bool(errors) and max(errors.values()) < EXACT,
        "largest error: " + ", ".join(f"{name} {error:.1e}" for name, error in errors.items()),
        at_any_size=True,
    )


def _too_many_coefficients(found: list[Problem]) -> Claim:
    mine = [one for one in found if one.family == "polynomial" and one.unknowns > one.fitted]
    ratios = {str(one): mae(one.exact)[0] / mae(one.plain)[0] for one in mine}
    return Claim(
        "with more coefficients than draws to fit to, even the exact solve removes little: "
        "its error is more than half that of plain draws",
        bool(ratios) and min(ratios.values()) > 0.5,
        "error over plain draws': " + ", ".join(f"{k} {v:.2f}" for k, v in ratios.items()),
    )


def _automatic(rows: Sequence[Row]) -> Claim:
    mine = where(rows, method=AUTOMATIC)
    places = sorted({(row.cell["n"], row.cell["d"]) for row in mine})
    said = []
    for n, dim in places:
        here = where(mine, n=n, d=dim)
        largest = max(abs(row.error[0]) for row in here)
        said.append(f"n = {n} d = {dim}: {largest:.1e} in {seconds(here):.1f} s")
    return Claim(
        "the automatic estimate has no error (below 1e-8), in any dimension",
        bool(mine) and max(abs(row.error[0]) for row in mine) < EXACT,
        "largest error, CPU time: " + "; ".join(said),
        at_any_size=True,
    )
