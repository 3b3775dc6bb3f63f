r"""Penalised least squares, factorised once, and its fits that leave out one fold each.

All of it follows from one matrix. With $H$ the columns without a penalty, the intercept's first, $K$ the
kernel of what has one and $f$ the integrands, the residuals of the fit are $\alpha = P f$,

$$ P = A A^\top - B B^\top, \qquad A = C^{-\top}, \quad C C^\top = K / \lambda + 1, \quad C^{-1} H = Q R,
   \quad B = A Q . $$

Leaving out the rows of a fold $F$ is as if each of them had an indicator of its own among the columns, so the
error of the prediction on them is $e_F = P_{FF}^{-1} \alpha_F$, and the intercept $c = \tau^\top f$ becomes
$c - \tau_F^\top e_F$. Rows that belong to no fold are fitted to by every fit. Without a kernel $C$ is 1, and
features with a penalty are columns with rows of the penalty's root below them.
"""

from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from .._linalg import TINY, cholesky, inverse_triangular, namespace, solve_triangular
from .._types import AnyArray

# where each fold starts and stops among all draws
type Folds = tuple[tuple[int, int], ...]

DEPENDENT = 1e-11  # of a column's size: if the columns before it leave less of it, it is not used
SAFE = (
    1e-3  # what the columns before must leave for normal equations, solved twice, to lose no digits
)
SAFER = 0.03  # the same for normal equations that are solved once
LEVERAGE = 1e-6  # of a direction: if the other folds know less of it, they are fitted to anew
WEAK = 1e-10  # the penalty of such a direction in a batch, or while jax compiles


@dataclass(frozen=True)
class HeldOut:
    """What control variates leave of f on draws that they were not fitted to.

    Attributes:
        residual: f - g on every draw, (n, k), g fitted to the other folds.
        note: how it was fitted.
        intercepts: of the fits that left out one fold each, (fold, k); None where there is one fit.
        variance: what the fit expects of the square of each draw's error, (n,), up to one factor for all
            draws: more for a draw far from the others. None where a solver does not know.
        folds: where each starts and stops; None where there is one fit.
        unseen: the variance of the mean that the residuals do not show, (k,); None for none.
        reason: why the residuals have no honest standard error; None where they have one.
    """

    residual: AnyArray
    note: str = ""
    intercepts: AnyArray | None = None
    variance: AnyArray | None = None
    folds: Folds | None = None
    unseen: AnyArray | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Coefficients:
    """A fit: intercepts (k,), and coefficients of columns (q, k), features (p, k) and kernel (n, k)."""

    intercept: AnyArray
    columns: AnyArray
    features: AnyArray
    kernel: AnyArray | None

    def of(self, some: slice) -> "Coefficients":
        """Those of some integrands."""
        kernel = None if self.kernel is None else self.kernel[..., some]
        columns, features = self.columns[..., some], self.features[..., some]
        return Coefficients(self.intercept[..., some], columns, features, kernel)


