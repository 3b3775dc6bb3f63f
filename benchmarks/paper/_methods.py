"""The paper's methods, and ours, as calls of steinax: tuned, then timed."""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import partial

import jax
import numpy as np

import steinax as sx

from .._provenance import source
from ._chains import kept_figures
from ._experiment import Cell, Result
from ._tuning import RATES, Hyper, cross_validated, tuned_for_sgd, with_rate_for

PLAIN, NETWORK, AUTOMATIC = "plain Monte Carlo", "network", "automatic"
# settings that hyper-parameters do not depend on
NO_PROBLEM = ("method", "epochs", "repetitions", "objective")
LITERAL = "SGD on all draws"  # with the last iterate, and errors by epoch on the way
PILOTS = (1_000_000, 1_000_001)  # "repetitions" that hyper-parameters are chosen on, never reported
WHOLE = (2_000_000, 2_000_001)  # those that SGD's rate is chosen on where the pilots are smaller
SOLVERS: dict[str, Callable[[int, float], sx.solvers.AbstractSolver]] = {
    "exact": lambda epochs, rate: sx.Exact(),
    # the coefficients themselves by Adam, the best iterate on a tenth of the draws
    "SGD": lambda epochs, rate: sx.Stochastic(epochs=epochs, precondition=False, rates=(rate,)),
    LITERAL: lambda epochs, rate: sx.Stochastic(
        epochs=epochs, precondition=False, rates=(rate,), hold_out=0.0, record=True
    ),
    # ours: in round coordinates, with no noise in the end
    "Point-SAGA": lambda epochs, rate: sx.Stochastic(epochs=epochs),
}


@dataclass(frozen=True)
class Draws:
    """What a method is given, and the truth that it is judged by.

    Attributes:
        values: of the integrands, (chain, draw, k).
        sample: the draws and their scores.
        truth: the expectations, (k,).
    """

    values: np.ndarray
    sample: sx.Sample
    truth: np.ndarray

    @property
    def wanted(self) -> sx.data.Integrands:
        """The integrands as steinax takes them."""
        k = self.values.shape[-1]
        return sx.data.integrands({str(i): self.values[..., i] for i in range(k)}, self.sample)

    def part(self, start: float, stop: float) -> "Draws":
        """A part of every chain, from one fraction of it to another."""
        at = slice(*(round(end * self.sample.length) for end in (start, stop)))
        sample = sx.Sample(self.sample.draws[:, at], self.sample.scores[:, at])
        return Draws(self.values[:, at], sample, self.truth)


@dataclass(frozen=True)
class Setting:
    """How a control variate is used.

    Attributes:
        split: which draws are fitted to.
        epochs: of stochastic solvers, in batches of 8.
        objective: None for least squares.
        independent: whether the draws are; if not, neighbours are left out together in cross-validation.
        folds: of cross-validation; by default independent draws are left out one by one.
        reduced: the number of draws, if the pilots are fewer or in fewer dimensions. SGD's rate is then
            chosen on as many.
        expensive: whether a fit takes so long that SGD is tuned on one set of draws instead of two, and that
            the kernels of an ensemble keep the hyper-parameters that SGD has chosen for the kernel alone.
        network: the family of the method of that name; by default of the paper's size, with a smooth
            activation, for its ReLU under the second-order operator is biased.
    """

    split: sx.estimation.AbstractSplit = field(default_factory=sx.InSample)
    epochs: int = 25
    objective: sx.objectives.AbstractObjective | None = None
    independent: bool = True
    folds: int | None = None
    reduced: int = 0
    expensive: bool = False
    network: sx.families.AbstractFamily = field(
        default_factory=lambda: sx.Network(20, 6, jax.nn.silu, operator=sx.ScalarLangevin())
    )

    def sets(self, by_sgd: bool) -> int:
        """The number of sets of draws that hyper-parameters are chosen on."""
        return 1 if self.expensive and by_sgd else len(PILOTS)


def polynomial(hyper: Hyper) -> sx.families.AbstractFamily:
    """A quadratic potential, in the paper's parametrisation."""
    return sx.Polynomial(2, weight=0.5)


def kernel(hyper: Hyper, factor: float = 1.0) -> sx.families.AbstractFamily:
    """Translates of the paper's kernel."""
    length_scale = sx.kernels.MedianHeuristic(factor * hyper.length_scale)
    return sx.KernelTranslates(sx.kernels.DampedGaussian(hyper.damping, length_scale))


def polynomial_and_kernel(hyper: Hyper) -> sx.families.AbstractFamily:
    """An ensemble of both."""
    return polynomial(hyper) + kernel(hyper)


def polynomial_and_two_kernels(hyper: Hyper) -> sx.families.AbstractFamily:
    """An ensemble with two kernels, one wider than the other by the root of two."""
    return polynomial(hyper) + kernel(hyper) + kernel(hyper, 2**0.5)


TWO_KERNELS = "polynomial + two kernels"
FAMILIES: dict[str, Callable[[Hyper], sx.families.AbstractFamily]] = {
    "polynomial": polynomial,
    "kernel": kernel,
    "polynomial + kernel": polynomial_and_kernel,
    TWO_KERNELS: polynomial_and_two_kernels,
}


