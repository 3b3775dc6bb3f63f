"""Candidates for many draws: kernels centred on a few of them."""

import jax
import numpy as np

from .._types import Points, Values
from ..families import AbstractLinearFamily, KernelTranslates, Landmarks, Polynomial
from ..kernels import AbstractKernel
from ..objectives import AbstractPenalty, LeastSquares, NativeNorm, NoPenalty
from ..solvers import Exact, Folds, Problem
from ..solvers._problem import LeftOut
from ..solvers._rows import Root
from ._recipes import Recipe

LANDMARKS = 500


def landmark_errors(
    recipe: Recipe,
    kernel: AbstractKernel | None,
    size: float,
    points: tuple[Points, Points, Values],
    folds: Folds,
    root: Root = None,
) -> LeftOut:
    """What leaving out each fold in turn gives.

    Args:
        recipe: the candidate.
        kernel: with its length-scale, if there is one.
        size: the kernel's median variance.
        points: draws, scores and integrands.
        folds: where each starts and stops.
        root: of the weights of the squares, where draws have weights.
    """
    families: list[AbstractLinearFamily] = []
    penalties: list[AbstractPenalty] = []
    if recipe.degree:
        families.append(Polynomial(recipe.degree))
        penalties.append(NoPenalty())
    if kernel is not None:
        train = len(points[0]) * (1 - 1 / len(folds))
        families.append(KernelTranslates(kernel, Landmarks(LANDMARKS)))
        penalties.append(NativeNorm(recipe.noise * size / train))
    family = families[0] if len(families) == 1 else families[0] + families[1]
    problem = Problem(family, tuple(penalties), LeastSquares(), *points, root=root)
    held = Exact().crossfit(problem, folds, jax.random.key(0))
    variance = np.ones(len(points[0])) if held.variance is None else held.variance
    return LeftOut(held.rest, variance, held.intercepts)
