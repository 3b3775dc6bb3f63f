"""Estimates at one temperature, whose fit may use the draws of its neighbours."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .._precision import precision
from .._show import describe
from .._types import AnyArray
from ..chains import chain_statistics, controlled_statistics
from ..data import Integrands, Sample
from ..estimation import AbstractSplit, AuditMode, CrossFit, Estimate, estimate
from ..estimation._audited import audited, with_audit
from ..estimation._result import beside
from ..estimation._splits import Controlled
from ..estimation._stability import moves
from ..families import AbstractFamily
from ..fitting import prepare, random_key
from ..objectives import AbstractPenalty
from ..solvers import AbstractSolver, Auto, Problem
from ._tempered import Tempered

type Functions = Callable[[AnyArray], dict[str, AnyArray]]  # of log likelihoods


class Options(NamedTuple):
    """How control variates are fitted, at every temperature alike."""

    split: AbstractSplit | None
    penalty: AbstractPenalty | None
    solver: AbstractSolver | None
    quick: bool
    audit: AuditMode
    neighbours: int


def controlled(
    tempered: Tempered,
    place: int,
    f: Functions,
    family: AbstractFamily | None,
    options: Options,
) -> Estimate:
    """Expectations at one temperature of functions of the log likelihood.

    Args:
        tempered: the draws.
        place: of the temperature.
        f: the integrands.
        family: of control variates, or None to choose.
        options: how they are fitted.
    """
    split, penalty, solver, quick, audit, neighbours = options
    sample, wanted = tempered.sample(place), f(tempered.log_likelihood[place])
    if neighbours == 0:
        options_of = {"split": split, "penalty": penalty, "solver": solver, "quick": quick}
        return estimate(wanted, sample, family, audit=audit, **options_of)
    if family is None or quick or split is not None or neighbours < 0:
        raise ValueError(
            f"neighbours={neighbours} goes with a family: give one such as Polynomial(2) + "
            "KernelTranslates(), no split and no quick; or leave neighbours out, and a family is chosen."
        )
    report = audited(sample, audit)
    pool, values = _pool(tempered, place, neighbours)
    own, everything = _integrands(wanted), _integrands(f(values))
    with precision(np.float64):
        problem, _ = prepare(everything, pool, family, penalty, None)
        made = _held_out(problem, sample, pool, Auto() if solver is None else solver)
    better = controlled_statistics(made.rest, own.values, made.instability)
    chosen = (describe(problem.family),) * len(own.names)
    found = beside(better, chain_statistics(own.values), own.names, chosen, made.note)
    return with_audit(found, report, audit)


def _held_out(problem: Problem, sample: Sample, pool: Sample, solver: AbstractSolver) -> Controlled:
    """What is left of f on a temperature's own draws, each fold left out of a fit to all of the pool."""
    own = len(CrossFit().boundaries(sample.chains, sample.length))
    folds = CrossFit(own * pool.chains // sample.chains).boundaries(pool.chains, pool.length)
    held = solver.crossfit(problem, folds, random_key(None))
    moved = np.zeros(())
    if held.intercepts is not None:  # those of the neighbours' folds say nothing of our mean
        ours = moves(held.rest, held.intercepts, folds)[:own]
        moved = ((ours - ours.mean(axis=0)) ** 2).sum(axis=0)
    rest = np.asarray(held.rest)[: sample.size].reshape(sample.chains, sample.length, -1)
    return Controlled(rest, moved, None, f"{own} folds and neighbours, {held.note}")


def _integrands(values: dict[str, AnyArray]) -> Integrands:
    return Integrands(np.stack(list(values.values()), axis=-1), tuple(values))


def _pool(tempered: Tempered, place: int, reach: int) -> tuple[Sample, AnyArray]:
    """The draws of a temperature and its neighbours, all with the scores of that temperature.

    A fit needs no draws from the density that it is for: any draws show where f is, and every
    member of the family has mean zero under the scores' density.
    """
    t, length = tempered.temperatures[place], tempered.draws[place].shape[1]
    near = range(max(place - reach, 0), min(place + reach, len(tempered) - 1) + 1)
    order = [place, *(i for i in near if i != place)]

    def together(parts: tuple[AnyArray, ...]) -> np.ndarray:
        return np.concatenate([_in_chains(np.asarray(parts[i]), length) for i in order])

    prior, likelihood = together(tempered.prior_scores), together(tempered.likelihood_scores)
    pool = Sample(together(tempered.draws), prior + t * likelihood, tempered.names)
    return pool, together(tuple(one[..., None] for one in tempered.log_likelihood))[..., 0]


def _in_chains(part: np.ndarray, length: int) -> np.ndarray:
    """Draws as chains of a length, what is left over left out."""
    flat = part.reshape(-1, part.shape[-1])
    count = len(flat) // length
    return flat[: count * length].reshape(count, length, part.shape[-1])
