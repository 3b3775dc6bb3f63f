import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .._precision import precision
from .._progress import progress
from .._show import describe
from .._types import Key, Values
from ..chains import chain_statistics, linearised
from ..citing import references_of
from ..data import Integrands, Sample, Stream
from ..data._integrands import IntegrandSpec, columns
from ..families import AbstractFamily
from ..fitting import prepare
from ..objectives import AbstractObjective, AbstractPenalty
from ..solvers import AbstractSolver, Auto, HeldOut, Problem
from ._audited import AuditMode, audited, with_audit
from ._blocks import controller, in_blocks, nothing, plan_blocks
from ._choice import automatic
from ._result import Estimate, beside
from ._splits import AbstractSplit, CrossFit
from ._stream_runs import Working, for_audit
from ._streaming import stream_held_out, stream_integrands, stream_problem


def estimate(
    f: IntegrandSpec | Integrands,
    sample: Sample | Stream = None,  # pyright: ignore[reportArgumentType]  # missing: told below
    family: AbstractFamily | None = None,
    *,
    split: AbstractSplit | None = None,
    penalty: AbstractPenalty | Sequence[AbstractPenalty] | None = None,
    objective: AbstractObjective | None = None,
    solver: AbstractSolver | None = None,
    key: Key | None = None,
    audit: AuditMode = "raise",
    memory: float | None = None,
    client: Any = None,
    keep: str | os.PathLike[str] | None = None,
) -> Estimate:
    r"""Estimate expectations under the target, with a far smaller error than plain averages have.

    A control variate $g$ of mean zero is fitted to $f$ on some draws, and $f - g$ is averaged over
    others, in turn, so that every draw is used. With no family given, polynomials and kernels of
    many length-scales and penalties are tried on held-out draws, and the best is chosen for each
    integrand; plain Monte Carlo is one of them. Where the sample has importance weights, all averages
    are self-normalised weighted ones, the plain too.

    Args:
        f: the integrands: a name, a function of one draw, an array, or a dict of these. A function gets
            variables by the names of its arguments, `lambda mu, tau: mu + tau`, or the whole draw,
            `lambda x: x[0]`. If a variable is called x, write `lambda x, /: x[0]` for the whole draw and
            `lambda *, x: x` for the variable. Arrays of zarr, dask, h5py and xarray stay where they are
            until some of their columns are needed.
        sample: the draws and scores, in memory or as a stream of blocks.
        family: of control variates; chosen from the draws by default (for a stream among
            polynomials). The arguments below go with a family of your own.
        split: `CrossFit()` by default, or `HoldOut(fraction)` or `InSample()`.
        penalty: on the family's parameters, one for all terms or one for each.
        objective: `LeastSquares()` by default.
        solver: `Auto()` by default.
        key: for solvers that draw random numbers; a fixed one by default.
        audit: what to do if the scores are not those of the draws (see `audit`): `"raise"`; `"warn"`;
            `"unadjusted"` for samplers without a Metropolis step, whose draws are expected to fail;
            or `"off"`, not to look.
        memory: bytes that may be taken, half of what is free by default. Integrands that need more are
            read and estimated in blocks, from one factorisation: see `memory_plan`.
        client: a `dask.distributed.Client` whose workers read the blocks of a stream; by default the
            threads of this process do.
        keep: a folder for what is found of a stream's blocks, so that a long run that was stopped goes on
            where it was when it is started again. Another question is refused there: other draws or
            settings, or functions with other code or other values of what they use.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> est = sx.estimate({"square": lambda x: x[0] ** 2}, sx.Sample(x, -x))
    >>> bool(abs(est.value[0] - 1.0) < 1e-10)
    True
    """
    if isinstance(sample, Stream):
        working = Working(client, keep)
        f = stream_integrands(f, solver, working, memory=memory, key=key)
        return _from_stream(f, sample, family, split, penalty, objective, audit, working)
    if (client, keep) != (None, None):
        raise ValueError("client and keep are for a Stream: leave them out for draws in memory.")
    found, report = columns(f, sample), audited(sample, audit)
    if family is None:
        _refuse(split, penalty, objective, solver)
        plan = plan_blocks(len(found.names), sample, None, found.extra, memory)
        made = in_blocks(found, plan, lambda wanted: _chosen(wanted, sample))
        return with_audit(_at_least_single(made) if sample.single else made, report, audit)
    split, solver = CrossFit() if split is None else split, Auto() if solver is None else solver
    _check_parts(split, solver, objective)
    with precision(sample.dtype), progress("estimating"):
        penalty = solver.penalty if penalty is None else penalty
        problem, _ = prepare(nothing(sample), sample, family, penalty, objective)
        plan = plan_blocks(len(found.names), sample, problem, found.extra, memory, solver)
        control = controller(problem, plan, split, sample.chains, solver, key)
        papers = references_of(problem.family, split) + solver.references_for(problem)
        made = in_blocks(
            found, plan, lambda wanted: _fitted(wanted, sample, control, problem, papers)
        )
    return with_audit(_at_least_single(made) if sample.single else made, report, audit)


