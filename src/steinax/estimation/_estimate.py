"""Audited estimates from a sample or a stream: the function `estimate`."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from .._numerics import few_threads, precision
from .._show import describe, only_rounding, progress
from .._types import AnyArray, Key, Values
from ..auditing import AuditMode, AuditReport, Finding, Means, act_on, audited, critical
from ..chains import (
    ChainStatistics,
    batch_length,
    chain_statistics,
    heavy,
    linearised,
)
from ..citing import references_of
from ..data import (
    AffineMap,
    IntegrandColumns,
    Integrands,
    IntegrandSpec,
    LazySample,
    Sample,
    Stream,
    compiled,
    exceeding,
    integrand_columns,
    integrands,
    stacked,
    standardise,
    variables_asked,
)
from ..families import AbstractFamily, AbstractLinearFamily, Polynomial
from ..kernels import resolve
from ..objectives import AbstractObjective, AbstractPenalty, LeastSquares, choose_penalties
from ..solvers import (
    KEPT_DRAWS,
    AbstractSolver,
    Auto,
    Exact,
    Fits,
    Folds,
    Gathered,
    HeldOut,
    MomentsPass,
    Problem,
    SeriesPass,
    Working,
    each,
    features_of,
    first_pass,
    fits_without_each,
    for_audit,
    has_mean_square,
    moves_of_means,
    prepare,
    rows_in_run,
    runs,
    some_rows,
    typical_share,
    unknowns,
)
from ._blocks import (
    BETTER,
    MemoryPlan,
    better_of,
    controller,
    in_blocks,
    left_out,
    may_be_heavy,
    no_integrands,
    plan_blocks,
)
from ._candidates import polynomial, polynomial_size
from ._result import Estimate, from_statistics
from ._search import automatic
from ._splits import AbstractSplit, CrossFit

FALSE_ALARM = 5e-5  # probability of a false alarm, over all integrands of an estimate together


def contradiction(estimate: Estimate, wider: AnyArray | float = 1.0) -> Finding | None:
    r"""Test whether an estimate contradicts the plain average of the same draws; None if it does not.

    Both estimate the same number, so their difference has mean zero. It is tested for every integrand with
    Student's quantiles and the degrees of freedom of the plain average, wider on the side where a long
    tail may have been missed. Its error is computed as if the two were independent: if the residuals are
    zero it is that of the plain average, and if a fit is unstable their correlation cannot be trusted.

    Args:
        estimate: with its plain averages.
        wider: factors for the standard errors of the plain averages, (k,): see `_spread_on_training`.
    """
    apart = np.atleast_1d(estimate.plain_value - estimate.value)
    plain_mcse = np.atleast_1d(wider * np.asarray(estimate.plain_mcse))
    error = np.hypot(plain_mcse, np.nan_to_num(np.atleast_1d(estimate.mcse), nan=0.0))
    freedom = np.atleast_1d(estimate.plain_freedom)
    means = Means(apart, error, freedom, _skewness(estimate.plain_batches))
    limit, _ = critical(means, np.full(apart.shape, FALSE_ALARM / apart.size))
    with np.errstate(invalid="ignore", divide="ignore"):
        strength = np.nan_to_num(np.abs(apart) / (limit * error), nan=0.0)
    worst = int(strength.argmax())
    if not strength[worst] > 1.0:
        return None
    value, plain, plain_error = (
        np.atleast_1d(array)[worst] for array in (estimate.value, estimate.plain_value, plain_mcse)
    )
    message = (
        f"the estimate of {estimate.names[worst]}, {value:.6g}, contradicts the plain average of the "
        f"same draws, {plain:.6g} +- {plain_error:.2g}: they are {abs(apart[worst]) / error[worst]:.1f} "
        "standard errors apart. The scores are wrong in a way that the identities are too weak to "
        "identify: look for a missing Jacobian or prior, a boundary, or other data, and compare the "
        "scores with finite differences by steinax.audit(sample, log_density=...). To see both numbers "
        'give audit="warn".'
    )
    return Finding("contradiction", message, columns=(estimate.names[worst],))


def _skewness(batches: np.ndarray) -> np.ndarray:
    """Compute the skewness of the mean of a series from its batch means, (k,)."""
    return (_standardised(batches) ** 3).mean(axis=0) / np.sqrt(len(batches))


def _standardised(batches: np.ndarray) -> np.ndarray:
    """Scale batch means to mean square 1, (batch, k); 0 if a series is constant."""
    columns = np.asarray(batches).reshape(len(batches), -1)
    largest = np.abs(columns).max(axis=0)  # avoids overflow and underflow of the squares
    columns = columns / np.where(largest > 0, largest, 1.0)
    size = np.sqrt((columns**2).mean(axis=0))
    return columns / np.where(size > 0, size, 1.0)


UNADJUSTED = (
    "unadjusted sampler: part of its bias is removed, and the remaining bias is not in the mcse"
)


def with_audit(
    estimate: Estimate, report: AuditReport | None, mode: AuditMode, wider: AnyArray | float = 1.0
) -> Estimate:
    """Add the audit to an estimate, and a note on the remaining bias if the sampler is unadjusted.

    Raises or warns, depending on the mode, if the estimate contradicts the plain average of its draws.

    Args:
        estimate: an estimate, such as that of `Estimate.from_held_out`.
        report: the report of `audited` with the same mode.
        mode: as for `audited`.
        wider: factors for the standard errors of the plain averages, (k,).

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> est = sx.estimate("x", sx.Sample(x, -x), sx.Polynomial(1), audit="off")
    >>> with_audit(est, audited(sx.Sample(x, -x), "warn"), "warn").audit.passed
    True
    """
    if report is not None and mode in ("raise", "warn"):
        against = contradiction(estimate, wider)
        if against is not None:
            report = replace(report, problems=(against, *report.problems))
            act_on(report, mode)
    return replace(estimate, audit=report, note=noted(estimate.note, mode))


def noted(note: str, mode: AuditMode) -> str:
    """Append the warning about unadjusted samplers to a note, if the mode is "unadjusted"."""
    return f"{note}\n{UNADJUSTED}" if mode == "unadjusted" else note


JUDGED, LEAST = 10_000, 1000  # the most and the fewest draws that tails are judged by
JUDGED_NUMBERS = 2**23  # the most numbers in their columns: 64 MB


def judging_step(family: AbstractFamily, p: int, chains: int, length: int) -> int | None:
    """Return the step between the draws by which the tails of p columns are judged; None for no test.

    It depends only on these arguments, so the columns that are left out do too.
    """
    if not may_be_heavy(family):
        return None
    return -(-chains * length // min(max(JUDGED_NUMBERS // p, LEAST), JUDGED))


def of_best_degree(
    parts: list[Gathered], penalty: np.ndarray, folds: Folds, dim: int, degree: int
) -> tuple[Fits, tuple[str, ...], str]:
    """Choose the polynomial degree of least held-out variance for each integrand.

    Args:
        parts: the moments of each fold, with the columns of the highest degree.
        penalty: the penalty matrix, (p, p).
        folds: the start and stop of each fold.
        dim: the number of dimensions.
        degree: the highest degree.

    Returns:
        The fits, the name of each integrand's polynomial, and a note.
    """
    fits, note = fits_without_heavy(parts, penalty, folds)
    least, best = _variance(parts, fits, folds), np.full(fits.coef.shape[-1], degree)
    for lower in range(degree - 1, 0, -1):
        used = np.arange(len(penalty)) < polynomial_size(lower, dim)
        lower_fits = _fits(parts, penalty, used)
        variance = _variance(parts, lower_fits, folds)
        better = variance < least
        fits = _mixed(better, lower_fits, fits)
        least, best = np.minimum(least, variance), np.where(better, lower, best)
    return fits, tuple(polynomial(int(chosen)) for chosen in best), note


def _mixed(selected: np.ndarray, selected_fits: Fits, remaining_fits: Fits) -> Fits:
    """Combine the fits of selected integrands, a mask (k,), with those of the remaining ones."""
    return remaining_fits._replace(
        coef=np.where(selected, selected_fits.coef, remaining_fits.coef),
        intercepts=np.where(selected, selected_fits.intercepts, remaining_fits.intercepts),
    )


def fits_without_heavy(
    parts: list[Gathered], penalty: np.ndarray, folds: Folds
) -> tuple[Fits, str]:
    """Fit from moments without heavy-tailed columns, unless they are far better (see `without_heavy`).

    Args:
        parts: the moments of each fold.
        penalty: the penalty matrix, (p, p).
        folds: the start and stop of each fold.

    Returns:
        The fits, and a note that says how many columns were left out.
    """
    whole = _fits(parts, penalty, np.ones(len(penalty), bool))
    columns = np.concatenate([fold.some for fold in parts])
    bad = heavy(columns, errors=0.0) if len(columns) else np.zeros(len(penalty), bool)
    if not bad.any():
        return whole, ""
    light = _fits(parts, penalty, ~bad)
    keep = _variance(parts, whole, folds) < BETTER * _variance(parts, light, folds)
    if keep.all():
        return whole, ""
    return _mixed(keep, whole, light), left_out(bad, keep)


def _fits(parts: list[Gathered], penalty: np.ndarray, used: np.ndarray) -> Fits:
    """Fit some of the columns; the coefficients of the others are zero."""
    total, columns = reduce(Gathered.merge, parts), [np.flatnonzero(used)] * len(parts)
    intercepts, coef = fits_without_each([fold.moments for fold in parts], penalty, columns)
    return Fits(coef, intercepts, total.moments.mean_f, total.largest, total.names)


def _variance(parts: list[Gathered], fits: Fits, folds: Folds) -> np.ndarray:
    """Compute the variance of the estimates, ignoring autocorrelation, (k,)."""
    moments = [fold.left(coef) for fold, coef in zip(parts, fits.coef, strict=True)]
    means, squares = (np.stack(values) for values in zip(*moments, strict=True))
    sizes = np.diff(folds, axis=1)
    n = sizes.sum()
    between = sizes * (means - (sizes * means).sum(axis=0) / n) ** 2
    moved = (moves_of_means(means, fits.intercepts, folds) ** 2).sum(axis=0)
    return (squares + between).sum(axis=0) / n**2 + moved


UNUSED = {
    "memory": "memory is for draws in memory, and a stream holds a few blocks at a time: leave memory "
    "out. Stream.from_arrays(..., block=) makes the blocks smaller.",
    "threshold": "threshold is for draws in memory: give events as functions, such as lambda mu: mu > 0.5.",
    "key": "key is for solvers that draw random numbers, and a stream is fitted exactly: leave key out.",
    "standardise": "a stream's coordinates are always standardised: leave standardise out, or give a Sample.",
}


OPERATIONS = 2e12  # the most for the moments of a third degree on a stream: a minute or two
COLUMNS = 1000  # the most columns of a third degree
DRAWS = 20  # the fewest draws for each of its columns


def stream_degree(n: int, dim: int) -> int:
    """Return the highest degree of the polynomials that are tried on a stream of n draws."""
    size = polynomial_size(3, dim)
    if size <= min(n / DRAWS, COLUMNS) and n * float(size) ** 2 <= OPERATIONS:
        return 3
    return 2 if polynomial_size(2, dim) <= n / 4 else 1


def stream_problem(
    stream: Stream,
    family: AbstractFamily | None,
    penalty: AbstractPenalty | Sequence[AbstractPenalty] | None,
    objective: AbstractObjective | None,
    working: Working,
) -> tuple[Problem, AffineMap, int, Sample]:
    """Make the first pass over a stream: coordinates from all draws, everything else from a few of them.

    Without a family polynomials are used, whose degree is chosen in the second pass.
    """
    _refuse_for_stream(stream, family or Polynomial(1), working)
    coordinates, n, kept = first_pass(stream, working)
    family = family or Polynomial(stream_degree(n, kept.dim))
    indices = np.linspace(0, kept.size - 1, min(kept.size, KEPT_DRAWS)).round().astype(int)
    x, score = coordinates(kept.x[indices], kept.score[indices])
    penalties = choose_penalties(penalty, family, n, kept.dim)
    objective = LeastSquares() if objective is None else objective
    problem = Problem(resolve(family, x), penalties, objective, x, score, np.zeros((len(x), 1)))
    if unknowns(problem)[0] > n / 2 or has_mean_square(problem):
        raise ValueError(
            "a stream is fitted from moments, with fewer coefficients than draws and a penalty on "
            "the coefficients: use a lower degree, Landmarks(count), NativeNorm or NoPenalty."
        )
    return problem, coordinates, n, kept


def stream_integrands(
    f: IntegrandSpec | Integrands, solver: AbstractSolver | None, working: Working, **unused: object
) -> IntegrandSpec:
    """Check that a stream can use the arguments, and that `keep` can identify the integrands.

    Args:
        f: the integrands, returned unchanged.
        solver: the solver that was given.
        working: the settings with the folder of `keep`.
        unused: arguments that are for draws in memory.
    """
    if isinstance(f, Integrands) or not (solver is None or isinstance(solver, Auto | Exact)):
        raise ValueError(
            "a stream is fitted exactly, from moments, block by block: give integrands by name or as "
            "functions of the draw, and no solver."
        )
    if isinstance(solver, Exact) and solver.dual:
        raise ValueError(
            "Exact(dual=True) has an unknown for each draw, and a stream is fitted from moments, in "
            "primal form: use Exact(), or give no solver."
        )
    for name, value in unused.items():
        if value is not None and value is not False:
            raise ValueError(UNUSED[name])
    working.label(f)  # raises now rather than after a pass over all draws
    return f


def _refuse_for_stream(stream: Stream, family: AbstractFamily, working: Working) -> None:
    if not isinstance(family, AbstractLinearFamily):
        raise ValueError(
            "a stream is fitted from moments, which need a family that is linear in its parameters: "
            "use Polynomial, RandomFeatures or KernelTranslates, or a Sample in memory."
        )
    if any(isinstance(term, AbstractLinearFamily) and term.is_whole_space for term in family.terms):
        raise ValueError(
            "AllDraws() centres a kernel on every draw, and a stream keeps 1,000 of them: say how many "
            "centres it should have, by KernelTranslates(kernel, Landmarks(count))."
        )
    if family.keeps_coordinates:
        raise ValueError(
            "a stream's coordinates are whitened, and Subset refers to the original ones: give a Sample."
        )
    if stream.source is None and (working.client, working.keep) != (None, None):
        raise ValueError(
            "the blocks of this stream come from a function, which one process calls, in order: leave "
            "out client and keep, or use Stream.from_arrays or from_zarr."
        )


def stream_held_out(
    f: IntegrandSpec,
    stream: Stream,
    split: AbstractSplit,
    problem: Problem,
    coordinates: AffineMap,
    n: int,
    working: Working,
    choose: bool = False,
) -> tuple[ChainStatistics, ChainStatistics, tuple[str, ...], tuple[str, ...], str]:
    """Make the second pass, for the moments of each fold, and the third, which subtracts g from f.

    Returns:
        The statistics of f - g and of f, the names of the integrands, the control variate of each, and a
        note. With `choose` the degree of a polynomial is chosen for each integrand.
    """
    if not isinstance(split, CrossFit):
        raise ValueError("a stream is cross-fitted: use split=CrossFit(folds).")
    f, length, source = compiled(f), n // stream.chains, stream.source
    folds = split.boundaries(stream.chains, length)
    features, penalty = features_of(problem, coordinates, n - n / len(folds))
    k = None if source is None else _count(f, source)
    rows = rows_in_run(source, 2 * problem.x.shape[1], features.size, k or 1)
    cut = runs(folds, stream.chains, length, rows)
    label = working.label(f, features, folds, np.array(cut), _given(f, stream, working))
    gathered: list[Gathered | None] = [None] * len(folds)
    step = judging_step(problem.family, features.size, stream.chains, length)
    second = MomentsPass(source, f, features, k, step)
    for run, result in each(second, stream, cut, length, working, label, "gathering moments"):
        before = gathered[run.fold]
        gathered[run.fold] = result if before is None else before.merge(result)
    known = [fold for fold in gathered if fold is not None]
    if choose and isinstance(problem.family, Polynomial):
        dim, degree = problem.x.shape[1], problem.family.degree
        fits, chosen, tails = of_best_degree(known, penalty, folds, dim, degree)
    else:
        fits, tails = fits_without_heavy(known, penalty, folds)
        chosen = (describe(problem.family),) * len(fits.names)
    batch = batch_length(stream.chains, length, len(fits.names))
    third = SeriesPass(source, f, features, fits, length, batch)
    label = working.label(label, fits, batch)
    results = each(third, stream, cut, length, working, label, "computing standard errors")
    better, plain = third.statistics(results, stream.chains, folds)
    note = f"{len(folds)} folds, moments of {features.size} coefficients from blocks of {n} draws"
    return better, plain, fits.names, chosen, note + tails


def _count(f: IntegrandSpec, source: LazySample) -> int:
    """Count the integrands by evaluating f on a few draws."""
    return len(integrands(f, source.read(0, 0, min(source.length, 8))).names)


def _given(f: IntegrandSpec, stream: Stream, working: Working) -> object:
    """Return what f depends on besides the draws, to label kept results: names and variables."""
    source = stream.source
    if source is None or source.variables is None or working.keep is None:
        return source and source.names
    variables, rows = source.variables, some_rows(source)
    blocks = (
        variables.isel(slice(chain, chain + 1), span)
        for chain in range(source.chains)
        for span in rows
    )
    return source.names, [variables_asked(f, block) for block in blocks]


def estimate(
    f: IntegrandSpec | Integrands,
    sample: Sample | Stream = None,  # pyright: ignore[reportArgumentType]  # checked below
    family: AbstractFamily | None = None,
    *,
    threshold: float | None = None,
    split: AbstractSplit | None = None,
    penalty: AbstractPenalty | Sequence[AbstractPenalty] | None = None,
    objective: AbstractObjective | None = None,
    solver: AbstractSolver | None = None,
    key: Key | None = None,
    standardise: bool = True,
    audit: AuditMode = "raise",
    memory: float | None = None,
    client: Any = None,
    keep: str | os.PathLike[str] | None = None,
) -> Estimate:
    r"""Estimate expectations under the target, with far smaller errors than plain averages.

    A control variate $g$ of mean zero is fitted to $f$ on some draws, and $f - g$ is averaged over
    others, in turn, so that every draw is used. If no family is given, polynomials and kernels of
    many length-scales and penalties are tried on held-out draws, and the best is chosen for each
    integrand; plain Monte Carlo is one of them. If the sample has importance weights, all averages are
    self-normalised weighted ones, including the plain averages.

    Args:
        f: the integrands: a name, a function of one draw, an array, or a dict of these. A function gets
            variables by the names of its arguments, `lambda mu, tau: mu + tau`, or the whole draw,
            `lambda x: x[0]`. If a variable is called x, write `lambda x, /: x[0]` for the whole draw and
            `lambda *, x: x` for the variable. Arrays of zarr, dask, h5py and xarray are read only when
            some of their columns are needed.
        sample: the draws and scores, in memory or as a stream of blocks.
        family: the family of control variates; chosen from the draws by default (for a stream among
            polynomials). `split`, `penalty`, `objective`, `solver` and `standardise` go with a given family.
        threshold: estimate the probabilities that integrands exceed it, in place of their expectations.
        split: `CrossFit()` by default, or `HoldOut(fraction)` or `InSample()`.
        penalty: on the family's parameters, one for all terms or one for each.
        objective: `LeastSquares()` by default.
        solver: `Auto()` by default.
        key: for solvers that draw random numbers; a fixed one by default.
        standardise: False for control variates in the coordinates of the draws as they are given.
        audit: what to do if the scores do not belong to the draws (see `audit`): `"raise"`; `"warn"`;
            `"unadjusted"` for samplers without a Metropolis step, whose draws are expected to fail;
            or `"off"` to skip the audit.
        memory: the budget in bytes, half of the free memory by default. Integrands that need more are
            read and estimated in blocks, from one factorisation: see `memory_plan`.
        client: a `dask.distributed.Client` whose workers read the blocks of a stream; by default the
            threads of this process do.
        keep: a folder for intermediate results of a stream's blocks, so that a long run that was stopped
            can be resumed by starting it again. It cannot be used for other draws or settings, nor for
            functions with other code or other values of the variables they use.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> est = sx.estimate({"square": lambda x: x[0] ** 2}, sx.Sample(x, -x))
    >>> bool(abs(est.value[0] - 1.0) < 1e-10)
    True
    """
    f = f if threshold is None or isinstance(sample, Stream) else exceeding(f, threshold)
    if isinstance(sample, Stream):
        working = Working(client, keep)
        unused = {
            "memory": memory,
            "key": key,
            "threshold": threshold,
            "standardise": not standardise,
        }
        f = stream_integrands(f, solver, working, **unused)
        return _from_stream(f, sample, family, split, penalty, objective, audit, working)
    if (client, keep) != (None, None):
        raise ValueError("client and keep are for a Stream: leave them out for draws in memory.")
    settings = split, penalty, objective, solver, standardise, key, memory
    with few_threads(sample):
        if getattr(sample, "tried", ()) and not isinstance(f, Integrands):
            return _tried(f, sample, family, audit, *settings)
        return _from_sample(f, sample, family, audit, *settings)


def _tried(
    f: IntegrandSpec,
    sample: Sample,
    family: AbstractFamily | None,
    audit: AuditMode,
    *settings: Any,
) -> Estimate:
    """Estimate without and with the training points to be tried, and keep the smaller standard errors."""
    without = sample.with_training(*sample.training)
    among = sample.with_training(*sample.training, *sample.tried)
    found = _from_sample(f, without, family, audit, *settings)
    trial = _from_sample(f, among, family, "off", *settings)
    if contradiction(trial) is not None:
        return found
    return better_of(found, trial, sum(part.size for part in sample.tried))


def _from_sample(
    f: IntegrandSpec | Integrands,
    sample: Sample,
    family: AbstractFamily | None,
    audit: AuditMode,
    split: AbstractSplit | None,
    penalty: AbstractPenalty | Sequence[AbstractPenalty] | None,
    objective: AbstractObjective | None,
    solver: AbstractSolver | None,
    standardise: bool,
    key: Key | None,
    memory: float | None,
) -> Estimate:
    columns = integrand_columns(f, sample, jumps=family is None)
    report = audited(sample, audit)
    if family is None:
        _refuse(split, penalty, objective, solver, None if standardise else standardise)
        plan = plan_blocks(columns, sample, None, memory)
        return _completed(
            columns, plan, lambda wanted: _chosen(wanted, sample), sample, report, audit
        )
    split, solver = CrossFit() if split is None else split, Auto() if solver is None else solver
    _check_parts(split, solver, objective)
    with precision(sample.dtype), progress("estimating"):
        penalty = solver.penalty if penalty is None else penalty
        unread = no_integrands(sample, columns.training is not None)
        problem, _ = prepare(unread, sample, family, penalty, objective, standardise)
        plan = plan_blocks(columns, sample, problem, memory, solver)
        control = controller(problem, plan, split, sample.chains, solver, key)
        papers = references_of(problem.family, split) + solver.references_for(problem)

        def of_block(wanted: Integrands) -> Estimate:
            return _fitted(wanted, sample, control, problem, papers)

        return _completed(columns, plan, of_block, sample, report, audit)


def _completed(
    columns: IntegrandColumns,
    plan: MemoryPlan,
    estimate_block: Callable[[Integrands], Estimate],
    sample: Sample,
    report: AuditReport | None,
    audit: AuditMode,
) -> Estimate:
    """Estimate all blocks, and add the note on training points, the rounding of float32 and the audit."""
    wider, share = [], None
    if columns.training is not None:
        x, _ = stacked(sample, True)
        centred = standardise(x)(x, x)[0]
        share = typical_share(centred, np.arange(len(x)) < sample.size)

    def of_block(wanted: Integrands) -> Estimate:
        wider.append(_spread_on_training(wanted, share))
        return estimate_block(wanted)

    result = in_blocks(columns, plan, of_block)
    if columns.note:
        result = replace(result, note=f"{result.note}\n{columns.note}")
    result = _at_least_float32(result) if sample.single else result
    return with_audit(result, report, audit, np.concatenate(wider))


def _spread_on_training(wanted: Integrands, share: np.ndarray | None) -> np.ndarray:
    """Divide the standard deviations of integrands on all points by those on draws, at least 1: (k,).

    A few draws may miss a long tail, and the plain average then has too small an error.
    """
    if share is None:
        return np.ones(len(wanted.names))
    values = np.asarray(wanted.values).reshape(-1, len(wanted.names))
    plain = HeldOut(values, beside=wanted.training, share=share)
    variance = np.asarray(plain.residual, np.float64).var(axis=0)
    return np.sqrt(1 + plain.excess / np.where(variance > 0, variance, 1.0))


def _fitted(
    wanted: Integrands,
    sample: Sample,
    control: Callable[[Values], HeldOut],
    problem: Problem,
    papers: tuple[str, ...],
) -> Estimate:
    """Estimate a block of integrands with a given family."""
    chosen = (describe(problem.family),) * len(wanted.names)
    return Estimate.from_held_out(
        control(wanted.rows), wanted, chosen, sample.weights, references=papers
    )


def _refuse(*given: object) -> None:
    if any(option is not None for option in given):
        raise ValueError(
            "split, penalty, objective, solver and standardise go with a family: give one as the third "
            "argument, such as Polynomial(2), or leave them out to have everything chosen from the draws."
        )


def _check_parts(split: object, solver: object, objective: object) -> None:
    for value, kind, example in (
        (split, AbstractSplit, "split=CrossFit(5)"),
        (solver, AbstractSolver, "solver=Exact()"),
        (objective, AbstractObjective, "objective=LeastSquares()"),
    ):
        if value is not None and not isinstance(value, kind):
            name = example.partition("=")[0]
            raise TypeError(f"the {name} is {value!r}: give one such as {example}.")


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
        problem, coordinates, n, kept = stream_problem(stream, family, penalty, objective, working)
        report = audited(kept if audit == "off" else for_audit(stream, kept, n), audit)
        better, plain, names, chosen, note = stream_held_out(
            f, stream, split, problem, coordinates, n, working, choose=family is None
        )
    papers = references_of(problem.family, split)
    result = from_statistics(better, plain, names, chosen, note, references=papers)
    result = _at_least_float32(result) if kept.single else result
    return with_audit(result, report, audit)


def _chosen(wanted: Integrands, sample: Sample) -> Estimate:
    """Estimate a block of integrands with automatically chosen control variates."""
    with precision(np.float64), progress("choosing control variates"):
        ess = chain_statistics(linearised(wanted.values, sample.weights)).ess
        choice, _ = automatic(wanted, sample, ess)
    return Estimate.from_held_out(
        choice.held, wanted, choice.names, sample.weights, choice.table(), CrossFit.references
    )


# Possible shift of an estimate due to scores in float32, relative to the standard deviation.
SINGLE = 16 * float(np.finfo(np.float32).eps)


def _at_least_float32(estimate: Estimate) -> Estimate:
    """Increase standard errors to at least the possible shift due to scores computed in float32.

    That is 16 roundings of the standard deviation, as measured for sums over hundreds of data, and one
    rounding of the value.
    """
    sd = np.asarray(estimate.plain_mcse) * np.sqrt(estimate.plain_ess)
    least = SINGLE * sd + np.finfo(np.float32).eps * np.abs(estimate.plain_value)
    is_constant = only_rounding(np.asarray(estimate.plain_mcse), np.asarray(estimate.plain_value))
    mcse = np.maximum(estimate.mcse, np.where(is_constant, 0.0, np.nan_to_num(least, nan=0.0)))
    return replace(estimate, mcse=mcse, worth=(estimate.plain_mcse / mcse) ** 2)