class Regression:
    r"""Penalised weighted least squares, factorised once.

    $$ \min_{c, b, g}\; \sum_i v_i (f_i - c - h_i b - g_i)^2 + \lambda \|g\|^2 $$

    It is solved in the space of draws if there is a kernel, and in that of coefficients otherwise. All
    arrays are NumPy's or all are jax's, and may have leading axes for as many regressions of one shape.

    Args:
        columns: $h$ without a penalty, (n, q); the intercept's is added.
        kernel: the matrix of $\langle k_i, k_j \rangle$ that $g$ is made of, (n, n).
        features: columns of $g$ with the sum of squares of its coefficients for its norm, (n, p).
        penalty: $\lambda$.
        weights: $v$ of the rows, (n,).

    >>> x = np.linspace(-1.0, 1.0, 20)[:, None]
    >>> held = Regression(x).leave_out(3 * x + 1, ((0, 10), (10, 20)))
    >>> np.allclose(held.residual - 3 * x, 1 - 3 * x), np.allclose(held.intercepts, 1)
    (True, True)
    """

    def __init__(
        self,
        columns: AnyArray | None = None,
        kernel: AnyArray | None = None,
        features: AnyArray | None = None,
        penalty: float | AnyArray = 1.0,
        weights: Float[AnyArray, " n"] | None = None,
    ):
        given = next(one for one in (columns, features, kernel) if one is not None)
        xp = namespace(columns, features, kernel)
        ones = xp.ones((*given.shape[:-1], 1), dtype=given.dtype)
        self.weights = weights
        self.root = None if weights is None else xp.sqrt(xp.asarray(weights))
        self.penalty = penalty
        self.free = 1 if columns is None else 1 + columns.shape[-1]
        parts = [ones, *(one for one in (columns, features) if one is not None)]
        matrix = scaled(xp.concat(parts, axis=-1), self.root)
        self.factor = None if kernel is None else _kernel_factor(kernel, penalty, self.root)
        # what regressions of the same kernel with other columns need as well: see `first`
        self.shared: dict[str, Any] = {}
        self.known: _Blocks | None = None  # of the folds that were asked for last
        if self.factor is not None:
            matrix = solve_triangular(self.factor, matrix)
        held = None if features is None else (self.free, penalty)
        self.basis, self.upper, self.sound = orthonormal(matrix, held)

    def first(self, count: int) -> "Regression":
        """The same with the first columns only, the intercept's among them: nothing is factorised."""
        made = copy(self)
        for name in ("tau", "_first_row"):
            vars(made).pop(name, None)
        made.basis, made.upper, made.free = self.basis[:, :count], self.upper[:count, :count], count
        made.pushed, made.known = self.pushed[:, :count], None
        return made

    def solve(self, f: AnyArray) -> Coefficients:
        """Fit to all rows: f is (n, k)."""
        xp = namespace(f, self.basis)
        y, centre = self._centring(f)
        white = y if self.factor is None else solve_triangular(self.factor, y)
        along = self.basis.mT @ white
        w = _solve_upper(self.upper, along)
        kernel = None
        if self.factor is not None:
            alpha = solve_triangular(self.factor, white - self.basis @ along, transposed=True)
            kernel = scaled(alpha, self.root) / xp.asarray(self.penalty)
        intercept = w[..., 0, :] + centre[..., 0, :]
        return Coefficients(intercept, w[..., 1 : self.free, :], w[..., self.free :, :], kernel)

    def leave_out(self, f: AnyArray, folds: Folds, expected: bool = True) -> HeldOut:
        """The residuals on every draw of the fit that left its fold out.

        Args:
            f: the integrands, (n, k).
            folds: the first rows, one after the other. Rows after them are held out by none.
            expected: whether the expected variance of each residual is wanted too.
        """
        y, centre = self._centred(f)
        stop, tau = folds[-1][1], self.tau[..., None]
        alpha, intercept = self._residuals(y, stop)
        blocks = self._blocks(folds)
        error = blocks.errors(alpha, y)
        intercepts = intercept - fold_sums(tau[..., :stop, :] * error, folds)
        residual = unscaled(error, self._root(folds)) + per_draw(intercepts, folds) + centre
        variance = blocks.diagonal() if expected else None
        if variance is not None and self.weights is not None:
            variance = variance / self.weights[:stop]
        return HeldOut(residual, "", intercepts + centre, variance, folds)

    def without_each(self, f: AnyArray, folds: Folds) -> list[Coefficients]:
        """The fits that leave out one fold each: those to f with the fold's predictions in its place."""
        xp = namespace(f, self.basis)
        y, _ = self._centred(f)
        error = unscaled(self._blocks(folds).errors(self._residuals(y)[0], y), self._root(folds))
        pad = xp.concat([error, xp.zeros_like(xp.asarray(f))[error.shape[-2] :]])
        row = xp.arange(f.shape[-2])[:, None]
        inside = [(row >= start) & (row < stop) for start, stop in folds]
        together = self.solve(xp.concat([f - xp.where(one, pad, 0.0) for one in inside], axis=-1))
        k = f.shape[-1]
        return [together.of(slice(i * k, (i + 1) * k)) for i in range(len(folds))]

    def _root(self, folds: Folds) -> AnyArray | None:
        """The roots of the rows that belong to folds."""
        return None if self.root is None else self.root[: folds[-1][1]]

    def averaging(self, folds: Folds) -> AnyArray:
        r"""The weights $w$ with which the mean of the held-out residuals is $w^\top f$: (n,).

        Where rows have weights $v$, the mean is that with weights $\sqrt v$.
        """
        xp = namespace(self.basis)
        n = folds[-1][1]
        share = xp.ones(n, dtype=self.tau.dtype)
        if self.root is not None:
            share = self.root[:n] / xp.mean(self.root[:n])
        count = per_draw(fold_sums(share[:, None], folds), folds)[:, 0]
        error = share if self.root is None else share / self.root[:n]
        right = ((error - count * self.tau[:n]) / n)[:, None]
        blocks = self._blocks(folds)
        z = blocks.solve(right)
        for start, stop in blocks.refits:
            z[start:stop] = 0.0
        if len(self.tau) > n:
            z = xp.concat([z, xp.zeros((len(self.tau) - n, 1), dtype=z.dtype)])
        weights = self._residuals(z)[0] + self.tau[:, None]
        for (start, stop), predictor in blocks.refits.items():
            weights[start:stop] += right[start:stop]
            others = np.r_[:start, stop : len(weights)]
            weights[others] -= predictor[:, : len(others)].T @ right[start:stop]
        return scaled(weights, self.root)[:, 0]

    @cached_property
    def tau(self) -> AnyArray:
        """The weights of the intercept of the fit to all rows, in units of the scaled rows."""
        return (self.pushed @ self._first_row[..., None])[..., 0]

    @cached_property
    def _first_row(self) -> AnyArray:
        """The first row of the inverse of R."""
        xp = namespace(self.upper)
        unit = xp.eye(self.upper.shape[-1], dtype=self.upper.dtype)[:, :1]
        if self.upper.ndim > 2:
            unit = xp.broadcast_to(unit, (*self.upper.shape[:-1], 1))
        return solve_triangular(self.upper.mT, unit)[..., 0]

    @cached_property
    def pushed(self) -> AnyArray:
        """B of P = A A' - B B'."""
        if self.factor is None:
            return self.basis
        return solve_triangular(self.factor, self.basis, transposed=True)

    def _whitened(self, y: AnyArray) -> AnyArray:
        """$C^{-1} y$, kept for the regressions that share the kernel while they are asked for the same y."""
        known = self.shared.get("whitened")
        if known is None or known[0] is not y:
            known = self.shared["whitened"] = (y, solve_triangular(self.factor, y))
        return known[1]

    def _outer(self, folds: Folds) -> AnyArray:
        """The blocks of A A' of P = A A' - B B', kept in the same way for the same folds."""
        known = self.shared.get("outer")
        if known is None or known[0] != folds:
            known = self.shared["outer"] = (folds, _outer_blocks(self.factor, folds))
        return known[1]

    def _centring(self, f: AnyArray) -> tuple[AnyArray, AnyArray]:
        """The integrands less their means, their rows scaled, and the means."""
        centre = namespace(f, self.basis).mean(f, axis=-2, keepdims=True)
        return scaled(f - centre, self.root), centre

    def _centred(self, f: AnyArray) -> tuple[AnyArray, AnyArray]:
        """The same, kept in the same way for the same integrands."""
        known = self.shared.get("centred")
        if known is None or known[0] is not f:
            known = self.shared["centred"] = (f, *self._centring(f))
        return known[1:]

    def _residuals(self, y: AnyArray, rows: int | None = None) -> tuple[AnyArray, AnyArray]:
        """P y, of the first rows if there is no kernel, and the intercept of the fit to all, (..., 1, k)."""
        if self.factor is None:
            along = self.basis.mT @ y
            alpha = y[..., :rows, :] - self.basis[..., :rows, :] @ along
        else:
            white = self._whitened(y)
            along = self.basis.mT @ white
            alpha = solve_triangular(self.factor, white - self.basis @ along, transposed=True)
        return alpha, (self._first_row[..., None, :] @ along)

    def _blocks(self, folds: Folds) -> "_Blocks":
        """Those of P, kept: further integrands cost a few products."""
        if self.known is None or self.known.folds != folds:
            self.known = self._made_blocks(folds)
        return self.known

    def _made_blocks(self, folds: Folds) -> "_Blocks":
        if self.factor is not None:
            return _kernel_blocks(self._outer(folds), self.pushed, folds)
        blocks, weak = _column_blocks(self.basis, folds)
        blocks.refits.update({folds[j]: self._predictor(*folds[j]) for j in weak})
        return blocks

    def _predictor(self, start: int, stop: int) -> AnyArray:
        """What the fit to the rows of the other folds predicts, as a matrix applied to those rows.

        Of all coefficients that fit them equally well, the smallest are taken, in units of the
        columns' sizes: a column of which they know nothing has coefficient 0. Rows of the penalty
        come last.
        """
        columns = self.basis @ self.upper
        p = columns.shape[1]
        ridge = np.where(np.arange(p) < self.free, 0.0, self.penalty)
        size = np.sqrt(np.sum(columns**2, axis=0) + ridge)
        below = np.diag(np.sqrt(ridge))[self.free :]
        rows = np.concatenate([columns[:start], columns[stop:], below]) / size
        return (columns[start:stop] / size) @ np.linalg.pinv(rows, rcond=DEPENDENT)