def _fitted(
    wanted: Integrands,
    sample: Sample,
    control: Callable[[Values], HeldOut],
    problem: Problem,
    papers: tuple[str, ...],
) -> Estimate:
    """The estimate of some integrands with a given family."""
    f = np.asarray(wanted.values, np.float64).reshape(sample.size, -1)
    chosen = (describe(problem.family),) * len(wanted.names)
    return Estimate.from_held_out(control(f), wanted, chosen, sample.weights, references=papers)


def _refuse(*given: object) -> None:
    if any(option is not None for option in given):
        raise ValueError(
            "split, penalty, objective and solver go with a family: give one as the third argument, "
            "such as Polynomial(2), or leave them out and all is chosen from the draws."
        )


def _check_parts(split: object, solver: object, objective: object) -> None:
    for value, kind, such in (
        (split, AbstractSplit, "split=CrossFit(5)"),
        (solver, AbstractSolver, "solver=Exact()"),
        (objective, AbstractObjective, "objective=LeastSquares()"),
    ):
        if value is not None and not isinstance(value, kind):
            name = such.partition("=")[0]
            raise TypeError(f"the {name} is {value!r}: give one such as {such}.")


def _from_stream(
    f: IntegrandSpec,
    stream: Stream,
    family: AbstractFamily | None,
    split: AbstractSplit | None,
    penalty: AbstractPenalty | Sequence[AbstractPenalty] | None,
    objective: AbstractObjective | None,
    audit: AuditMode,
    working: Working,
) -> Estimate:
    split = CrossFit() if split is None else split
    with precision(np.float64):
        problem, coordinates, n, some = stream_problem(stream, family, penalty, objective, working)
        report = audited(some if audit == "off" else for_audit(stream, some, n), audit)
        better, plain, names, chosen, note = stream_held_out(
            f, stream, split, problem, coordinates, n, working, choose=family is None
        )
    papers = references_of(problem.family, split)
    made = beside(better, plain, names, chosen, note, references=papers)
    made = _at_least_single(made) if some.single else made
    return with_audit(made, report, audit)


def _chosen(wanted: Integrands, sample: Sample) -> Estimate:
    """The estimate with nothing given."""
    with precision(np.float64), progress("choosing control variates"):
        ess = chain_statistics(linearised(wanted.values, sample.weights)).ess
        choice, _ = automatic(wanted, sample, ess)
    return Estimate.from_held_out(
        choice.held, wanted, choice.names, sample.weights, choice.table(), CrossFit.references
    )


# Of a standard deviation: what scores in float32 may move.
SINGLE = 16 * float(np.finfo(np.float32).eps)


def _at_least_single(estimate: Estimate) -> Estimate:
    """The estimate with errors no smaller than what scores that were computed in float32 can shift.

    Their errors are of 16 roundings, as measured for sums over hundreds of data, and of one rounding of the
    value.
    """
    sd = np.asarray(estimate.plain_mcse) * np.sqrt(estimate.plain_ess)
    least = SINGLE * sd + np.finfo(np.float32).eps * np.abs(estimate.plain_value)
    mcse = np.maximum(estimate.mcse, np.nan_to_num(least, nan=0.0))
    return replace(estimate, mcse=mcse, worth=(estimate.plain_mcse / mcse) ** 2)
