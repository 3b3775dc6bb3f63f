"""One row per operator, kernel, family, objective, penalty, solver and split.

Whatever is parametrised in this suite is parametrised from here, so a new class is tested by every
law once it has its row; `checks/test_registry.py` fails for one that has none.
"""

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp

import steinax as sx
from spaces import discrete_targets as discrete, space_targets as continuous
from spaces.space_targets import SpaceTarget
from steinax import contrib
from steinax.checks import Shape
from steinax.checks._laws import POINTS

CENTRES = POINTS  # of a kernel; few, so that every law is cheap


@dataclass(frozen=True)
class Row[T]:
    """A name and a way to make the thing."""

    name: str
    make: Callable[[], T]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class KernelRow(Row[sx.kernels.AbstractKernel]):
    """A kernel, and the shape of its Stein kernel of first and second order (None: refused)."""

    first: Shape = Shape.ANALYTIC
    second: Shape | None = Shape.ANALYTIC


@dataclass(frozen=True)
class FamilyRow(Row[sx.families.AbstractFamily]):
    """A family, the shape of its features, and what the slow paths of it cost."""

    shape: Shape = Shape.ANALYTIC
    linear: bool = True
    costly: bool = False  # fourth derivatives by automatic differentiation


def _hamiltonian() -> sx.operators.ScaledOperator:
    return -0.5 * sx.ScalarLangevin()


def _bent(x: jax.Array) -> jax.Array:
    """A matrix field that is neither constant nor symmetric."""
    return jnp.eye(x.shape[0], dtype=x.dtype) + jnp.outer(jnp.sin(x), jnp.cos(2 * x)) / 2


def _growing(on_fields: bool) -> contrib.Diffusion:
    return contrib.Diffusion(contrib.GrowingMatrix(0.3), on_fields)


OPERATORS: tuple[Row[sx.operators.AbstractOperator], ...] = (
    Row("Langevin", sx.Langevin),
    Row("ScalarLangevin", sx.ScalarLangevin),
    Row("scaled Langevin", lambda: 3.0 * sx.Langevin()),
    Row("Hamiltonian", _hamiltonian),
    Row("Diffusion, fields", lambda: contrib.Diffusion(_bent)),
    Row("Diffusion, potentials", lambda: contrib.Diffusion(_bent, on_fields=False)),
    Row("Diffusion, growing", lambda: contrib.Diffusion(contrib.GrowingMatrix(0.3))),
)

KERNELS: tuple[KernelRow, ...] = (
    KernelRow("SquaredExponential", lambda: sx.kernels.SquaredExponential(1.3)),
    KernelRow("InverseMultiquadric", lambda: sx.kernels.InverseMultiquadric(1.2)),
    KernelRow("InverseMultiquadric, steep", lambda: sx.kernels.InverseMultiquadric(1.5, 1.5)),
    KernelRow("RationalQuadratic", lambda: sx.kernels.RationalQuadratic(1.1, 2.0)),
    KernelRow("Matern32", lambda: sx.kernels.Matern32(1.4), Shape.KINKED, None),
    KernelRow("Matern52", lambda: sx.kernels.Matern52(1.4), Shape.KINKED, Shape.KINKED),
    KernelRow("DampedGaussian", lambda: sx.kernels.DampedGaussian(0.1, 1.3)),
    KernelRow("ExponentialDotProduct", lambda: sx.kernels.ExponentialDotProduct(2.5)),
    KernelRow(
        "sum", lambda: sx.kernels.SquaredExponential(1.3) + sx.kernels.InverseMultiquadric(2.0)
    ),
    KernelRow(
        "radial product",
        lambda: sx.kernels.SquaredExponential(2.0) * sx.kernels.InverseMultiquadric(1.5),
    ),
    KernelRow(
        "product", lambda: sx.kernels.DampedGaussian(0.1, 2.0) * sx.kernels.SquaredExponential(2.0)
    ),
)


def _translates() -> Iterator[FamilyRow]:
    """Both Stein kernels of every kernel, with few centres."""
    for row in KERNELS:
        for order, operator, shape in (
            ("first", sx.Langevin, row.first),
            ("second", sx.ScalarLangevin, row.second),
        ):
            if shape is not None:
                yield FamilyRow(
                    f"KernelTranslates, {row.name}, {order} order",
                    lambda row=row, operator=operator: sx.KernelTranslates(
                        row.make(), sx.Landmarks(CENTRES), operator()
                    ),
                    shape,
                    costly=order == "second" and row.name in ("DampedGaussian", "product"),
                )


def _kernel(**options) -> sx.KernelTranslates:
    return sx.KernelTranslates(sx.kernels.SquaredExponential(1.3), **options)


