"""What the paper says of the Lotka-Volterra parameters, and we, against the figures."""

from collections.abc import Iterator

import numpy as np

from ._experiment import Claim
from ._methods import AUTOMATIC, NETWORK, PLAIN

type Errors = dict[tuple[str, int], np.ndarray]  # of each parameter, by method and number of draws
ALLOWED = 4.5  # standard errors, at most, of eight comparisons
ENSEMBLE = "polynomial + two kernels"
SINGLE = ("polynomial", "kernel", "polynomial + kernel")
STOCHASTIC = (*(f"{family}, SGD" for family in SINGLE), f"{ENSEMBLE}, SGD", NETWORK)
EXACT = tuple(f"{family}, exact" for family in SINGLE)  # the paper has no exact two kernels


def claims(errors: Errors, times: dict[tuple[str, int], float], checks: dict) -> Iterator[Claim]:
    """Each with its figures."""
    yield from _chains(checks)
    yield from _plain(errors)
    yield from _best(errors)
    if any(method == NETWORK for method, _ in times):
        yield _cost(times)
    yield from _parts(errors)
    yield _automatic(errors)


def _sizes(errors: Errors, method: str) -> list[int]:
    return sorted(n for name, n in errors if name == method)


def _ratio(above: np.ndarray, below: np.ndarray) -> float:
    """The geometric mean over the parameters of a ratio of errors."""
    return float(np.exp(np.log(above / below).mean()))


def _listed(ratios: dict[int, float]) -> str:
    return ", ".join(f"{ratio:.3g} (n = {n})" for n, ratio in ratios.items())


def _chains(checks: dict) -> Iterator[Claim]:
    apart = np.abs(checks["apart"])
    yield Claim(
        "BlackJAX's chains and those stored have the same means and standard deviations",
        bool(apart.max() < ALLOWED),
        f"at most {apart.max():.1f} standard errors apart, of four means and four deviations",
        at_any_size=True,
    )
    apart = np.abs(checks["truth_sampled"])
    yield Claim(
        "the plain average of all BlackJAX draws agrees with the quadrature",
        bool(apart.max() < ALLOWED),
        f"at most {apart.max():.1f} standard errors apart; the quadrature's own error: "
        f"{checks['quadrature']:.0e}",
        at_any_size=True,
    )


def _plain(errors: Errors) -> Iterator[Claim]:
    solved = (*EXACT, f"{ENSEMBLE}, exact", f"{ENSEMBLE}, Point-SAGA", AUTOMATIC)
    for what, methods, must in (
        ("each control variate that is solved for, or automatic,", solved, True),
        ("each control variate fitted by SGD, networks included,", STOCHASTIC, False),
    ):
        gains = {
            (method, n): float((errors[PLAIN, n] / errors[method, n]).min())
            for method, n in errors
            if method in methods
        }
        better = sum(gain > 1 for gain in gains.values())
        worst = min(gains, key=lambda place: gains[place])
        yield Claim(
            f"{what} has a smaller error than plain Monte Carlo, for every parameter and n",
            gains[worst] > 1,
            f"least gain {gains[worst]:.2g} times ({worst[0]}, n = {worst[1]}); "
            f"{better} of {len(gains)} methods and sizes",
            at_any_size=must,
        )


def _best(errors: Errors) -> Iterator[Claim]:
    for what, others in (
        ("the paper's methods, fitted by SGD", STOCHASTIC),
        ("the paper's methods, exact solves of its other families included", STOCHASTIC + EXACT),
    ):
        wins, cases, names = 0, 0, {}
        for n in _sizes(errors, NETWORK):  # none in a quick run
            found = {method: errors[method, n] for method in others}
            best = [min(found, key=lambda one: found[one][i]) for i in range(4)]
            wins += sum(one in {NETWORK, f"{ENSEMBLE}, SGD"} for one in best)
            cases += len(best)
            for one in best:
                names[one] = names.get(one, 0) + 1
        if not cases:
            return
        said = ", ".join(f"{name} {count}" for name, count in names.items())
        yield Claim(
            f"two kernels with a polynomial (SGD), or the network, do best in every case, of {what}",
            wins == cases,
            f"{wins} of {cases} cases of parameter and n; best: {said}",
        )


def _cost(times: dict[tuple[str, int], float]) -> Claim:
    ratios = {
        n: taken / times[f"{ENSEMBLE}, SGD", n]
        for (method, n), taken in times.items()
        if method == NETWORK
    }
    return Claim(
        "a network takes longer to train than the ensemble with two kernels (SGD)",
        min(ratios.values()) > 1,
        "CPU time over the ensemble's: " + _listed(ratios),
    )


def _parts(errors: Errors) -> Iterator[Claim]:
    for solver in ("exact", "SGD"):
        for whole, parts in (
            ("polynomial + kernel", ("polynomial", "kernel")),
            (ENSEMBLE, ("polynomial + kernel",)),
        ):
            ratios = {}
            for n in _sizes(errors, PLAIN):
                ensemble = errors[f"{whole}, {solver}", n]
                ratios[n] = max(_ratio(ensemble, errors[f"{p}, {solver}", n]) for p in parts)
            yield Claim(
                f"{whole} ({solver}) does better than {' and than '.join(parts)} ({solver})",
                max(ratios.values()) < 1,
                "error over the better one's: " + _listed(ratios),
            )


def _automatic(errors: Errors) -> Claim:
    ratios = {}
    for n in _sizes(errors, AUTOMATIC):
        others = [errors[method, n] for method in STOCHASTIC + EXACT if (method, n) in errors]
        ratios[n] = float((errors[AUTOMATIC, n] / np.min(others, axis=0)).max())
    return Claim(
        "the automatic estimate's error is at most that of the best of the paper's methods",
        max(ratios.values()) <= 1,
        "error over the best one's, for the worst of the parameters: " + _listed(ratios),
        at_any_size=True,
    )
