"""Cross-fitting by ordinary least squares, in NumPy: nothing is compiled."""

import numpy as np

from ..solvers import Folds
from ..solvers._problem import LeftOut

RANK = 1e-11  # of the largest: a column that is smaller once the others are taken away is not one


def cross_fit(features: np.ndarray, f: np.ndarray, folds: Folds) -> LeftOut | None:
    r"""What leaving out each fold in turn gives, by least squares with an intercept.

    With $Q R$ the columns, and $e = f - Q Q^\top f$, the errors on a fold $B$ that was left out are
    $(1 - Q_B Q_B^\top)^{-1} e_B$: see `docs/math.md`.

    Args:
        features: the columns beside the intercept's, (n, p).
        f: the integrands, (n, k).
        folds: where each starts and stops.
    """
    n = len(f)
    centre = f.mean(axis=0)
    columns = np.concatenate([np.ones((n, 1)), features / np.linalg.norm(features, axis=0)], axis=1)
    basis, upper = np.linalg.qr(columns)
    size = np.abs(np.diag(upper))
    if not size.min() > RANK * size.max():
        return None
    rest = f - centre
    rest = rest - basis @ (basis.T @ rest)
    tau = basis @ np.linalg.solve(upper.T, np.eye(len(upper))[0])
    whole = tau @ (f - centre)
    variance, intercepts = np.empty(n), np.empty((len(folds), f.shape[1]))
    for i, (start, stop) in enumerate(folds):
        error, variance[start:stop] = _left_out(basis[start:stop], rest[start:stop])
        intercepts[i] = whole - tau[start:stop] @ error
        rest[start:stop] = error + intercepts[i]
    return LeftOut(rest + centre, variance, intercepts + centre)


def _left_out(own: np.ndarray, rest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""$(1 - Q Q^\top)^{-1} e$ and the diagonal of the inverse, by the smaller of two inverses."""
    size, p = own.shape
    if size <= p:
        inverse = np.linalg.inv(np.eye(size) - own @ own.T)
        return inverse @ rest, np.diag(inverse)
    inverse = np.linalg.inv(np.eye(p) - own.T @ own)
    half = own @ inverse
    return rest + half @ (own.T @ rest), 1 + (half * own).sum(axis=1)
