"""The paper's methods, and ours, as calls of steinax: tuned, then timed."""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial

import jax
import numpy as np

import steinax as sx

from .._provenance import source
from ._chains import kept_figures
from ._experiment import Cell, Result
from ._tuning import Hyper, cross_validated

PLAIN, NETWORK, AUTOMATIC = "plain Monte Carlo", "network", "automatic"
# settings that hyper-parameters do not depend on
NO_PROBLEM = ("method", "epochs", "repetitions", "objective")
PILOTS = (1_000_000, 1_000_001)  # "repetitions" that hyper-parameters are chosen on, never reported
SOLVERS: dict[str, Callable[[int], sx.solvers.AbstractSolver]] = {
    "exact": lambda epochs: sx.Exact(),
    # the coefficients themselves by Adam at three rates, the best kept: the paper's way
    "SGD": lambda epochs: sx.Stochastic(epochs=epochs, precondition=False),
    # ours: in round coordinates, with no noise in the end
    "Point-SAGA": lambda epochs: sx.Stochastic(epochs=epochs),
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

    def first(self, fraction: float) -> "Draws":
        """The first part of every chain."""
        cut = round(fraction * self.sample.length)
        sample = sx.Sample(self.sample.draws[:, :cut], self.sample.scores[:, :cut])
        return Draws(self.values[:, :cut], sample, self.truth)


@dataclass(frozen=True)
class Setting:
    """How a control variate is used.

    Attributes:
        split: which draws are fitted to.
        epochs: of stochastic solvers, in batches of 8.
        objective: None for least squares.
        network: the family of the method of that name; by default of the paper's size, with a smooth
            activation, for its ReLU under the second-order operator is biased.
    """

    split: sx.estimation.AbstractSplit = field(default_factory=sx.InSample)
    epochs: int = 25
    objective: sx.objectives.AbstractObjective | None = None
    network: sx.families.AbstractFamily = field(
        default_factory=lambda: sx.Network(20, 6, jax.nn.silu, operator=sx.ScalarLangevin())
    )


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
    call = partial(sx.estimate, draws.wanted, draws.sample)
    tuning, extra = 0.0, {}
    if method != AUTOMATIC:
        family, penalty, solver = setting.network, None, sx.Stochastic(epochs=setting.epochs)
        if method != NETWORK:
            which, _, how = method.rpartition(", ")
            hyper, tuning = _tuned(cell, which, make, setting.split)
            family, solver = FAMILIES[which](hyper), SOLVERS[how](setting.epochs)
            penalty, extra = hyper.penalties(family, ridge=how == "SGD"), asdict(hyper)
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


def _tuned(
    cell: Cell, family: str, make: Callable[[Cell, int], Draws], split: sx.estimation.AbstractSplit
) -> tuple[Hyper, float]:
    """The hyper-parameters of a family on a problem, and the CPU seconds that finding them took."""
    given = {key: value for key, value in cell.items() if key not in NO_PROBLEM}

    def search() -> dict[str, float]:
        pilots = [make(cell, number) for number in PILOTS]
        if isinstance(split, sx.HoldOut):
            pilots = [pilot.first(split.fraction) for pilot in pilots]
        start = time.process_time()
        hyper = cross_validated(
            FAMILIES[family],
            [(pilot.wanted, pilot.sample) for pilot in pilots],
            length_scales=family != TWO_KERNELS,
        )
        return asdict(hyper) | {"seconds": time.process_time() - start}

    module = make.__module__
    key = json.dumps([module, family, given, repr(split), source()], sort_keys=True)
    found = kept_figures(key, search)
    return Hyper(**{name: found[name] for name in asdict(Hyper())}), found["seconds"]
