"""Helpers for spaces: audit identities, candidate families, and scores from ratios of probabilities."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from .._types import AnyArray, Chains, Point
from ..adapters import over_draws
from ..data import AbstractSpace, as_chains
from ..families import AbstractLinearFamily, KernelTranslates
from ..operators import AbstractOperator, Function, Langevin, PairFunction, along_direction


class AbstractWalledLangevin(AbstractOperator):
    """The Langevin operator on functions times a diagonal matrix field, which vanishes where they may not.

    Subclasses have the field `walls`, whose component $b_i(x)$ depends on $x_i$ alone.
    """

    walls: eqx.AbstractVar[Any]
    on_fields: eqx.AbstractVar[bool]

    @property
    def acts_on_fields(self) -> bool:
        return self.on_fields

    def __call__(self, u: Function, x: Point, score: Point) -> jax.Array:
        if self.on_fields:
            return Langevin()(lambda z: u(z) * self.walls(z), x, score)

        def partial_derivative(unit: jax.Array) -> AnyArray:  # of one component of b grad u
            return along_direction(
                lambda z: along_direction(u, z, self.walls(z) * unit)[1], x, unit
            )[1]

        divergence = jax.vmap(partial_derivative)(jnp.eye(x.shape[-1], dtype=x.dtype)).sum(axis=0)
        return divergence + along_direction(u, x, self.walls(x) * score)[1]

    def representer(self, kernel: PairFunction, y: Point, score: Point) -> Function:
        if not self.on_fields:
            return lambda x: self(lambda z: kernel(x, z), y, score)
        # b_i depends on y_i alone, so one direction gives all of its derivatives
        walls, slope = along_direction(self.walls, y, jnp.ones_like(y))
        drift = walls * score + slope

        def field(x: jax.Array) -> jax.Array:
            value, gradient = jax.value_and_grad(kernel, argnums=1)(x, y)
            return walls * gradient + value * drift

        return field


PAIRS = 20  # dimensions up to which all pairs of dimensions are audited; beyond, only neighbours


def pair_products(first: Chains, second: Chains) -> list[AnyArray]:
    """Multiply a function of each dimension with one of another, for all pairs that are audited."""
    dim = first.shape[2]
    shifts = range(1, dim) if dim <= PAIRS else (1, 2)
    return [np.roll(second, shift, axis=2) * first for shift in shifts]


def unit_size(series: Chains) -> AnyArray:
    """Divide series by their root mean square; a series of zeros stays zero."""
    size = np.sqrt(np.mean(series**2, axis=(0, 1)))
    return series / np.where(size > 0, size, 1.0)


def factor_of(whole: Chains, without: Chains) -> float:
    r"""Compute the factor by which scores are too large, from series that are linear in the scores.

    Each series is $a + b$ with $b$ proportional to the scores, and has mean zero for correct ones. The factor
    is that of least squares, $-E[a] \cdot E[b] / E[a] \cdot E[a]$, each series in units of its deviation.

    Args:
        whole: the series.
        without: the same without scores, $a$.
    """
    size = whole.std(axis=(0, 1))
    size = np.where(size > 0, size, 1.0)
    constant, total = (each.mean(axis=(0, 1)) / size for each in (without, whole))
    length = float(constant @ constant)
    return float(constant @ (constant - total)) / length if length > 0 else np.nan


HIGHEST = 6  # degree of a polynomial
HIGHEST_IN_TAILS = 3  # on unbounded spaces, where high powers have large variances
DRAWS_PER_COEFFICIENT = 10
DRAWS_PER_CANDIDATE = 3  # per coefficient, if the polynomial is one of several candidates
KERNEL_DRAWS = 1000  # up to which a kernel is used: its matrix costs their square, by autodiff
KERNEL_STATES = 200  # on fewer a kernel interpolates every integrand, and the error looks like zero
COLUMNS = 500  # most features of a polynomial that is one of several candidates


def affordable[F: AbstractLinearFamily](
    make: Callable[[int], F], degrees: Iterable[int], n: int, dim: int, per_function: int
) -> list[F]:
    """Return the families with at least `per_function` distinct draws per basis function.

    Discrete draws repeat: a state that is held out also occurs in the fit. With as many functions as states
    every integrand would be interpolated, and the standard error would be zero.
    """
    families = map(make, sorted(degrees))
    return [family for family in families if family.size(None, dim) * per_function <= n]


def of_highest_degree[F: AbstractLinearFamily](
    make: Callable[[int], F], degrees: Sequence[int], states: int, dim: int, per_function: int
) -> F:
    """Return the affordable family of the highest degree."""
    families = affordable(make, degrees, states, dim, per_function)
    if not families:
        raise ValueError(
            f"the draws have {states} distinct states, too few for a control variate in {dim} dimensions: "
            "give more draws, leave out coordinates that hardly move, or take plain averages."
        )
    return families[-1]


def polynomial_and_kernel(
    polynomial: Callable[[int], AbstractLinearFamily],
    kernel: KernelTranslates,
    n: int,
    dim: int,
    highest: int = HIGHEST,
) -> AbstractLinearFamily:
    """Return polynomials of the highest degree that the draws allow, plus a kernel if draws are few.

    Args:
        polynomial: returns the polynomials of a degree.
        kernel: the kernel, on fields.
        n: the number of draws.
        dim: the dimension of a draw.
        highest: the highest degree.
    """
    families = affordable(polynomial, range(2, highest + 1), n, dim, DRAWS_PER_COEFFICIENT)
    family = families[-1] if families else polynomial(2)
    return family if n > KERNEL_DRAWS else cast(AbstractLinearFamily, family + kernel)


def candidates(
    polynomials: Sequence[AbstractLinearFamily],
    kernel: KernelTranslates | None,
    dim: int,
    in_tails: bool = False,
) -> tuple[AbstractLinearFamily, ...]:
    """Return the candidate families: polynomials that are not too large, and one of them plus a kernel.

    The kernel is added to the largest polynomial, or to the smallest where draws have tails: there a kernel
    corrects high powers at the draws alone, which the standard error does not account for.
    """
    few = [polynomial for polynomial in polynomials if polynomial.size(None, dim) <= COLUMNS]
    if kernel is None:
        return tuple(few)
    if not few:
        return (kernel,)
    return (*few, cast(AbstractLinearFamily, few[0 if in_tails else -1] + kernel))


LARGEST = 1e12  # ratio; a Gibbs sampler would flip with probability 1 to twelve digits


def ratio_scores(
    space: AbstractSpace,
    log_pmf: Callable[[Point], AnyArray],
    draws: ArrayLike,
    neighbours: Callable[[Point], AnyArray],
) -> np.ndarray:
    r"""Compute the scores $1 - \pi(x') / \pi(x)$ for the neighbours $x'$ of each distinct draw."""
    ndim = np.ndim(draws)
    x = as_chains(draws, "draws", np.float64)
    space.check(x)
    states, inverse = np.unique(x.reshape(-1, x.shape[2]), axis=0, return_inverse=True)

    def logs(point: Point) -> tuple[AnyArray, AnyArray]:
        return jnp.asarray(log_pmf(point)), jax.vmap(log_pmf)(neighbours(point))

    at_states, at_neighbours = _evaluate_logs(logs, states)
    with np.errstate(over="ignore"):
        ratios = np.minimum(np.exp(at_neighbours - at_states[:, None]), LARGEST)
    scores = (1.0 - ratios)[inverse.reshape(-1)].reshape(x.shape)
    return scores[0] if ndim == 2 else scores


def _evaluate_logs(
    logs: Callable[[Point], tuple], states: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Evaluate the log mass at each state and at its neighbours; raise an error if it is not finite."""
    try:
        at_states, at_neighbours = over_draws(logs, states[None])
    except (jax.errors.JAXTypeError, jax.errors.JAXIndexError) as error:
        raise ValueError(
            "the log mass function is not made of jax operations: write it with jax.numpy (jnp.log for "
            "np.log, jnp.where for if), or give the scores 1 - pi(neighbour) / pi(draw) yourself."
        ) from error
    at_states, at_neighbours = at_states[0], at_neighbours[0]
    if at_states.ndim != 1:
        raise ValueError(
            f"the log mass function of one draw has shape {at_states.shape[1:]}: return one number, and sum "
            "over data and coordinates (jnp.sum)."
        )
    invalid = np.isnan(at_neighbours) | (at_neighbours == np.inf)
    bad = ~np.isfinite(at_states) | invalid.any(axis=1)
    if bad.any():
        raise ValueError(
            f"the log mass function is not finite at {bad.sum()} of {len(states)} distinct draws or at their "
            f"neighbours, the first at {states[bad.argmax()].tolist()}: the draws must have a positive "
            "probability; check that `log_pmf` is that of these draws."
        )
    return at_states, at_neighbours
