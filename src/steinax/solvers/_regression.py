r"""Penalised least squares from one factorisation, and the fits that leave out each fold in turn.

Everything follows from one matrix. With $H$ the columns without a penalty, the intercept's first, $K$ the
kernel of the penalised terms and $f$ the integrands, the residuals of the fit are $\alpha = P f$,

$$ P = A A^\top - B B^\top, \qquad A = C^{-\top}, \quad C C^\top = K / \lambda + 1, \quad C^{-1} H = Q R,
   \quad B = A Q . $$

Leaving out the rows of a fold $F$ amounts to adding an indicator column for each of them, so the error of the
prediction on them is $e_F = P_{FF}^{-1} \alpha_F$, and the intercept $c = \tau^\top f$ becomes
$c - \tau_F^\top e_F$. Rows that belong to no fold are used by every fit. Without a kernel $C$ is 1, and
features with a penalty are columns with rows of the penalty's factor below them.
"""

from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from .._numerics import TINY, cholesky, inverse_triangular, namespace, solve_triangular
from .._types import AnyArray, Values

# where each fold starts and stops among all draws
type Folds = tuple[tuple[int, int], ...]

DEPENDENT = 1e-11  # relative residual on the columns before, below which a column is not used
SAFE = 1e-3  # relative residual above which normal equations, solved twice, lose no digits
SAFER = 0.03  # relative residual above which normal equations, solved once, lose no digits
LEVERAGE = 1e-6  # of a direction in the other folds, below which the fit to them is recomputed
WEAK = 1e-10  # the penalty of such a direction in a batch, or under jax.jit


@dataclass(frozen=True)
class HeldOut:
    """The residuals of control variates on held-out draws.

    Attributes:
        residual: f - g on every draw, (n, k), g fitted to the other folds.
        note: how the control variates were fitted.
        intercepts: the mean of f - g on the draws outside each fold, g fitted without the fold, (fold, k);
            None for a single fit.
        without: the estimate without the draws of each fold, (fold, k), to first order; None if the solver
            does not compute it, NaN if a fold had to be refitted.
        variance: the expected square of each draw's error, (n,), up to a common factor: larger for a draw
            far from the others. None if the solver does not compute it.
        folds: where each fold starts and stops; None for a single fit.
        unseen: the variance of the mean that the residuals do not show, (k,); None for none.
        reason: why the residuals give no valid standard error; None if they do.
        beside: f - g on the training points, (training, k), each held out with a fold; None without any.
        penalised: whether fits have a penalty, so that they may be flexible.
        share: of each draw, and then of each training point, in the spread of f - g: see `typical_share`.
    """

    residual: AnyArray
    note: str = ""
    intercepts: AnyArray | None = None
    variance: AnyArray | None = None
    folds: Folds | None = None
    unseen: AnyArray | None = None
    reason: str | None = None
    beside: AnyArray | None = None
    share: np.ndarray | None = None
    without: AnyArray | None = None
    penalised: bool = False

    def on_draws(self, draw: np.ndarray | None, share: np.ndarray | None) -> "HeldOut":
        """Separate the residuals on draws from those on training points.

        Args:
            draw: which rows are draws, (rows,); None for all.
            share: of each row in the spread, (rows,).
        """
        if draw is None or draw.all():
            return self
        residual = np.asarray(self.residual)
        variance = None if self.variance is None else np.asarray(self.variance)[draw]
        folds = None if self.folds is None else on_draws(self.folds, draw)
        residual, beside = residual[draw], residual[~draw]
        if share is not None:
            share = np.concatenate([share[draw], share[~draw]])
        changed = {"residual": residual, "variance": variance, "folds": folds}
        return replace(self, **changed, beside=beside, share=share)

    @property
    def excess(self) -> np.ndarray:
        """The variance of f - g that training points show, beyond that of the draws' residuals, (k,).

        A few draws often miss the region where a fit is poor. Training points show it, and fits to them make
        the residuals of the draws small outside that region.
        """
        residual = np.asarray(self.residual, np.float64)
        if self.beside is None or self.share is None:
            return np.zeros(residual.shape[1])
        both = np.concatenate([residual, self.beside]) - residual.mean(axis=0)
        return np.maximum(self.share @ both**2 - residual.var(axis=0), 0.0)


