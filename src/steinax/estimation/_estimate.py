import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from .._precision import precision
from .._progress import progress
from .._show import describe
from .._types import Key, Values
from ..chains import ChainStatistics, chain_statistics, controlled_statistics, linearised
from ..data import Integrands, Sample, Stream
from ..data._integrands import IntegrandSpec, columns
from ..data._space import has_families, space_families
from ..families import AbstractFamily, Polynomial
from ..fitting import prepare, random_key
from ..objectives import AbstractObjective, AbstractPenalty
from ..solvers import AbstractSolver, Auto, Problem
from ._audited import AuditMode, audited, with_audit
from ._automatic import automatic
from ._choice import Choice
from ._many import controller, in_blocks, nothing
from ._memory import plan_blocks
from ._on_space import on_space
from ._result import Estimate, beside
from ._splits import AbstractSplit, Controlled, CrossFit
from ._stream_coordinates import for_audit
from ._stream_runs import Working
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
    quick: bool = False,
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
            variables by the names of its arguments, `lambda mu, tau: mu / tau`, or the whole draw,
            `lambda x: x[0]`. If a variable is called x, write `lambda x, /: x[0]` for the whole draw and
            `lambda *, x: x` for the variable. Arrays of zarr, dask, h5py and xarray stay where they are
            until some of their columns are needed.
        sample: the draws and scores, in memory or as a stream of blocks.
        family: of control variates; chosen from the draws by default (for a stream
            `Polynomial(2)`). The arguments below go with a family of your own.
        split: `CrossFit()` by default, or `HoldOut(fraction)` or `InSample()`.
        penalty: on the family's parameters, one for all terms or one for each.
        objective: `LeastSquares()` by default.
        solver: `Auto()` by default.
        key: for solvers that draw random numbers; a fixed one by default.
        quick: with no family given, whether to try polynomials alone: about a second, without the time
            that jax takes to compile, and often far from what kernels give.
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
        family, working = family or Polynomial(2), Working(client, keep)
        f = stream_integrands(f, solver, working, quick=quick, memory=memory, key=key)
        return _from_stream(f, sample, family, split, penalty, objective, audit, working)
    if (client, keep) != (None, None):
        raise ValueError("client and keep are for a Stream: leave them out for draws in memory.")
    found, report = columns(f, sample), audited(sample, audit)
    if family is None:
        _refuse(split, penalty, objective, solver)
        plan = plan_blocks(len(found.names), sample, None, found.extra, memory)
        made = in_blocks(found, plan, lambda wanted: _chosen(wanted, sample, quick))
        return with_audit(made, report, audit)
    if quick:
        raise ValueError("quick is for the choice of a family, and one is given: leave one out.")
    split, solver = CrossFit() if split is None else split, Auto() if solver is None else solver
    _check_parts(split, solver, objective)
    with precision(sample.dtype), progress("estimating"):
        penalty = solver.penalty if penalty is None else penalty
        problem, _ = prepare(nothing(sample), sample, family, penalty, objective)
        plan = plan_blocks(len(found.names), sample, problem, found.extra, memory, solver)
        control = controller(problem, plan, split, sample.chains, solver, random_key(key))
        made = in_blocks(found, plan, lambda wanted: _fitted(wanted, sample, control, problem))
    return with_audit(made, report, audit)


def _fitted(
    wanted: Integrands, sample: Sample, control: Callable[[Values], Controlled], problem: Problem
) -> Estimate:
    """The estimate of some integrands with a given family."""
    controlled = control(jnp.asarray(wanted.values).reshape(problem.x.shape[0], -1))
    chosen = (describe(problem.family),) * len(wanted.names)
    return _assemble(wanted, sample, controlled, chosen)


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
    family: AbstractFamily,
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
        better, plain, names, note = stream_held_out(
            f, stream, split, problem, coordinates, n, working
        )
    chosen = (describe(problem.family),) * len(names)
    return with_audit(beside(better, plain, names, chosen, note), report, audit)


def _assemble(
    wanted: Integrands, sample: Sample, controlled: Controlled, chosen: tuple[str, ...]
) -> Estimate:
    better = controlled_statistics(controlled.rest, wanted.values, controlled.instability)
    if controlled.no_error is not None:
        better = replace(better, mcse=np.full_like(better.mcse, np.nan))
    plain = chain_statistics(linearised(wanted.values, sample.weights))
    reason = controlled.no_error
    return beside(better, plain, wanted.names, chosen, controlled.note, reason=reason)


def _chosen(wanted: Integrands, sample: Sample, quick: bool) -> Estimate:
    """The estimate with nothing given; if it is to be quick, from polynomials alone."""
    with precision(np.float64), progress("choosing control variates (the first call compiles)"):
        plain = chain_statistics(linearised(wanted.values, sample.weights))
        if has_families(sample):
            choice = on_space(wanted, sample, space_families(sample), plain.ess, quick)
        else:
            choice, _ = automatic(wanted, sample, plain.ess, quick)
    return _assemble_choice(wanted, plain, choice)


def _assemble_choice(wanted: Integrands, plain: ChainStatistics, choice: Choice) -> Estimate:
    rest = choice.rest.reshape(wanted.values.shape)
    unseen = choice.instability + choice.disagreement
    better, tried = controlled_statistics(rest, wanted.values, unseen), choice.candidates()
    return beside(better, plain, wanted.names, choice.names, choice.note, candidates=tried)
