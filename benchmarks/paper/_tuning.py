"""Hyper-parameters by five-fold cross-validation, as in the paper, on draws that are not used again."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

import steinax as sx

FOLDS, SWEEPS = 5, 2
DAMPINGS = (1e6, 1e5, 1e4, 1e3, 1e2, 1e1, 1.0, 1e-1, 1e-2)  # the grid of the supplement
LENGTH_SCALES = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)  # of the median heuristic's
STRENGTHS = (1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2, 1.0, 1e2, 1e4)


@dataclass(frozen=True)
class Hyper:
    """The damping, the length-scale over the median heuristic's, and the strength of the penalty."""

    damping: float = 1e-2
    length_scale: float = 1.0
    strength: float = 1e-6

    def penalties(
        self, family: sx.families.AbstractFamily, ridge: bool = False
    ) -> list[sx.objectives.AbstractPenalty]:
        """One for each term: on the coefficients themselves, or on kernels in their own norm."""
        return [
            sx.Ridge(self.strength)
            if ridge or isinstance(term, sx.Polynomial)
            else sx.NativeNorm(self.strength)
            for term in family.terms
        ]


def cross_validated(
    make: Callable[[Hyper], sx.families.AbstractFamily],
    pilots: Sequence[tuple[sx.data.Integrands, sx.Sample]],
    length_scales: bool = True,
) -> Hyper:
    """The hyper-parameters of least held-out variance, over all pilots and integrands.

    One is chosen after the other, the best of its grid with the others fixed, in two sweeps.

    Args:
        make: the family with some hyper-parameters.
        pilots: the draws to try them on.
        length_scales: whether kernels' length-scales are chosen too, or the median heuristic's stay.
    """
    kernels = any(isinstance(term, sx.KernelTranslates) for term in make(Hyper()).terms)
    grids = {"strength": STRENGTHS}
    if kernels:
        grids = {"damping": DAMPINGS, "strength": STRENGTHS}
    if kernels and length_scales:
        grids = {"length_scale": LENGTH_SCALES} | grids
    known: dict[Hyper, float] = {}

    def left(hyper: Hyper) -> float:
        if hyper not in known:
            known[hyper] = sum(_held_out(make(hyper), hyper, *pilot) for pilot in pilots)
        return known[hyper]

    best = Hyper()
    for _ in range(SWEEPS if kernels else 1):
        for field, grid in grids.items():
            best = min((replace(best, **{field: value}) for value in grid), key=left)
    return best


def _held_out(
    family: sx.families.AbstractFamily, hyper: Hyper, wanted: sx.data.Integrands, sample: sx.Sample
) -> float:
    """The mean over integrands of the logarithm of the variance that is left on held-out draws."""
    found = sx.estimate(
        wanted,
        sample,
        family,
        penalty=hyper.penalties(family),
        split=sx.CrossFit(FOLDS),
        solver=sx.Exact(),
        audit="off",
    )
    variance = found.mcse**2 * found.residual_ess
    return float(np.log(np.where(np.isfinite(variance), np.fmax(variance, 1e-99), np.inf)).mean())