def orthonormal(
    matrix: AnyArray, penalised: tuple[int, Any] | None = None
) -> tuple[AnyArray, AnyArray, Any]:
    """Q and R of a matrix, and whether no column depends on those before it.

    By normal equations where they are safe, which is fastest, and by reflections otherwise. A
    column that depends on those before it is not used: that of Q is zero.

    Args:
        matrix: (n, p), with leading axes or without.
        penalised: the first column that has a penalty, and the penalty: as if below the matrix there
            were rows of its root, one for each such column.
    """
    xp = namespace(matrix)
    p = matrix.shape[-1]
    ridge = xp.zeros(p, dtype=matrix.dtype)
    if penalised is not None:
        ridge = xp.where(xp.arange(p) >= penalised[0], penalised[1], 0.0).astype(matrix.dtype)
    size = xp.sqrt(xp.linalg.vecdot(matrix, matrix, axis=-2) + ridge)
    size = xp.where(size > 0, size, 1.0)
    ridge = ridge / size**2
    eye = xp.eye(p, dtype=matrix.dtype)
    factor, worst = None, 0.0
    if xp is np:  # jax may not ask for values while it compiles
        gram = (matrix.mT @ matrix) / (size[..., None] * size[..., None, :])
        factor = cholesky(gram + ridge[..., None, :] * eye)
        worst = float(np.min(np.linalg.diagonal(factor)))  # NaN where there is no factor
    if factor is not None and worst > SAFE:
        inverse = inverse_triangular(factor).mT
        basis, upper = matrix @ (inverse / size[..., None]), factor.mT
        if worst < SAFER:
            again = cholesky(basis.mT @ basis + inverse.mT @ (ridge[..., None] * inverse))
            basis, upper = basis @ inverse_triangular(again).mT, again.mT @ upper
        return basis, upper * size[..., None, :], xp.ones(matrix.shape[:-2], dtype=bool)
    unit = matrix / size[..., None, :]
    if penalised is not None or matrix.shape[-2] < p:
        below = xp.broadcast_to(xp.sqrt(ridge)[..., None, :] * eye, (*matrix.shape[:-2], p, p))
        unit = xp.concat([unit, below], axis=-2)
    basis, upper = xp.linalg.qr(unit)
    used = xp.abs(xp.linalg.diagonal(upper)) > DEPENDENT  # the columns have length 1
    if xp is not np or not used.all():
        basis, upper = _dependent_last(unit, used)
    basis = xp.where(used[..., None, :], basis[..., : matrix.shape[-2], :], 0.0)
    upper = xp.where(used[..., None], upper, eye)
    return basis, upper * size[..., None, :], xp.all(used, axis=-1)


