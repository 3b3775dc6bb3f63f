"""One factorisation for several polynomials: what it gives is what fits of their own give."""

import numpy as np
import pytest

from steinax._precision import precision
from steinax.solvers._penalty_grid import held_out_grid, held_out_nested, spectrum

N, SIZES = 60, (1, 3, 6)
FOLDS = ((0, 17), (17, 40), (40, 60))
NOISES = (0.5, 1e-3)


def _problem() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A kernel matrix, columns without a penalty, and integrands far from zero."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, 2))
    square = ((x[:, None] - x) ** 2).sum(axis=-1)
    columns = np.concatenate([np.ones((N, 1)), rng.normal(size=(N, SIZES[-1] - 1))], axis=1)
    return np.exp(-square / 2), columns, 50 + rng.normal(size=(N, 3)) + np.sin(x[:, :1])


def _refitted(kernel: np.ndarray, columns: np.ndarray, f: np.ndarray, noise: float):
    """f - g on each fold, its variance, and the intercept, from a fit to the other folds alone."""
    rest, variance, intercepts = np.empty_like(f), np.empty(N), []
    for start, stop in FOLDS:
        held = np.arange(start, stop)
        train = np.setdiff1d(np.arange(N), held)
        q = columns.shape[1]
        system = np.zeros((len(train) + q, len(train) + q))
        system[: len(train), : len(train)] = kernel[np.ix_(train, train)] + noise * np.eye(
            len(train)
        )
        system[: len(train), len(train) :] = columns[train]
        system[len(train) :, : len(train)] = columns[train].T
        solved = np.linalg.solve(system, np.concatenate([f[train], np.zeros((q, f.shape[1]))]))
        across = np.concatenate([kernel[np.ix_(held, train)], columns[held]], axis=1)
        intercepts.append(solved[len(train)])
        rest[held] = f[held] - across @ solved + intercepts[-1]
        own = kernel[np.ix_(held, held)] - across @ np.linalg.solve(system, across.T)
        variance[held] = np.diag(own) / noise + 1
    return rest, variance, np.array(intercepts)


@pytest.mark.parametrize("noise", NOISES)
def test_all_sizes_from_one_factorisation(noise: float) -> None:
    kernel, columns, f = _problem()
    with precision(np.float64):
        found = held_out_nested(kernel, columns, f, np.asarray(noise), FOLDS, SIZES)
    for i, size in enumerate(SIZES):
        for part, wanted in zip(found, _refitted(kernel, columns[:, :size], f, noise), strict=True):
            np.testing.assert_allclose(np.asarray(part)[i], wanted, rtol=1e-8, atol=1e-8)


def test_a_size_does_not_depend_on_the_others() -> None:
    kernel, columns, f = _problem()
    with precision(np.float64):
        together = held_out_nested(kernel, columns, f, np.asarray(NOISES[0]), FOLDS, SIZES)
        for i, size in enumerate(SIZES):
            own = columns[:, :size]
            alone = held_out_nested(kernel, own, f, np.asarray(NOISES[0]), FOLDS, (size,))
            for part, wanted in zip(together, alone, strict=True):
                np.testing.assert_allclose(np.asarray(part)[i], wanted[0], rtol=1e-10, atol=1e-12)


def test_eigenvectors_give_the_same_for_every_noise() -> None:
    """But for the unit of the variances: the kernel's in the one, the noise in the other."""
    kernel, columns, f = _problem()
    with precision(np.float64):
        grid = held_out_grid(spectrum(kernel), columns, f, np.array(NOISES), FOLDS, SIZES)
        for i, noise in enumerate(NOISES):
            one = held_out_nested(kernel, columns, f, np.asarray(noise), FOLDS, SIZES)
            for part, wanted, unit in zip(grid, one, (1, noise, 1), strict=True):
                same = unit * np.asarray(wanted)
                np.testing.assert_allclose(np.asarray(part)[i], same, rtol=1e-7, atol=1e-9)
