"""Candidates for many draws: kernels centred on a few of them."""

from dataclasses import replace

import jax
import numpy as np

from .._types import Points, Values
from ..families import AbstractLinearFamily, KernelTranslates, Landmarks
from ..objectives import AbstractPenalty, LeastSquares, NativeNorm, NoPenalty
from ..solvers import Exact, Folds, Problem
from ..solvers._problem import LeftOut
from ..solvers._rows import Root

LANDMARKS = 500


def landmark_errors(
    beside: AbstractLinearFamily | None,
    translates: KernelTranslates | None,
    noise: float,
    points: tuple[Points, Points, Values],
    folds: Folds,
    root: Root = None,
) -> LeftOut:
    """What leaving out each fold in turn gives.

    Args:
        beside: a family without a penalty, if there is one.
        translates: of a kernel with its length-scale, if there is one.
        noise: of the draws, in the units of the kernel.
        points: draws, scores and integrands.
        folds: where each starts and stops.
        root: of the weights of the squares, where draws have weights.
    """
    families: list[AbstractLinearFamily] = []
    penalties: list[AbstractPenalty] = []
    if beside is not None:
        families.append(beside)
        penalties.append(NoPenalty())
    if translates is not None:
        train = len(points[0]) * (1 - 1 / len(folds))
        families.append(replace(translates, centres=Landmarks(LANDMARKS)))
        penalties.append(NativeNorm(noise / train))
    family = families[0] if len(families) == 1 else families[0] + families[1]
    problem = Problem(family, tuple(penalties), LeastSquares(), *points, root=root)
    held = Exact().crossfit(problem, folds, jax.random.key(0))
    variance = np.ones(len(points[0])) if held.variance is None else held.variance
    return LeftOut(held.rest, variance, held.intercepts)