def measure_method(
    cell: Cell,
    repetition: int,
    make: Callable[[Cell, int], Draws],
    setting: Setting | None = None,
) -> Result:
    """One repetition of the method that `cell["method"]` names.

    The names are `PLAIN`, `NETWORK`, `AUTOMATIC`, and "family, solver" with the keys of `FAMILIES` and
    `SOLVERS`. Hyper-parameters are chosen once for all repetitions, on the draws that `make` gives for the
    numbers of `PILOTS`.

    Args:
        cell: the settings.
        repetition: its number.
        make: the draws of a cell and a repetition.
        setting: how the control variate is used.
    """
    setting = setting or Setting()
    draws, method = make(cell, repetition), cell["method"]
    if method == PLAIN:
        start = time.process_time()
        value = draws.values.mean(axis=(0, 1))
        return Result(value - draws.truth, time.process_time() - start)
    call = partial(sx.estimate, draws.wanted, draws.sample, audit="warn")
    tuning, extra = 0.0, {}
    if method != AUTOMATIC:
        family, penalty, solver = setting.network, None, sx.Stochastic(epochs=setting.epochs)
        if method != NETWORK:
            which, _, how = method.rpartition(", ")
            by_sgd = how in ("SGD", LITERAL)
            hyper, tuning = _tuned(cell, which, make, setting, by_sgd)
            family, solver = FAMILIES[which](hyper), SOLVERS[how](setting.epochs, hyper.rate)
            penalty = hyper.penalties(family, ridge=by_sgd)
            extra = asdict(hyper) | {"sets": setting.sets(by_sgd)}
            if how == LITERAL:
                key = jax.random.key(repetition)
                path, took, averaging = _literal(draws, family, penalty, solver, setting, key)
                extra |= {"path": (path - draws.truth).tolist(), "averaging": averaging}
                return Result(path[-1] - draws.truth, took + averaging, tuning, extra)
        call = partial(
            call,
            family,
            penalty=penalty,
            solver=solver,
            split=setting.split,
            objective=setting.objective,
            key=jax.random.key(repetition),
            audit="off",
        )
    start = time.process_time()
    value = np.asarray(call().value)
    return Result(value - draws.truth, time.process_time() - start, tuning, extra)


def _literal(
    draws: Draws,
    family: sx.families.AbstractFamily,
    penalty: list[sx.objectives.AbstractPenalty],
    solver: sx.solvers.AbstractSolver,
    setting: Setting,
    key: jax.Array,
) -> tuple[np.ndarray, float, float]:
    """The estimate after every epoch, (epoch, k), and the CPU seconds of the fit and of one average.

    The average is over all draws, or over those that are not fitted to.
    """
    fitted = draws
    if isinstance(setting.split, sx.HoldOut):
        fitted, draws = (
            draws.part(*ends) for ends in ((0, setting.split.fraction), (setting.split.fraction, 1))
        )
    wanted, start = fitted.wanted, time.process_time()
    control = sx.fit(
        wanted,
        fitted.sample,
        family,
        penalty=penalty,
        solver=solver,
        objective=setting.objective,
        key=key,
    )
    between = time.process_time()
    each = (control.after(epoch + 1) for epoch in range(setting.epochs))
    x, score = draws.sample.draws, draws.sample.scores
    path = np.array([(draws.values - one(x, score)).mean(axis=(0, 1)) for one in each])
    return path, between - start, (time.process_time() - between) / setting.epochs


def _tuned(
    cell: Cell, family: str, make: Callable[[Cell, int], Draws], setting: Setting, by_sgd: bool
) -> tuple[Hyper, float]:
    """The hyper-parameters of a family on a problem, and the CPU seconds that finding them took."""
    given = {key: value for key, value in cell.items() if key not in NO_PROBLEM}
    key = [make.__module__, family, given, repr(setting.split), source()]
    key += [setting.folds] if setting.folds else []
    fixed = ("length_scale",) if family == TWO_KERNELS else ()
    sets = slice(setting.sets(by_sgd))

    def given_to_fit(numbers: tuple[int, ...]) -> list[tuple[sx.data.Integrands, sx.Sample]]:
        pilots = [make(cell, number) for number in numbers]
        if isinstance(setting.split, sx.HoldOut):
            pilots = [pilot.part(0, setting.split.fraction) for pilot in pilots]
        return [(pilot.wanted, pilot.sample) for pilot in pilots]

    def found(
        key: list, search: Callable[[list], Hyper], numbers: tuple[int, ...] = PILOTS
    ) -> tuple[Hyper, float]:
        def measured() -> dict[str, float]:
            given, start = given_to_fit(numbers), time.process_time()
            hyper = search(given)
            return asdict(hyper) | {"seconds": time.process_time() - start}

        figures = kept_figures(json.dumps(key, sort_keys=True), measured)
        return Hyper(**{name: figures[name] for name in asdict(Hyper())}), figures["seconds"]

    made, epochs = FAMILIES[family], setting.epochs
    if by_sgd and setting.expensive and family != "polynomial":
        alone = replace(setting, reduced=0, expensive=False)
        start, seconds = _tuned(cell, "kernel", make, alone, by_sgd)
        fixed = ("length_scale", "damping")
    else:
        start, seconds = found(
            key,
            lambda pilots: cross_validated(made, pilots, fixed, setting.independent, setting.folds),
        )
    if not by_sgd:
        return start, seconds
    key += ["SGD", epochs, len(RATES)]
    hyper, further = found(
        key, lambda pilots: tuned_for_sgd(made, pilots, start, epochs, fixed), PILOTS[sets]
    )
    if not setting.reduced:
        return hyper, seconds + further
    final, last = found(
        [*key, setting.reduced],
        lambda whole: with_rate_for(made, whole, hyper, epochs),
        WHOLE[sets],
    )
    return final, seconds + further + last
