"""Cross-fitting by ordinary least squares, in NumPy: nothing is compiled."""

import numpy as np

from ..solvers import Folds
from ..solvers._problem import LeftOut
from ..solvers._rows import Root, scaled, unscaled

RANK = 1e-11  # of the largest: a column that is smaller once the others are taken away is not one
LEVERAGE = 1e-6  # the same on all folds but one, of columns that are orthonormal on all


def cross_fit(
    features: np.ndarray, f: np.ndarray, folds: Folds, root: Root = None
) -> LeftOut | None:
    r"""What leaving out each fold in turn gives, by least squares with an intercept.

    With $Q R$ the columns, and $e = f - Q Q^\top f$, the errors on a fold $B$ that was left out are
    $(1 - Q_B Q_B^\top)^{-1} e_B$: see `docs/math.md`. None where columns depend on each other, on all
    draws or on all but those of a fold.

    Args:
        features: the columns beside the intercept's, (..., n, p).
        f: the integrands, (..., n, k).
        folds: where each starts and stops.
        root: of the weights of the squares, (n,), where draws have weights.
    """
    centre = f.mean(axis=-2, keepdims=True)
    ones = scaled(np.ones((*features.shape[:-1], 1)), root)
    features = scaled(features, root)
    norm = np.linalg.norm(features, axis=-2, keepdims=True)
    unit = features / np.where(norm > 0, norm, 1.0)
    basis, upper = np.linalg.qr(np.concatenate([ones, unit], axis=-1))
    size = np.abs(np.diagonal(upper, axis1=-2, axis2=-1))
    if not np.all(size.min(axis=-1) > RANK * size.max(axis=-1)):
        return None
    rest = scaled(f - centre, root)
    tau = basis @ np.linalg.solve(upper.mT, np.eye(upper.shape[-1])[:, :1])
    whole = tau.mT @ rest
    rest = rest - basis @ (basis.mT @ rest)
    variance, intercepts = np.empty(f.shape[:-1]), []
    for start, stop in folds:
        fold = np.s_[..., start:stop, :]
        inverse = _inverse(basis[fold])
        if inverse is None:
            return None
        error, variance[..., start:stop] = _left_out(basis[fold], rest[fold], inverse)
        intercepts.append(whole - tau[fold].mT @ error)
        own = None if root is None else root[start:stop]
        rest[fold] = unscaled(error, own) + intercepts[-1]
    variance = variance if root is None else variance / root**2
    return LeftOut(rest + centre, variance, np.concatenate(intercepts, axis=-2) + centre)


def _inverse(own: np.ndarray) -> np.ndarray | None:
    r"""The smaller of $(1 - Q Q^\top)^{-1}$ and $(1 - Q^\top Q)^{-1}$; None where there is none."""
    size, p = own.shape[-2:]
    outer = own if size <= p else own.mT
    left = np.eye(min(size, p)) - outer @ outer.mT
    try:
        factor = np.linalg.cholesky(left)
    except np.linalg.LinAlgError:
        return None
    if not np.all(np.diagonal(factor, axis1=-2, axis2=-1) > LEVERAGE):
        return None
    return np.linalg.inv(left)


def _left_out(
    own: np.ndarray, rest: np.ndarray, inverse: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    r"""$(1 - Q Q^\top)^{-1} e$ and the diagonal of the inverse."""
    if own.shape[-2] <= own.shape[-1]:
        return inverse @ rest, np.diagonal(inverse, axis1=-2, axis2=-1)
    half = own @ inverse
    return rest + half @ (own.mT @ rest), 1 + (half * own).sum(axis=-1)