def _dependent_last(matrix: AnyArray, used: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Q and R with the columns in their old places, but those that are not used reflected last.

    A column that depends on those before it still takes a direction, which would be missing from the
    columns that come after it.
    """
    xp = namespace(matrix)
    order = xp.argsort(~used, axis=-1, stable=True)
    back = xp.argsort(order, axis=-1, stable=True)[..., None, :]
    order = xp.broadcast_to(order[..., None, :], matrix.shape)
    basis, upper = xp.linalg.qr(xp.take_along_axis(matrix, order, axis=-1))
    upper = xp.take_along_axis(upper, xp.broadcast_to(back, upper.shape), axis=-1)
    upper = xp.take_along_axis(upper, xp.broadcast_to(back.mT, upper.shape), axis=-2)
    return xp.take_along_axis(basis, xp.broadcast_to(back, basis.shape), axis=-1), xp.triu(upper)


@dataclass(frozen=True)
class _Blocks:
    r"""The blocks of P, one for each fold, padded to one size, and their inverses.

    They are matrices as large as the fold, or, if `inner` is given, as large as the number
    of columns $B$: $(1 - B B^\top)^{-1} = 1 + B (1 - B^\top B)^{-1} B^\top$.

    A fold that alone knows a direction has no inverse. There `refits` has the predictor from the other
    rows; in a batch, or while jax compiles, a weak penalty makes the error in that direction y itself.
    """

    matrix: AnyArray  # (..., fold, size, size)
    factor: AnyArray  # lower triangular
    inner: AnyArray | None  # B of each fold, (..., fold, size, p)
    weak: AnyArray | None  # the penalty of each fold
    folds: Folds
    refits: dict[tuple[int, int], AnyArray] = field(default_factory=dict)

    def errors(self, alpha: AnyArray, y: AnyArray) -> AnyArray:
        """The errors of the predictions on all folds, one below the other, from the residuals of all rows."""
        if self.weak is not None:
            stop = self.folds[-1][1]
            alpha = alpha[..., :stop, :] + per_draw(self.weak, self.folds) * y[..., :stop, :]
        error = self.solve(alpha)
        for (start, stop), predictor in self.refits.items():
            others = np.concatenate([y[:start], y[stop:]])
            error[start:stop] = y[start:stop] - predictor[:, : len(others)] @ others
        return error

    def solve(self, right: AnyArray) -> AnyArray:
        """The inverses applied to the rows of the folds."""
        right = fold_rows(right, self.folds)
        if self.inner is None:
            return unfolded(self._inverted(right), self.folds)
        error = right + self.inner @ self._inverted(self.inner.mT @ right)
        return unfolded(error, self.folds)

    def _inverted(self, right: AnyArray) -> AnyArray:
        many = isinstance(right, np.ndarray) and right.ndim > 3
        if many:  # regressions, for few integrands
            return np.linalg.solve(self.matrix, right)
        return self.inverse.mT @ (self.inverse @ right)

    @cached_property
    def inverse(self) -> AnyArray:
        """Those of the factors."""
        return inverse_triangular(self.factor)

    def diagonal(self) -> AnyArray:
        """The diagonals of the blocks' inverses, one below the other: (..., n)."""
        xp = namespace(self.inverse)
        if self.inner is None:
            found = xp.sum(self.inverse**2, axis=-2)
        else:
            found = 1 + xp.sum((self.inner @ self.inverse.mT) ** 2, axis=-1)
        found = unfolded(found[..., None], self.folds)[..., 0]
        for (start, stop), predictor in self.refits.items():
            found[start:stop] = 1 + np.sum(predictor**2, axis=1)
        return found


def _kernel_blocks(outer: AnyArray, pushed: AnyArray, folds: Folds) -> _Blocks:
    """Those of P = A A' - B B', from those of A A'."""
    xp = namespace(outer)
    b = fold_rows(pushed, folds)
    block = outer - b @ b.mT
    floor = TINY / 8 * xp.sum(xp.linalg.diagonal(block), axis=-1)[:, None]
    _, inside = _places(folds)
    block = block + xp.where(inside, floor, 1.0)[..., None] * xp.eye(
        block.shape[-1], dtype=block.dtype
    )
    return _Blocks(block, cholesky(block), None, None, folds)


def _outer_blocks(factor: AnyArray, folds: Folds) -> AnyArray:
    """The blocks of A A' with A the transposed inverse of a lower triangular factor."""
    inverse = inverse_triangular(factor)
    if not isinstance(inverse, np.ndarray):
        rows = fold_rows(inverse.T, folds)
        return rows @ rows.mT
    size = max(stop - start for start, stop in folds)
    blocks = np.zeros((len(folds), size, size))
    for block, (start, stop) in zip(blocks, folds, strict=True):
        column = inverse[start:, start:stop]  # nothing above the diagonal
        block[: stop - start, : stop - start] = column.T @ column
    return blocks


def _column_blocks(basis: AnyArray, folds: Folds) -> tuple[_Blocks, list[int]]:
    """Those of P = 1 - Q Q', by the smaller of two matrices, and the folds to be fitted to anew."""
    xp = namespace(basis)
    own = fold_rows(basis, folds)
    size, p = own.shape[-2:]
    outer = own if size <= p else own.mT
    left = xp.eye(min(size, p), dtype=own.dtype) - outer @ outer.mT
    factor = cholesky(left)
    safe = xp.min(xp.linalg.diagonal(factor), axis=-1) > LEVERAGE  # not if it is NaN
    weak = None
    if xp is not np or not safe.all():
        weak = xp.where(safe, 0.0, WEAK)[..., None]
        left = left + weak[..., None] * xp.eye(left.shape[-1], dtype=left.dtype)
        factor = cholesky(left)
    alone = xp is np and basis.ndim == 2
    inner = None if size <= p else own
    blocks = _Blocks(left, factor, inner, weak, folds)
    return blocks, np.flatnonzero(~safe).tolist() if alone else []


def _kernel_factor(kernel: AnyArray, penalty: Any, root: AnyArray | None) -> AnyArray:
    """C of C C' = K / penalty + 1, the rows scaled, with what rounding needs on the diagonal."""
    xp = namespace(kernel)
    matrix = kernel / penalty
    if root is not None:
        matrix = matrix * root[:, None] * root
    diagonal = xp.linalg.diagonal(matrix)
    shift = xp.maximum(xp.asarray(1.0, dtype=matrix.dtype), TINY * xp.sum(diagonal))
    if xp is np:
        matrix[np.diag_indices(len(matrix))] += shift
    else:
        matrix = matrix + shift * xp.eye(len(matrix), dtype=matrix.dtype)
    return cholesky(matrix)


def _solve_upper(upper: AnyArray, right: AnyArray) -> AnyArray:
    return solve_triangular(upper.mT, right, transposed=True)


def scaled(rows: AnyArray, root: AnyArray | None) -> AnyArray:
    """Every row times its root: (n, p)."""
    return rows if root is None else root[:, None] * rows


def unscaled(rows: AnyArray, root: AnyArray | None) -> AnyArray:
    """Every row over its root: (n, p)."""
    return rows if root is None else rows / root[:, None]


def _places(folds: Folds) -> tuple[np.ndarray, np.ndarray]:
    """The draws of each fold, and which of them are not padding: (fold, size) each.

    Padding repeats the first draw of the fold.
    """
    start, stop = np.array(folds).T
    place = start[:, None] + np.arange(max(stop - start))
    inside = place < stop[:, None]
    return np.where(inside, place, start[:, None]), inside


def fold_rows(values: AnyArray, folds: Folds) -> AnyArray:
    """The rows of each fold, padded with zeros: (..., fold, size, k)."""
    place, inside = _places(folds)
    if inside.all() and folds[0][0] == 0:
        n = folds[-1][1]
        return values[..., :n, :].reshape(*values.shape[:-2], *place.shape, values.shape[-1])
    return namespace(values).where(inside[..., None], values[..., place, :], 0.0)


def unfolded(parts: AnyArray, folds: Folds) -> AnyArray:
    """The rows of all folds one below the other, without the padding: (..., n, k)."""
    _, inside = _places(folds)
    flat = parts.reshape(*parts.shape[:-3], -1, parts.shape[-1])
    return flat if inside.all() else flat[..., np.flatnonzero(inside), :]


def fold_sums(values: AnyArray, folds: Folds) -> AnyArray:
    """The sums of the rows of each fold, (..., fold, k)."""
    return namespace(values).sum(fold_rows(values, folds), axis=-2)


def per_draw(values: AnyArray, folds: Folds) -> AnyArray:
    """What each fold has, (..., fold, k), at every draw of it: (..., n, k)."""
    return namespace(values).repeat(values, np.diff(np.array(folds), axis=1)[:, 0], axis=-2)


__all__ = ["Coefficients", "Folds", "HeldOut", "Regression"]
