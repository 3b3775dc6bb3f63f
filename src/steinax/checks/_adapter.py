"""Laws of adapters: functions that read draws and scores into a `Sample`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..auditing import central_differences
from ..data import Sample
from ._check import Law, expect, law, nothing_changes, same_bits

type Read = Callable[[], Any]  # returns a Sample, if it keeps the contract
TRIED = 20  # draws at which the log density is differentiated
NEAR = 1e-3  # largest error of finite differences, relative to the typical score


@dataclass(frozen=True)
class AdapterCase:
    """A function that reads a Sample, and the properties expected of it."""

    read: Read
    chains: int | None = None
    length: int | None = None
    dim: int | None = None
    names: Sequence[str] | None = None
    log_density: Callable[[np.ndarray], float] | None = None


@law("return steinax.Sample(draws, scores, names).")
def gives_a_sample(case: AdapterCase) -> None:
    """The adapter returns a Sample of finite numbers."""
    sample = case.read()
    expect(isinstance(sample, Sample), f"it returns a {type(sample).__name__}")
    expect(np.all(np.isfinite(sample.draws)), "some draws are not finite")
    expect(np.all(np.isfinite(sample.scores)), "some scores are not finite")


@law("put axes in the order (chain, draw, dim), and keep every chain and draw.")
def has_the_expected_shape(case: AdapterCase) -> None:
    """The numbers of chains, draws and dimensions are those expected."""
    sample = case.read()
    for what in ("chains", "length", "dim"):
        actual, wanted = getattr(sample, what), getattr(case, what)
        expect(wanted is None or actual == wanted, f"`{what}` is {actual}, not {wanted}")


@law(
    "name each column of the draws, in the order of the columns.",
    lambda case: case.names is not None,
)
def has_the_expected_names(case: AdapterCase) -> None:
    """The names of the dimensions are those expected."""
    names, wanted = case.read().names, tuple(case.names or ())
    expect(names == wanted, f"the names are {names}, not {wanted}")


@law("read the same draws in the same order every time, and set nothing globally.")
def reads_the_same_twice(case: AdapterCase) -> None:
    """Reading twice gives the same sample, to the bit."""
    with nothing_changes():
        first, second = case.read(), case.read()
    expect(same_bits(first, second), "two readings differ")


@law("leave out chains that never move, and dimensions that are constant.")
def every_dimension_moves(case: AdapterCase) -> None:
    """No dimension and no chain is constant."""
    sample = case.read()
    constant = np.ptp(sample.draws, axis=(0, 1)) == 0
    expect(not constant.any(), f"constant: {', '.join(np.array(sample.names)[constant])}")
    if sample.length > 1:
        stuck = np.flatnonzero(np.all(np.ptp(sample.draws, axis=1) == 0, axis=1))
        expect(not stuck.size, f"chains that never move: {stuck.tolist()}")


@law(
    "give the gradient of the log density at each draw, on the unconstrained space of the draws (with the "
    "Jacobian term), in the same order of columns, and not that of the draw before or after.",
    lambda case: case.log_density is not None,
)
def scores_are_gradients(case: AdapterCase) -> None:
    """Scores agree with finite differences of the log density."""
    sample, log_density = case.read(), case.log_density
    assert log_density is not None
    index = np.linspace(0, sample.size - 1, min(TRIED, sample.size)).round().astype(int)
    x, score = np.asarray(sample.x, float)[index], np.asarray(sample.score, float)[index]
    scale = np.maximum(np.asarray(sample.x, float).std(axis=0), 1e-300)
    gradient = central_differences(log_density, x, np.diag(scale))[0] / scale
    typical = np.sqrt(np.mean(gradient**2, axis=0)) + 1e-300
    error = np.abs(score - gradient) / typical
    row, column = np.unravel_index(np.argmax(error), error.shape)
    name = sample.names[column]
    expect(
        error.max() <= NEAR,
        f"at draw {index[row]} the score of {name} is {score[row, column]:.6g}, but finite differences "
        f"of the log density give {gradient[row, column]:.6g}{_guess(score, gradient, typical)}",
    )


@law(
    "set log_density to the log density of each draw, the one whose gradients are the scores, or to None.",
    lambda case: case.log_density is not None and case.read().log_density is not None,
)
def log_densities_are_of_the_draws(case: AdapterCase) -> None:
    """Stored log densities equal the log density at the draws, up to one constant."""
    sample, log_density = case.read(), case.log_density
    assert log_density is not None and sample.log_density is not None
    index = np.linspace(0, sample.size - 1, min(TRIED, sample.size)).round().astype(int)
    wanted = np.array([float(log_density(x)) for x in np.asarray(sample.x, float)[index]])
    difference = sample.log_density.ravel()[index] - wanted
    expect(
        np.ptp(difference) <= NEAR * (np.ptp(wanted) + 1.0),
        f"log densities differ from those of the draws by {difference.min():.6g} to "
        f"{difference.max():.6g}, not by one constant",
    )


def _guess(score: np.ndarray, gradient: np.ndarray, typical: np.ndarray) -> str:
    """Describe the likely mistake, if a change of sign or scale explains the difference."""
    if np.all(np.abs(-score - gradient) <= NEAR * typical):
        return ": the sign is flipped"
    ratio = np.sum(score * gradient) / np.sum(score**2) if np.any(score) else 0.0
    if np.all(np.abs(ratio * score - gradient) <= NEAR * typical):
        return f": all scores are off by a factor of {1 / ratio:.4g}"
    return ""


ADAPTER_LAWS: tuple[Law, ...] = (
    gives_a_sample,
    has_the_expected_shape,
    has_the_expected_names,
    reads_the_same_twice,
    every_dimension_moves,
    scores_are_gradients,
    log_densities_are_of_the_draws,
)
