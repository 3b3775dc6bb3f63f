"""Families of kernels: Stein kernels centred on draws (control functionals), and random Fourier features."""

import abc
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._show import Described
from .._types import AnyArray, OtherPoints, Point, Points, PyTree, Values
from ..kernels import (
    AbstractKernel,
    Hyperparameter,
    MedianHeuristic,
    SquaredExponential,
    hyperparameter,
)
from ..operators import AbstractOperator, Langevin, ScalarLangevin
from ._base import AbstractLinearFamily, check_potentials


class AbstractCentres(Described):
    """A rule that selects the draws on which kernels are centred."""

    @abc.abstractmethod
    def choose(self, n: int) -> np.ndarray:
        """Return the indices of the centres among `n` draws."""


class AllDraws(AbstractCentres):
    """A centre at every draw: the control functional itself.

    >>> AllDraws().choose(4).tolist()
    [0, 1, 2, 3]
    """

    def choose(self, n: int) -> np.ndarray:
        return np.arange(n)


class Landmarks(AbstractCentres):
    """Centres at a few draws, evenly spaced along the chains.

    Args:
        count: the number of centres; all draws if there are fewer.

    >>> Landmarks(3).choose(9).tolist()
    [0, 4, 8]
    """

    count: int = eqx.field(static=True)

    def __check_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"Landmarks({self.count}): ask for at least one landmark.")

    def choose(self, n: int) -> np.ndarray:
        return np.linspace(0, n - 1, min(n, self.count)).round().astype(int)


class KernelTranslates(AbstractLinearFamily):
    r"""Translates $g_\theta = \sum_j \theta_j k_0(\cdot, x_j)$ of a Stein kernel: control functionals.

    The basis functions are $u_j = \mathcal{L}_y k(\cdot, y)$ at $y = x_j$, the features
    $\psi_j = k_0(\cdot, x_j)$, and the norm of the family is that of the Stein kernel's Hilbert
    space (Oates, Girolami and Chopin, 2017). The operator determines the Stein kernel: first order
    with `Langevin()`, second order with `ScalarLangevin()`.

    Args:
        kernel: the base kernel $k$.
        centres: the draws $x_j$: `AllDraws()` or `Landmarks(count)`.
        operator: $\mathcal{L}$.

    >>> from steinax import Landmarks
    >>> from steinax.kernels import Matern52
    >>> family = KernelTranslates(Matern52(), centres=Landmarks(100))
    """

    references: ClassVar[tuple[str, ...]] = ("oates2017control",)
    kernel: AbstractKernel = eqx.field(default_factory=SquaredExponential)
    centres: AbstractCentres = eqx.field(default_factory=AllDraws)
    operator: AbstractOperator = eqx.field(default_factory=Langevin)

    def __check_init__(self) -> None:
        for name, kind, example in (
            ("kernel", AbstractKernel, "steinax.kernels.Matern52()"),
            ("centres", AbstractCentres, "Landmarks(100)"),
            ("operator", AbstractOperator, "Langevin()"),
        ):
            if not isinstance(value := getattr(self, name), kind):
                what = f"the class {value.__name__}" if isinstance(value, type) else repr(value)
                raise TypeError(f"KernelTranslates: {name} is {what}: give one such as {example}.")

    @property
    def centres_on_draws(self) -> bool:
        return True

    @property
    def is_whole_space(self) -> bool:
        return isinstance(self.centres, AllDraws)

    def setup(self, x: Points, score: Points) -> PyTree:
        if self.is_whole_space:
            return x, score
        index = self.centres.choose(x.shape[0])
        return x[index], score[index]

    def basis(self, state: PyTree, x: Point) -> jax.Array:
        def representer(y, score_y):
            return self.operator.representer(self.kernel, y, score_y)(x)

        return jax.vmap(representer)(*state)

    def features(self, state: PyTree, x: Point, score: Point) -> jax.Array:
        def feature(y, score_y):
            return self.kernel.stein(self.operator, x, score, y, score_y)

        return jax.vmap(feature)(*state)

    def feature_matrix(self, state: PyTree, x: Points, score: Points) -> AnyArray:
        return self.kernel.stein_matrix(self.operator, x, score, *state)

    def size(self, state: PyTree, dim: int) -> int:
        return state[0].shape[0]

    def gram(self, state: PyTree) -> AnyArray:
        return self.feature_matrix(state, *state)

    def cross_gram(
        self, state: PyTree, x: Points, score_x: Points, y: OtherPoints, score_y: OtherPoints
    ) -> AnyArray:
        if not self.is_whole_space:
            return super().cross_gram(state, x, score_x, y, score_y)
        return self.feature_matrix((y, score_y), x, score_x)

    def from_dual(self, state: PyTree, x: Points, score: Points, dual: Values) -> AnyArray:
        if not self.is_whole_space:
            return super().from_dual(state, x, score, dual)
        return dual


class RandomFeatures(AbstractLinearFamily):
    r"""Random Fourier features $u_j(x) = \sqrt{2/p} \cos(\omega_j \cdot x + b_j)$ as potentials.

    With $\omega_j \sim \mathcal{N}(0, \ell^{-2} I)$ and $b_j$ uniform they approximate the squared
    exponential kernel (Rahimi and Recht, 2007) at a cost that does not grow with the draws.

    Args:
        count: $p$, the number of features.
        length_scale: $\ell$, a number or a heuristic.
        seed: the seed of the frequencies and phases.
        operator: `ScalarLangevin()`, or another that acts on potentials.

    >>> family = RandomFeatures(100)
    >>> family.size(None, dim=3)
    100
    """

    references: ClassVar[tuple[str, ...]] = ("rahimi2007random",)
    count: int = eqx.field(static=True, default=200)
    length_scale: Hyperparameter = eqx.field(
        converter=hyperparameter, default_factory=MedianHeuristic
    )
    seed: int = eqx.field(static=True, default=0)
    operator: AbstractOperator = eqx.field(default_factory=ScalarLangevin)

    def __check_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"RandomFeatures({self.count}): ask for at least one feature.")
        check_potentials(self)

    def setup(self, x: Points, score: Points) -> PyTree:
        frequency_key, phase_key = jax.random.split(jax.random.key(self.seed))
        # drawn in single precision, so that float32 and float64 draws have the same features
        frequency = jax.random.normal(frequency_key, (self.count, x.shape[1]), jnp.float32)
        phase = jax.random.uniform(phase_key, (self.count,), jnp.float32, maxval=2 * jnp.pi)
        dtype = jnp.asarray(x).dtype
        return frequency.astype(dtype) / self.length_scale, phase.astype(dtype)

    def basis(self, state: PyTree, x: Point) -> jax.Array:
        omega, phase = state
        return jnp.sqrt(2 / self.count) * jnp.cos(omega @ x + phase)

    def size(self, state: PyTree, dim: int) -> int:
        return self.count
