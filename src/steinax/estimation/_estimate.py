from collections.abc import Sequence
from dataclasses import replace

import equinox as eqx
import numpy as np

from .._precision import precision
from .._progress import progress
from .._show import describe
from .._types import AnyArray, Key, Series
from ..chains import ChainStatistics, chain_statistics
from ..data import Integrands, Sample, Stream, integrands
from ..data._integrands import IntegrandSpec
from ..families import AbstractFamily, Polynomial
from ..fitting import prepare, random_key
from ..objectives import AbstractObjective, AbstractPenalty
from ..solvers import AbstractSolver, Auto, Exact
from ._automatic import automatic
from ._candidates import Candidates
from ._choice import Choice
from ._splits import AbstractSplit, CrossFit
from ._streaming import stream_held_out, stream_problem
from ._table import table


class Estimate(eqx.Module):
    """Expectations with control variates, beside the plain ones: arrays over the integrands.

    Attributes:
        value: the estimates.
        mcse: their Monte Carlo standard errors; NaN where there is no honest one (see `reason`).
        plain_value: the averages of f over all draws.
        plain_mcse: their Monte Carlo standard errors.
        worth: how many times as many plain draws would be as accurate, (plain_mcse / mcse)^2.
        ess: effective sample sizes of the controlled series.
        rhat: split R-hat of the controlled series.
        names: of the integrands.
        chosen: the control variate that each integrand got.
        note: how it was fitted and used.
        reason: why there is no standard error, or None.
        candidates: what was tried, if the choice was automatic: print it.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> est = sx.estimate("x", sx.Sample(x, -x))
    >>> bool(est["x[0]"].mcse < 1e-10)
    True
    """

    value: AnyArray
    mcse: AnyArray
    plain_value: AnyArray
    plain_mcse: AnyArray
    worth: AnyArray
    ess: AnyArray
    rhat: AnyArray
    names: tuple[str, ...] = eqx.field(static=True)
    chosen: tuple[str, ...] = eqx.field(static=True)
    note: str = eqx.field(static=True)
    reason: str | None = eqx.field(static=True, default=None)
    candidates: Candidates | None = None

    def __getitem__(self, name: str) -> "Estimate":
        """The estimate of one integrand, its arrays reduced to numbers."""
        if name not in self.names:
            raise KeyError(f"no integrand is called {name!r}: there are {', '.join(self.names)}.")
        i = self.names.index(name)
        arrays = {field: np.asarray(getattr(self, field)[i]) for field in _ARRAYS}
        tried = None if self.candidates is None else self.candidates.of(i)
        return replace(self, names=(name,), chosen=(self.chosen[i],), candidates=tried, **arrays)

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return table(self)


_ARRAYS = ("value", "mcse", "plain_value", "plain_mcse", "worth", "ess", "rhat")


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

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> est = sx.estimate({"square": lambda x: x[0] ** 2}, sx.Sample(x, -x))
    >>> bool(abs(est.value[0] - 1.0) < 1e-10)
    True
    """
    if isinstance(sample, Stream):
        family = Polynomial(2) if family is None else family
        return _from_stream(f, sample, family, split, penalty, objective, solver)
    wanted = integrands(f, sample)
    if family is None:
        _refuse(split, penalty, objective, solver)
        with precision(np.float64), progress("choosing control variates"):
            plain = chain_statistics(wanted.values)
            choice, _ = automatic(wanted, sample, plain.ess)
        return _assemble_choice(wanted, plain, choice)
    split = CrossFit() if split is None else split
    with precision(sample.dtype), progress("estimating"):
        problem, _ = prepare(wanted, sample, family, penalty, objective)
        solver = Auto() if solver is None else solver
        controlled = split.control(problem, sample.chains, solver, random_key(key))
    chosen = (describe(problem.family),) * len(wanted.names)
    return _assemble(wanted, controlled.rest, chosen, controlled.note, controlled.no_error)


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
) -> Estimate:
    split = CrossFit() if split is None else split
    if isinstance(f, Integrands) or not (solver is None or isinstance(solver, (Auto, Exact))):
        raise ValueError(
            "a stream is fitted exactly, from moments, block by block: give integrands by name or as "
            "functions of the draw, and no solver."
        )
    with precision(np.float64), progress("estimating from blocks"):
        problem, coordinates, n = stream_problem(stream, family, penalty, objective)
        plain, rest, names, note = stream_held_out(f, stream, split, problem, coordinates, n)
    shape = (stream.chains, n // stream.chains, len(names))
    wanted = Integrands(plain.reshape(shape), names)
    chosen = (describe(problem.family),) * len(names)
    return _assemble(wanted, rest.reshape(shape), chosen, note, None)


def _assemble(
    wanted: Integrands, rest: Series, chosen: tuple[str, ...], note: str, no_error: str | None
) -> Estimate:
    better = chain_statistics(rest, np.abs(wanted.values).max(axis=(0, 1)))
    if no_error is not None:
        better = replace(better, mcse=np.full_like(better.mcse, np.nan))
    plain = chain_statistics(wanted.values)
    return beside(better, plain, wanted.names, chosen, note, reason=no_error)


def _assemble_choice(wanted: Integrands, plain: ChainStatistics, choice: Choice) -> Estimate:
    rest = choice.rest.reshape(wanted.values.shape)
    better = chain_statistics(rest, np.abs(wanted.values).max(axis=(0, 1)))
    mcse = np.hypot(better.mcse * np.sqrt(choice.inflation), np.sqrt(choice.disagreement))
    better, tried = replace(better, mcse=mcse), choice.candidates()
    return beside(better, plain, wanted.names, choice.names, choice.note, candidates=tried)


def beside(
    better: ChainStatistics,
    plain: ChainStatistics,
    names: tuple[str, ...],
    chosen: tuple[str, ...],
    note: str,
    *,
    reason: str | None = None,
    candidates: Candidates | None = None,
) -> Estimate:
    """The estimate from the statistics of what is left of f, beside those of f itself."""
    return Estimate(
        value=better.mean,
        mcse=better.mcse,
        plain_value=plain.mean,
        plain_mcse=plain.mcse,
        worth=(plain.mcse / better.mcse) ** 2,
        ess=better.ess,
        rhat=better.rhat,
        names=names,
        chosen=chosen,
        note=note,
        reason=reason,
        candidates=candidates,
    )