FAMILIES: tuple[FamilyRow, ...] = (
    FamilyRow("Polynomial 1", lambda: sx.Polynomial(1)),
    FamilyRow("Polynomial 2", lambda: sx.Polynomial(2)),
    FamilyRow("Polynomial 3", lambda: sx.Polynomial(3)),
    FamilyRow("Polynomial, weight 1/2", lambda: sx.Polynomial(3, weight=0.5)),
    FamilyRow("Polynomial, Hamiltonian", lambda: sx.Polynomial(2, operator=_hamiltonian())),
    *_translates(),
    FamilyRow("KernelTranslates, median heuristic", sx.KernelTranslates),
    FamilyRow("KernelTranslates, all draws", _kernel),
    FamilyRow("KernelTranslates, Hamiltonian", lambda: _kernel(operator=_hamiltonian())),
    FamilyRow("RandomFeatures", lambda: sx.RandomFeatures(20, 1.5)),
    FamilyRow("Tied", lambda: sx.Tied(2, ((0,),))),
    FamilyRow("Lattice", lambda: sx.families.Lattice(symmetric=False)),
    FamilyRow("Kinks", lambda: sx.Kinks(0, (-0.4, 0.7)), Shape.BROKEN),
    FamilyRow("Kinks of order 2", lambda: sx.Kinks(0, (-0.4, 0.7), order=2), Shape.KINKED),
    FamilyRow("Subset, polynomial", lambda: sx.families.Subset(sx.Polynomial(3), (0,))),
    FamilyRow(
        "Subset, kernel",
        lambda: sx.families.Subset(_kernel(centres=sx.Landmarks(CENTRES)), (0,)),
    ),
    FamilyRow("polynomial + kernel", lambda: sx.Polynomial(2) + _kernel()),
    FamilyRow("polynomial + features", lambda: sx.Polynomial(1) + sx.RandomFeatures(10, 2.0)),
    FamilyRow("Network, silu field", lambda: sx.Network(8, 2), linear=False),
    FamilyRow(
        "Network, relu field",
        lambda: sx.Network(8, 2, activation=jax.nn.relu),
        Shape.BROKEN,
        linear=False,
    ),
    FamilyRow(
        "Network, residual potential",
        lambda: sx.Network(8, 3, residual=True, operator=sx.ScalarLangevin()),
        linear=False,
    ),
    FamilyRow(
        "Network, tanh potential",
        lambda: sx.Network(8, 2, activation=jnp.tanh, operator=sx.ScalarLangevin()),
        Shape.KINKED,  # it has none, but poles so near that only the finer rule integrates it
        linear=False,
    ),
    FamilyRow(
        "Network, Hamiltonian", lambda: sx.Network(8, 2, operator=_hamiltonian()), linear=False
    ),
    FamilyRow(
        "Polynomial, diffusion potentials", lambda: sx.Polynomial(2, operator=_growing(False))
    ),
    FamilyRow("KernelTranslates, diffusion", lambda: _kernel(operator=_growing(True))),
    FamilyRow(
        "Network, diffusion field", lambda: sx.Network(8, 2, operator=_growing(True)), linear=False
    ),
    FamilyRow("polynomial + network", lambda: sx.Polynomial(2) + sx.Network(8, 1), linear=False),
)

OBJECTIVES: tuple[Row[sx.objectives.AbstractObjective], ...] = (
    Row("LeastSquares", sx.LeastSquares),
    Row("Variance", sx.Variance),
)

PENALTIES: tuple[Row[sx.objectives.AbstractPenalty], ...] = (
    Row("NoPenalty", sx.NoPenalty),
    Row("Ridge", lambda: sx.Ridge(1e-4)),
    Row("NativeNorm", lambda: sx.NativeNorm(1e-4)),
    Row("MeanSquare", lambda: sx.MeanSquare(1e-2)),
)

SOLVERS: tuple[Row[sx.solvers.AbstractSolver], ...] = (
    Row("Auto", sx.Auto),
    Row("Exact, dual", lambda: sx.Exact(dual=True)),
    Row("Exact, primal", lambda: sx.Exact(dual=False)),
    Row("ConjugateGradient", lambda: sx.ConjugateGradient(tolerance=1e-13)),
    Row("Nystrom", lambda: sx.Nystrom(40)),
    Row("Stochastic", sx.Stochastic),
    Row("Sparse", sx.Sparse),
    Row("Spread", sx.Spread),
)

SPLITS: tuple[Row[sx.estimation.AbstractSplit], ...] = (
    Row("CrossFit", sx.CrossFit),
    Row("CrossFit, 4 folds", lambda: sx.CrossFit(4)),
    Row("HoldOut", lambda: sx.HoldOut(0.5)),
    Row("InSample", sx.InSample),
)


@dataclass(frozen=True)
class SpaceRow(Row[SpaceTarget]):
    """A space with a target on it; its operators are tested where it is."""


SPACES: tuple[SpaceRow, ...] = (
    SpaceRow("box, beta with singular scores", lambda: continuous.beta(0.7, 2.0)),
    SpaceRow("box, uniform", lambda: continuous.beta(1.0, 1.0)),
    SpaceRow("box, exponential", continuous.exponential),
    SpaceRow("box, truncated normal", continuous.truncated_normal),
    SpaceRow("sphere, circle", continuous.circle),
    SpaceRow("sphere, uniform", lambda: continuous.von_mises_fisher(0.0)),
    SpaceRow("sphere, von Mises-Fisher", lambda: continuous.von_mises_fisher(2.0)),
    SpaceRow("torus, coupled angles", continuous.torus),
    SpaceRow("counts, Poisson", discrete.poisson),
    SpaceRow("counts, negative binomial", discrete.negative_binomial),
    SpaceRow("counts, competing", discrete.competing),
    SpaceRow("binary, Ising", discrete.ising),
    SpaceRow("binary, coins", discrete.coins),
)

TABLES = (OPERATORS, KERNELS, FAMILIES, OBJECTIVES, PENALTIES, SOLVERS, SPLITS)
# without the rows that differ in the kernel alone
DISTINCT_FAMILIES = tuple(row for row in FAMILIES if not row.name.endswith(" order"))
LINEAR_FAMILIES = tuple(row for row in FAMILIES if row.linear)
NETWORKS = tuple(row for row in FAMILIES if row.name.startswith("Network"))


def classes(module: object) -> Iterator[type]:
    """The class of a module, and those of all modules inside it."""
    if isinstance(module, (tuple, list)):
        for item in module:
            yield from classes(item)
    elif isinstance(module, eqx.Module):
        yield type(module)
        for field in dataclasses.fields(module):
            yield from classes(getattr(module, field.name))
