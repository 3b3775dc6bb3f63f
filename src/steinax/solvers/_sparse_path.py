"""Which columns the lasso keeps at each penalty, and how well least squares on them predicts."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from .._types import AnyArray

SMALLEST = 1e-4  # the last penalty of a path, in units of the first, at which nothing is kept
SWEEPS = 30  # of coordinate descent for a penalty: more of them hardly change what is kept
NEAR = 1.01  # errors within this factor of the least are as good, and fewer columns are taken
NOTHING = 1e-20  # squares below this share of those of f are rounding

# scikit-learn's `enet_path`, its share of the lasso given: columns, f, penalties, their products
type Path = Callable[..., tuple]


class Part(NamedTuple):
    """Columns on some of the draws, centred, their means, and the products of all pairs."""

    columns: np.ndarray
    mean: np.ndarray
    gram: np.ndarray
    penalty: np.ndarray  # the matrix of the problem's own

    def kept(self, f: np.ndarray, path: Path, alphas: np.ndarray) -> Iterator[np.ndarray]:
        """The columns kept at each penalty while they are few, and last all of them if these are few."""
        most, cross = len(f) // 2, self.columns.T @ f
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that coordinate descent has not converged
            _, coefs, *_ = path(
                self.columns,
                f,
                alphas=alphas,
                precompute=self.gram,
                Xy=cross,
                max_iter=SWEEPS,
                random_state=0,
            )
        moving = np.flatnonzero(np.diag(self.gram) > 0)
        for coef in coefs.T:
            kept = np.flatnonzero(coef)
            if len(kept) > most:
                return
            yield kept
        if len(moving) <= most:
            yield moving

    def solve(self, f: np.ndarray, kept: np.ndarray) -> np.ndarray:
        """Least squares on some columns, by the products of pairs."""
        gram = self.gram[np.ix_(kept, kept)] + self.penalty[np.ix_(kept, kept)]
        floor = 8 * np.finfo(float).eps * np.trace(gram)
        return np.linalg.solve(gram + floor * np.eye(len(kept)), self.columns[:, kept].T @ f)

    def refit(self, f: np.ndarray, kept: np.ndarray) -> np.ndarray:
        """The same by an orthogonal decomposition, to all digits."""
        values, vectors = np.linalg.eigh(self.penalty[np.ix_(kept, kept)])
        root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
        right = np.concatenate([f, np.zeros(len(kept))])
        return np.linalg.lstsq(np.concatenate([self.columns[:, kept], root]), right)[0]


def part_of(columns: np.ndarray, penalty: np.ndarray) -> Part:
    """Some draws of the columns, (n, p)."""
    mean = columns.mean(axis=0)
    centred = np.asfortranarray(columns - mean)
    return Part(centred, mean, centred.T @ centred, penalty)


def sparse_fit(
    features: Sequence[AnyArray],
    penalties: Sequence[np.ndarray],
    f: np.ndarray,
    path: Path,
    folds: int,
    shares: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """The intercepts (k,), and the coefficients (p, k), most of them zero.

    Args:
        features: of each term, (n, p).
        penalties: the matrix of each term's penalty.
        f: the integrands, (n, k).
        path: the columns' coefficients at falling penalties.
        folds: how many blocks of draws are left out in turn.
        shares: the penalties, in units of the least at which nothing is kept.
    """
    from scipy.linalg import block_diag

    raw = np.concatenate([np.asarray(part, np.float64) for part in features], axis=1)
    size = raw.std(axis=0)
    moves = size > 1e-12 * np.abs(raw).max(axis=0)
    unit = np.where(moves, size, 1.0)
    columns, penalty = raw / unit * moves, block_diag(*penalties) / np.outer(unit, unit)
    whole, mean_f = part_of(columns, penalty), f.mean(axis=0)
    slopes = np.abs(whole.columns.T @ (f - mean_f)).max(axis=0, initial=0.0) / len(f)
    errors = np.zeros((len(shares) + 1, f.shape[1]))
    for block in np.array_split(np.arange(len(f)), folds):
        errors += _errors(columns, penalty, f, block, path, np.outer(shares, slopes))
    coef = np.zeros((raw.shape[1], f.shape[1]))
    squares = np.sum((f - mean_f) ** 2, axis=0)
    for i in np.flatnonzero(slopes > 1e-13 * np.abs(f).max(axis=0)):
        good = errors[:, i] <= NEAR * errors[:, i].min() + NOTHING * squares[i]
        best, own = int(np.argmax(good)), f[:, i] - mean_f[i]
        each = list(whole.kept(own, path, shares[: best + 1] * slopes[i]))
        kept = each[min(best, len(each) - 1)]
        coef[kept, i] = whole.refit(own, kept)
    return mean_f - whole.mean @ coef, coef / unit[:, None]


def _errors(
    columns: np.ndarray,
    penalty: np.ndarray,
    f: np.ndarray,
    block: np.ndarray,
    path: Path,
    alphas: np.ndarray,
) -> np.ndarray:
    """The squares left on a block by fits to the other draws, at each penalty and at none: (.., k)."""
    inside = np.zeros(len(f), bool)
    inside[block] = True
    train, mean_f = part_of(columns[~inside], penalty), f[~inside].mean(axis=0)
    known, held, target = f[~inside] - mean_f, columns[inside] - train.mean, f[inside] - mean_f
    errors = np.full((len(alphas) + 1, f.shape[1]), np.inf)
    errors[0] = np.sum(target**2, axis=0)
    for i in np.flatnonzero(alphas[0] > 0):
        before = np.zeros(0, int)
        for place, kept in enumerate(train.kept(known[:, i], path, alphas[:, i])):
            if np.array_equal(kept, before):
                errors[place, i] = errors[max(place - 1, 0), i]
                continue
            rest = target[:, i] - held[:, kept] @ train.solve(known[:, i], kept)
            errors[place, i], before = np.sum(rest**2), kept
    return errors