@dataclass(frozen=True)
class Coefficients:
    """A fit: intercepts (k,), and coefficients of columns (q, k), features (p, k) and kernel (n, k)."""

    intercept: AnyArray
    columns: AnyArray
    features: AnyArray
    kernel: AnyArray | None

    def of(self, some: slice) -> "Coefficients":
        """Select the fits of some integrands."""
        kernel = None if self.kernel is None else self.kernel[..., some]
        columns, features = self.columns[..., some], self.features[..., some]
        return Coefficients(self.intercept[..., some], columns, features, kernel)


class Regression:
    r"""Penalised weighted least squares from one factorisation.

    $$ \min_{c, b, g}\; \sum_i w_i^2 (f_i - c - h_i b - g_i)^2 + \lambda \|g\|^2 $$

    It is solved in dual form if there is a kernel, and in primal form otherwise. Arrays are all NumPy's or
    all jax's, and may have leading axes for a batch of regressions of the same shape.

    Args:
        columns: $h$ without a penalty, (n, q); the intercept's column is added.
        kernel: the kernel matrix $\langle k_i, k_j \rangle$ of $g$, (n, n).
        features: the columns of $g$, whose norm is then that of its coefficients, (n, p).
        penalty: $\lambda$.
        weights: $w$ of the rows, (n,): importance weights, squared as in the variance of a weighted mean.

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
        template = next(array for array in (columns, features, kernel) if array is not None)
        xp = namespace(columns, features, kernel)
        ones = xp.ones((*template.shape[:-1], 1), dtype=template.dtype)
        self.weights: AnyArray | None = None if weights is None else xp.asarray(weights)
        self.penalty: float | AnyArray = penalty
        self.free: int = 1 if columns is None else 1 + columns.shape[-1]
        parts = [ones, *(array for array in (columns, features) if array is not None)]
        matrix = scaled(xp.concat(parts, axis=-1), self.weights)
        self.factor: AnyArray | None = (
            None if kernel is None else _kernel_factor(kernel, penalty, self.weights)
        )
        # a cache shared with regressions on the same kernel with fewer columns: see `first`
        self.shared: dict[str, Any] = {}
        self.known: Blocks | None = None  # of the last folds used
        if self.factor is not None:
            matrix = solve_triangular(self.factor, matrix)
        penalised = None if features is None else (self.free, penalty)
        self.basis: AnyArray
        self.upper: AnyArray
        self.sound: AnyArray
        self.basis, self.upper, self.sound = orthonormal(matrix, penalised)

    def first(self, count: int) -> "Regression":
        """Restrict the regression to the first columns, intercept included, without a new factorisation."""
        view = copy(self)
        for name in ("tau", "_first_row"):
            vars(view).pop(name, None)
        view.basis, view.upper, view.free = self.basis[:, :count], self.upper[:count, :count], count
        view.pushed, view.known = self.pushed[:, :count], None
        return view

    def solve(self, f: AnyArray) -> Coefficients:
        """Fit to all rows: f is (n, k)."""
        xp = namespace(f, self.basis)
        y, centre = self._centring(f)
        white = y if self.factor is None else solve_triangular(self.factor, y)
        projection = self.basis.mT @ white
        w = _solve_upper(self.upper, projection)
        kernel = None
        if self.factor is not None:
            alpha = solve_triangular(self.factor, white - self.basis @ projection, transposed=True)
            kernel = scaled(alpha, self.weights) / xp.asarray(self.penalty)
        intercept = w[..., 0, :] + centre[..., 0, :]
        return Coefficients(intercept, w[..., 1 : self.free, :], w[..., self.free :, :], kernel)

    def leave_out(
        self, f: AnyArray, folds: Folds, expected: bool = True, draw: np.ndarray | None = None
    ) -> HeldOut:
        """Compute the held-out residual of every draw, from the fit without its fold.

        Args:
            f: the integrands, (n, k).
            folds: consecutive blocks of the first rows. Rows after them are never held out.
            expected: whether to compute the expected variance of each residual too.
            draw: which rows are draws, (n,); all by default. Training points have no part in intercepts.
        """
        y, centre = self._centred(f)
        stop, tau = folds[-1][1], self.tau[..., None]
        alpha, intercept = self._residuals(y, stop)
        blocks = self.blocks(folds)
        error = blocks.errors(alpha, y)
        intercepts = intercept - fold_sums(tau[..., :stop, :] * error, folds)
        residual = unscaled(error, self._held_out(folds)) + per_draw(intercepts, folds) + centre
        if draw is not None and not draw.all():
            intercepts = intercepts + self._means_on_draws(y, error, folds, draw)
        without = None
        if len(folds) > 1:
            without = self._without(alpha, error, intercept, folds, draw) + centre
            without = np.nan * without if blocks.refits else without
        variance = blocks.diagonal if expected else None
        if variance is not None and self.weights is not None:
            variance = variance / self.weights[:stop] ** 2
        penalised = self.factor is not None or self.upper.shape[-1] > self.free
        rest = {"without": without, "penalised": penalised}
        return HeldOut(residual, "", intercepts + centre, variance, folds, **rest)

    def _without(
        self,
        alpha: AnyArray,
        error: AnyArray,
        intercept: AnyArray,
        folds: Folds,
        draw: np.ndarray | None,
    ) -> AnyArray:
        r"""The mean of the held-out residuals without the draws of each fold, to first order: (fold, k).

        Leaving out $B$ changes the error of the fit without another fold $F$ to $e_F - P_{FF}^{-1} P_{FB}
        e_B$, where terms of second order in $P_{FB}$ are neglected. Summed over all $F$, that is one product
        with $P$.
        """
        xp, blocks, stop = namespace(error), self.blocks(folds), folds[-1][1]
        tau, share = self.tau[..., :stop, None], xp.ones((stop, 1), dtype=error.dtype)
        weights = share if self.weights is None else self.weights[:stop, None]
        if draw is not None:
            share = xp.where(draw[:stop, None], share, 0.0)
        count = fold_sums(share * weights, folds)  # by fold, and below for each row
        size, rest = per_draw(count, folds), xp.sum(count) - count
        right = share - size * tau
        back = self._times(blocks.solve(right)) - right
        others = self._times(size * error) - size * alpha[..., :stop, :]
        own = fold_sums(right * error, folds)
        total = xp.sum(own, axis=-2, keepdims=True) - own - fold_sums(back * error, folds)
        shift = fold_sums(blocks.solve(tau) * others, folds)
        return (total + shift) / rest + intercept - fold_sums(tau * error, folds)

    def _times(self, z: AnyArray) -> AnyArray:
        """Compute P z on the rows of z, the first rows; z is zero on the others."""
        xp, rows, n = namespace(z), z.shape[-2], self.basis.shape[-2]
        if rows < n:
            pad = xp.zeros((*z.shape[:-2], n - rows, z.shape[-1]), dtype=z.dtype)
            z = xp.concat([z, pad], axis=-2)
        white = z if self.factor is None else solve_triangular(self.factor, z)
        white = white - self.basis @ (self.basis.mT @ white)
        if self.factor is not None:
            white = solve_triangular(self.factor, white, transposed=True)
        return white[..., :rows, :]

    def _means_on_draws(
        self, y: AnyArray, error: AnyArray, folds: Folds, draw: np.ndarray
    ) -> AnyArray:
        r"""The mean residual of the fit without each fold, on the draws outside it: (fold, k).

        That fit is the fit to all rows with $f_F - e_F$ in place of $f_F$, so its residuals are
        $P (f - e_F)$, and zero on the fold. Over all rows they add up to zero, but not over the draws.
        """
        ones = np.ones(len(draw)) if self.weights is None else np.asarray(self.weights)
        share, stop = np.where(draw, ones, 0.0)[:, None], folds[-1][1]
        white = share if self.factor is None else solve_triangular(self.factor, share)
        white = white - self.basis @ (self.basis.mT @ white)
        of_draws = white if self.factor is None else solve_triangular(self.factor, white, True)
        total = of_draws.mT @ y - fold_sums(of_draws[..., :stop, :] * error, folds)
        return total / (np.sum(share**2) - fold_sums(share[:stop] ** 2, folds))

    def without_each(self, f: AnyArray, folds: Folds) -> list[Coefficients]:
        """Compute the fit without each fold, by fitting f with held-out predictions in place of the fold."""
        xp = namespace(f, self.basis)
        y, _ = self._centred(f)
        error = unscaled(self.blocks(folds).errors(self._residuals(y)[0], y), self._held_out(folds))
        pad = xp.concat([error, xp.zeros_like(xp.asarray(f))[error.shape[-2] :]])
        row = xp.arange(f.shape[-2])[:, None]
        inside = [(row >= start) & (row < stop) for start, stop in folds]
        fits = self.solve(xp.concat([f - xp.where(mask, pad, 0.0) for mask in inside], axis=-1))
        k = f.shape[-1]
        return [fits.of(slice(i * k, (i + 1) * k)) for i in range(len(folds))]

    def _held_out(self, folds: Folds) -> AnyArray | None:
        """The weights of the rows that belong to folds."""
        return None if self.weights is None else self.weights[: folds[-1][1]]

    def averaging(self, folds: Folds) -> AnyArray:
        r"""The weights $w$ with which the mean of the held-out residuals is $w^\top f$: (n,).

        Where rows have weights, the mean is weighted by them.
        """
        xp = namespace(self.basis)
        n = folds[-1][1]
        share = xp.ones(n, dtype=self.tau.dtype)
        if self.weights is not None:
            share = self.weights[:n] / xp.mean(self.weights[:n])
        count = per_draw(fold_sums(share[:, None], folds), folds)[:, 0]
        error = share if self.weights is None else share / self.weights[:n]
        right = ((error - count * self.tau[:n]) / n)[:, None]
        blocks = self.blocks(folds)
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
        return scaled(weights, self.weights)[:, 0]

    @cached_property
    def tau(self) -> AnyArray:
        """The weights of the scaled rows in the intercept of the fit to all rows."""
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
        """The matrix B of P = A A' - B B'."""
        if self.factor is None:
            return self.basis
        return solve_triangular(self.factor, self.basis, transposed=True)

    def _whitened(self, y: AnyArray) -> AnyArray:
        """Compute $C^{-1} y$, cached for all regressions that share the kernel while y is the same."""
        cached = self.shared.get("whitened")
        if cached is None or cached[0] is not y:
            cached = self.shared["whitened"] = (y, solve_triangular(self.factor, y))
        return cached[1]

    def _outer(self, folds: Folds) -> AnyArray:
        """The diagonal blocks of A A' in P = A A' - B B', cached while the folds are the same."""
        cached = self.shared.get("outer")
        if cached is None or cached[0] != folds:
            cached = self.shared["outer"] = (folds, _outer_blocks(self.factor, folds))
        return cached[1]

    def _centring(self, f: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Centre the integrands and scale their rows; also return their means."""
        centre = namespace(f, self.basis).mean(f, axis=-2, keepdims=True)
        return scaled(f - centre, self.weights), centre

    def _centred(self, f: AnyArray) -> tuple[AnyArray, AnyArray]:
        """The centred and scaled integrands and their means, cached while the integrands are the same."""
        cached = self.shared.get("centred")
        if cached is None or cached[0] is not f:
            cached = self.shared["centred"] = (f, *self._centring(f))
        return cached[1:]

    def _residuals(self, y: AnyArray, rows: int | None = None) -> tuple[AnyArray, AnyArray]:
        """Compute P y, of the first rows if there is no kernel, and the fit's intercepts, (..., 1, k)."""
        if self.factor is None:
            projection = self.basis.mT @ y
            alpha = y[..., :rows, :] - self.basis[..., :rows, :] @ projection
        else:
            white = self._whitened(y)
            projection = self.basis.mT @ white
            alpha = solve_triangular(self.factor, white - self.basis @ projection, transposed=True)
        return alpha, (self._first_row[..., None, :] @ projection)

    def blocks(self, folds: Folds) -> "Blocks":
        """The blocks of P, cached, so that further integrands cost a few products."""
        if self.known is None or self.known.folds != folds:
            self.known = self._made_blocks(folds)
        return self.known

    def _made_blocks(self, folds: Folds) -> "Blocks":
        if self.factor is not None:
            return _kernel_blocks(self._outer(folds), self.pushed, folds)
        blocks, weak = _column_blocks(self.basis, folds)
        blocks.refits.update({folds[j]: self._predictor(*folds[j]) for j in weak})
        return blocks

    def _predictor(self, start: int, stop: int) -> AnyArray:
        """The matrix that maps the rows outside a fold to their predictions of the fold.

        Of all coefficients that fit equally well, the smallest are taken, in units of the columns'
        sizes: a column that vanishes outside the fold has coefficient 0. Rows of the penalty come last.
        """
        columns = self.basis @ self.upper
        p = columns.shape[1]
        ridge = np.where(np.arange(p) < self.free, 0.0, self.penalty)
        size = np.sqrt(np.sum(columns**2, axis=0) + ridge)
        size = np.where(size > 0, size, 1.0)
        below = np.diag(np.sqrt(ridge))[self.free :]
        rows = np.concatenate([columns[:start], columns[stop:], below]) / size
        return (columns[start:stop] / size) @ np.linalg.pinv(rows, rcond=DEPENDENT)


def orthonormal(
    matrix: AnyArray, penalised: tuple[int, Any] | None = None
) -> tuple[AnyArray, AnyArray, Any]:
    """Compute Q and R of a matrix, and whether its columns are linearly independent.

    It uses normal equations where they are accurate, which is fastest, and reflections otherwise. A
    column that depends on those before it is not used: its column of Q is zero.

    Args:
        matrix: (..., n, p).
        penalised: the first column that has a penalty, and the penalty: equivalent to rows of its
            square root below the matrix, one for each such column.
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
    if xp is np:  # values are not available under jax.jit
        gram = (matrix.mT @ matrix) / (size[..., None] * size[..., None, :])
        factor = cholesky(gram + ridge[..., None, :] * eye)
        worst = float(np.min(np.linalg.diagonal(factor)))  # NaN where there is no factor
    if factor is not None and worst > SAFE:
        inverse = inverse_triangular(factor).mT
        basis, upper = matrix @ (inverse / size[..., None]), factor.mT
        if worst < SAFER:
            second = cholesky(basis.mT @ basis + inverse.mT @ (ridge[..., None] * inverse))
            basis, upper = basis @ inverse_triangular(second).mT, second.mT @ upper
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
    """Compute Q and R in the original order of columns, but with unused columns reflected last.

    A column that depends on those before it would still take up a direction, which the columns after it
    would then lack.
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
class Blocks:
    r"""The diagonal blocks of P, one for each fold, padded to one size, and their inverses.

    They are as large as the fold or, if `inner` is given, as the number of columns of $B$:
    $(1 - B B^\top)^{-1} = 1 + B (1 - B^\top B)^{-1} B^\top$.

    If a direction occurs in one fold only, its block has no inverse. Then `refits` has the predictor from the
    other rows; in a batch, or under jax.jit, a weak penalty makes the error in that direction y itself.
    """

    matrix: AnyArray  # (..., fold, size, size)
    factor: AnyArray  # lower triangular
    inner: AnyArray | None  # B of each fold, (..., fold, size, p)
    weak: AnyArray | None  # the penalty of each fold
    folds: Folds
    refits: dict[tuple[int, int], AnyArray] = field(default_factory=dict)

    def errors(self, alpha: AnyArray, y: AnyArray) -> AnyArray:
        """Compute the held-out errors of all folds, (..., n, k), from the residuals of the full fit."""
        if self.weak is not None:
            stop = self.folds[-1][1]
            alpha = alpha[..., :stop, :] + per_draw(self.weak, self.folds) * y[..., :stop, :]
        error = self.solve(alpha)
        for (start, stop), predictor in self.refits.items():
            others = np.concatenate([y[:start], y[stop:]])
            error[start:stop] = y[start:stop] - predictor[:, : len(others)] @ others
        return error

    def solve(self, right: AnyArray) -> AnyArray:
        """Apply the inverse of each block to the rows of its fold."""
        right = fold_rows(right, self.folds)
        if self.inner is None:
            return unfolded(self._inverted(right), self.folds)
        error = right + self.inner @ self._inverted(self.inner.mT @ right)
        return unfolded(error, self.folds)

    def _inverted(self, right: AnyArray) -> AnyArray:
        is_batch = isinstance(right, np.ndarray) and right.ndim > 3
        if is_batch:  # many regressions with few integrands each
            return np.linalg.solve(self.matrix, right)
        return self.inverse.mT @ (self.inverse @ right)

    @cached_property
    def inverse(self) -> AnyArray:
        """The inverses of the triangular factors of the blocks."""
        return inverse_triangular(self.factor)

    @cached_property
    def diagonal(self) -> AnyArray:
        """The diagonals of the blocks' inverses, one below the other: (..., n)."""
        xp = namespace(self.inverse)
        if self.inner is None:
            values = xp.sum(self.inverse**2, axis=-2)
        else:
            values = 1 + xp.sum((self.inner @ self.inverse.mT) ** 2, axis=-1)
        values = unfolded(values[..., None], self.folds)[..., 0]
        for (start, stop), predictor in self.refits.items():
            values[start:stop] = 1 + np.sum(predictor**2, axis=1)
        return values


def _kernel_blocks(outer: AnyArray, pushed: AnyArray, folds: Folds) -> Blocks:
    """Compute the blocks of P = A A' - B B' from those of A A'."""
    xp = namespace(outer)
    b = fold_rows(pushed, folds)
    block = outer - b @ b.mT
    floor = TINY / 8 * xp.sum(xp.linalg.diagonal(block), axis=-1)[:, None]
    _, inside = _places(folds)
    block = block + xp.where(inside, floor, 1.0)[..., None] * xp.eye(
        block.shape[-1], dtype=block.dtype
    )
    return Blocks(block, cholesky(block), None, None, folds)


def _outer_blocks(factor: AnyArray, folds: Folds) -> AnyArray:
    """Compute the blocks of A A', with A the transposed inverse of a lower triangular factor."""
    inverse = inverse_triangular(factor)
    if not isinstance(inverse, np.ndarray):
        rows = fold_rows(inverse.T, folds)
        return rows @ rows.mT
    size = max(stop - start for start, stop in folds)
    blocks = np.zeros((len(folds), size, size))
    for block, (start, stop) in zip(blocks, folds, strict=True):
        column = inverse[start:, start:stop]  # zero above the diagonal
        block[: stop - start, : stop - start] = column.T @ column
    return blocks


def _column_blocks(basis: AnyArray, folds: Folds) -> tuple[Blocks, list[int]]:
    """Compute the blocks of P = 1 - Q Q' in primal or dual form, and the folds that need a refit."""
    xp = namespace(basis)
    rows = fold_rows(basis, folds)
    size, p = rows.shape[-2:]
    outer = rows if size <= p else rows.mT
    complement = xp.eye(min(size, p), dtype=rows.dtype) - outer @ outer.mT
    factor = cholesky(complement)
    safe = xp.min(xp.linalg.diagonal(factor), axis=-1) > LEVERAGE  # False for NaN
    weak = None
    if xp is not np or not safe.all():
        weak = xp.where(safe, 0.0, WEAK)[..., None]
        complement = complement + weak[..., None] * xp.eye(
            complement.shape[-1], dtype=complement.dtype
        )
        factor = cholesky(complement)
    single = xp is np and basis.ndim == 2
    inner = None if size <= p else rows
    blocks = Blocks(complement, factor, inner, weak, folds)
    return blocks, np.flatnonzero(~safe).tolist() if single else []


def _kernel_factor(kernel: AnyArray, penalty: Any, weights: AnyArray | None) -> AnyArray:
    """Compute C of C C' = K / penalty + 1 for scaled rows, with a larger diagonal if rounding needs it."""
    xp = namespace(kernel)
    matrix = kernel / penalty
    if weights is not None:
        matrix = matrix * weights[:, None] * weights
    diagonal = xp.linalg.diagonal(matrix)
    shift = xp.maximum(xp.asarray(1.0, dtype=matrix.dtype), TINY * xp.sum(diagonal))
    if xp is np:
        matrix[np.diag_indices(len(matrix))] += shift
    else:
        matrix = matrix + shift * xp.eye(len(matrix), dtype=matrix.dtype)
    return cholesky(matrix)


def _solve_upper(upper: AnyArray, right: AnyArray) -> AnyArray:
    return solve_triangular(upper.mT, right, transposed=True)


def scaled(rows: AnyArray, weights: AnyArray | None) -> AnyArray:
    """Multiply every row by its weight: (n, p)."""
    return rows if weights is None else weights[:, None] * rows


def unscaled(rows: AnyArray, weights: AnyArray | None) -> AnyArray:
    """Divide every row by its weight: (n, p)."""
    return rows if weights is None else rows / weights[:, None]


def _places(folds: Folds) -> tuple[np.ndarray, np.ndarray]:
    """The indices of the draws of each fold, and which are not padding: (fold, size) each.

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


def unfolded(blocks: AnyArray, folds: Folds) -> AnyArray:
    """Stack the rows of all folds one below the other, without the padding: (..., n, k)."""
    _, inside = _places(folds)
    flat = blocks.reshape(*blocks.shape[:-3], -1, blocks.shape[-1])
    return flat if inside.all() else flat[..., np.flatnonzero(inside), :]


def fold_sums(values: AnyArray, folds: Folds) -> AnyArray:
    """The sums of the rows of each fold, (..., fold, k)."""
    return namespace(values).sum(fold_rows(values, folds), axis=-2)


def per_draw(values: AnyArray, folds: Folds) -> AnyArray:
    """Repeat the values of each fold, (..., fold, k), for every draw in it: (..., n, k)."""
    return namespace(values).repeat(values, np.diff(np.array(folds), axis=1)[:, 0], axis=-2)


def on_draws(folds: Folds, draw: np.ndarray) -> Folds:
    """Where folds start and stop among the draws alone, a mask of the rows."""
    counts = np.concatenate([[0], np.cumsum(draw)])
    return tuple((int(counts[i]), int(counts[j])) for i, j in folds)


def moves(residual: AnyArray, intercepts: AnyArray, folds: Folds) -> np.ndarray:
    r"""Changes of the estimate when each fold is left out, beyond those of an average: (..., fold, k).

    The intercept $c_B$ of the fit without fold $B$ estimates $E f$ too. If the control variate hardly
    depended on single draws, leaving out $B$ would move it by $-h_B$ with $h_B = \frac{n_B}{n}
    (\bar r_B - c_B)$, where $\bar r_B$ is the mean of $f - g$ on $B$, and the standard error of that
    series would be complete. A fit that nearly interpolates depends on the few draws far from the
    others. Then the series is small on all draws, but the change of the fit,

    $$ u_B = c_B - \bar c + h_B - \bar h , $$

    is not. As in the jackknife, $\sum_B u_B^2$ is the variance that this adds to the estimate.

    Args:
        residual: f - g on every draw, g fitted to the other folds, (..., n, k).
        intercepts: $c_B$, (..., fold, k).
        folds: where each starts and stops.
    """
    residual = np.asarray(residual, np.float64)
    start, stop = np.array(folds).T
    means = np.add.reduceat(residual, start, axis=-2) / (stop - start)[:, None]
    return moves_of_means(means, intercepts, folds)


def moves_of_means(means: AnyArray, intercepts: AnyArray, folds: Folds) -> np.ndarray:
    r"""Compute `moves` from the means $\bar r_B$ of $f - g$ on each fold, (..., fold, k)."""
    start, stop = np.array(folds).T
    share = ((stop - start) / stop[-1])[:, None]
    intercepts = np.asarray(intercepts, np.float64)
    moved = intercepts + share * (means - intercepts)
    return moved - moved.mean(axis=-2, keepdims=True)


def instability(residual: Values, intercepts: AnyArray, folds: Folds) -> np.ndarray:
    r"""The variance $\sum_B u_B^2$ that changes of the fit between folds add to the estimate, (k,)."""
    return (moves(residual, intercepts, folds) ** 2).sum(axis=0)
