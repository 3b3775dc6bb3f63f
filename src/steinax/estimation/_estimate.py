from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .._precision import precision
from .._progress import progress
from .._show import describe
from .._types import Key
from ..chains import ChainStatistics, chain_statistics, controlled_statistics
from ..data import Integrands, Sample, Stream, integrands
from ..data._integrands import IntegrandSpec
from ..families import AbstractFamily, Polynomial
from ..fitting import prepare, random_key
from ..objectives import AbstractObjective, AbstractPenalty
from ..solvers import AbstractSolver, Auto, Exact
from ._audited import AuditMode, audited, with_audit
from ._automatic import automatic
from ._choice import Choice
from ._result import Estimate, beside
from ._splits import AbstractSplit, Controlled, CrossFit
from ._streaming import stream_held_out, stream_problem
from ._tails import without_heavy


def estimate(
    f: IntegrandSpec | Integrands,
    sample: Sample | Stream,
    family: AbstractFamily | None = None,
    *,
    split: AbstractSplit | None = None,
    penalty: AbstractPenalty | Sequence[AbstractPenalty] | None = None,
    objective: AbstractObjective | None = None,
    solver: AbstractSolver | None = None,
    key: Key | None = None,
    quick: bool = False,
    audit: AuditMode = "raise",
) -> Estimate:
    r"""Estimate expectations under the target, with a far smaller error than plain averages have.

    A control variate $g$ of mean zero is fitted to $f$ on some draws, and $f - g$ is averaged over
    others, in turn, so that every draw is used. With no family given, polynomials and kernels of
    many length-scales and penalties are tried on held-out draws, and the best is chosen for each
    integrand; plain Monte Carlo is one of them.

    Args:
        f: the integrands: a name, a function of one draw, an array, or a dict of these.
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

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> est = sx.estimate({"square": lambda x: x[0] ** 2}, sx.Sample(x, -x))
    >>> bool(abs(est.value[0] - 1.0) < 1e-10)
    True
    """
    if isinstance(sample, Stream):
        family = Polynomial(2) if family is None else family
        return _from_stream(f, sample, family, split, penalty, objective, solver, audit)
    wanted = integrands(f, sample)
    report = audited(sample, audit)
    if family is None:
        _refuse(split, penalty, objective, solver)
        return with_audit(_chosen(wanted, sample, quick), report, audit)
    if quick:
        raise ValueError("quick is for the choice of a family, and one is given: leave one out.")
    split = CrossFit() if split is None else split
    with precision(sample.dtype), progress("estimating"):
        problem, _ = prepare(wanted, sample, family, penalty, objective)
        solver = Auto() if solver is None else solver
        controlled, tails = without_heavy(
            problem, lambda one: split.control(one, sample.chains, solver, random_key(key))
        )
    controlled = replace(controlled, note=controlled.note + tails)
    chosen = (describe(problem.family),) * len(wanted.names)
    return with_audit(_assemble(wanted, controlled, chosen), report, audit)


def _refuse(*given: object) -> None:
    if any(option is not None for option in given):
        raise ValueError(
            "split, penalty, objective and solver go with a family: give one as the third argument, "
            "such as Polynomial(2), or leave them out and all is chosen from the draws."
        )


def _from_stream(
    f: IntegrandSpec | Integrands,
    stream: Stream,
    family: AbstractFamily,
    split: AbstractSplit | None,
    penalty: AbstractPenalty | Sequence[AbstractPenalty] | None,
    objective: AbstractObjective | None,
    solver: AbstractSolver | None,
    audit: AuditMode,
) -> Estimate:
    split = CrossFit() if split is None else split
    if isinstance(f, Integrands) or not (solver is None or isinstance(solver, (Auto, Exact))):
        raise ValueError(
            "a stream is fitted exactly, from moments, block by block: give integrands by name or as "
            "functions of the draw, and no solver."
        )
    with precision(np.float64), progress("estimating from blocks"):
        problem, coordinates, n, some = stream_problem(stream, family, penalty, objective)
        report = audited(some, audit)
        wanted, controlled = stream_held_out(f, stream, split, problem, coordinates, n)
    chosen = (describe(problem.family),) * len(wanted.names)
    return with_audit(_assemble(wanted, controlled, chosen), report, audit)


def _assemble(wanted: Integrands, controlled: Controlled, chosen: tuple[str, ...]) -> Estimate:
    better = controlled_statistics(controlled.rest, wanted.values, controlled.instability)
    if controlled.no_error is not None:
        better = replace(better, mcse=np.full_like(better.mcse, np.nan))
    plain = chain_statistics(wanted.values)
    reason = controlled.no_error
    return beside(better, plain, wanted.names, chosen, controlled.note, reason=reason)


def _chosen(wanted: Integrands, sample: Sample, quick: bool) -> Estimate:
    """The estimate with nothing given; if it is to be quick, from polynomials alone."""
    with precision(np.float64), progress("choosing control variates"):
        plain = chain_statistics(wanted.values)
        choice, _ = automatic(wanted, sample, plain.ess, quick)
    return _assemble_choice(wanted, plain, choice)


def _assemble_choice(wanted: Integrands, plain: ChainStatistics, choice: Choice) -> Estimate:
    rest = choice.rest.reshape(wanted.values.shape)
    unseen = choice.instability + choice.disagreement
    better, tried = controlled_statistics(rest, wanted.values, unseen), choice.candidates()
    return beside(better, plain, wanted.names, choice.names, choice.note, candidates=tried)
