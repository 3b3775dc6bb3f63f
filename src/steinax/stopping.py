"""Sample until expectations are known precisely enough, and follow a sampler that is running."""

import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from ._show import count, counted, only_rounding, progress, some_of, worth_text
from .adapters import NoDrawsError, cmdstan_length, from_cmdstan, from_nutpie, nutpie_length
from .auditing import RHAT, AuditMode
from .chains import chain_statistics
from .data import Integrands, IntegrandSpec, Sample, integrands, places
from .estimation import Estimate, estimate
from .families import AbstractFamily

__all__ = ["Look", "Stopped", "follow", "until"]

type Unit = Literal["sd", "absolute", "relative"]
type Reason = Literal["precise", "draws", "seconds", "ended", "chains"]

LEAST = 100  # effective draws of every integrand, before which no error bar is believed
GROWTH = 1.25  # of the number of draws, at least, from one look to the next
MOST = 2.0  # growth at most: a look that is late leaves out the draws beyond
SHARE = 0.1  # of the time that looks may take otherwise
IN_A_ROW = 2  # looks that have to be precise
PATIENCE = 600.0  # seconds without new draws, after which a run has ended
WAIT = 60.0  # seconds for the first file of a run
WAKE = 0.2  # seconds between two looks for it
SETTLED = 50  # effective draws of each chain alone, from which on chains that differ will go on to

REASONS = {
    "precise": "stopped: every {level} interval is within its tolerance",
    "draws": "stopped at the budget of draws, before every mean was precise",
    "seconds": "stopped at the budget of seconds, before every mean was precise",
    "ended": "the draws ended before every mean was precise",
    "chains": "stopped because the chains disagree: their means differ, and more draws will not help. "
    "Look at the chains, and reparametrise the model",
}


@dataclass(frozen=True, repr=False)
class Look:
    """One look at a run that is going on.

    Attributes:
        draws: the number of draws, of all chains together.
        seconds: since `until` was called.
        estimate: from these draws.
        half: half the width of each interval, (k,).
        tolerance: what that may be, (k,).
        apart: whether the chains have different means, though each alone has many effective draws.
    """

    draws: int
    seconds: float
    estimate: Estimate
    half: np.ndarray
    tolerance: np.ndarray
    apart: bool = False

    @property
    def ratio(self) -> np.ndarray:
        """Half widths over tolerances, (k,): at most 1 is precise enough. 0 for constants."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(_is_constant(self.estimate), 0.0, self.half / self.tolerance)

    @property
    def precise(self) -> bool:
        """Whether every interval is within its tolerance, from enough draws of chains that agree."""
        effective = np.where(_is_constant(self.estimate), np.inf, self.estimate.plain_ess)
        mixed = not np.any(self.estimate.plain_rhat > RHAT)
        return bool(np.all(self.ratio <= 1) and np.all(effective >= LEAST) and mixed)

    @property
    def widest(self) -> str:
        """The name of the integrand that is furthest from its tolerance."""
        return self.estimate.names[int(np.argmax(_or_infinite(self.ratio)))]

    def __repr__(self) -> str:
        return f"{self.draws} draws: {self.distance}"

    @property
    def distance(self) -> str:
        """How far the intervals are from their tolerances, in words."""
        within = int((self.ratio <= 1).sum())
        text = f"{within} of {len(self.ratio)} intervals within the tolerance"
        if within < len(self.ratio):
            times = worth_text(_or_infinite(self.ratio).max())
            far = "just above it" if times == "1" else f"{times} times too wide"
            text += f"; that of {self.widest} is {far}"
        elif not self.precise:
            text += f", but from fewer than {LEAST} effective draws, or from chains with R-hat above {RHAT}"
        return text


@dataclass(frozen=True, repr=False)
class Stopped:
    """A run of a sampler, the estimate from it, and why it was stopped.

    Attributes:
        estimate: its errors are those of the last two looks, the larger of both.
        sample: its draws.
        looks: every look at the run.
        reason: `"precise"` if every interval is within its tolerance; `"draws"` or `"seconds"` if a budget
            was used up; `"ended"` if there were no more draws; `"chains"` if the chains disagree.
        level: the probability of the intervals.
        seconds: that looking took, out of those of the last look.
    """

    estimate: Estimate
    sample: Sample
    looks: tuple[Look, ...]
    reason: Reason
    level: float
    seconds: float

    @property
    def precise(self) -> bool:
        """Whether every interval is within its tolerance."""
        return self.reason == "precise"

    @property
    def plain_draws(self) -> np.ndarray:
        """The draws that plain averages would need for the same tolerance, (k,)."""
        last = self.looks[-1]
        half = np.ptp(last.estimate.plain_interval(self.level), axis=-1) / 2
        with np.errstate(divide="ignore", invalid="ignore"):
            needed = last.draws * (half / last.tolerance) ** 2
        return np.where(_is_constant(last.estimate), 0.0, needed)

    @property
    def summary(self) -> str:
        """Why the run was stopped, and how many draws plain averages would need."""
        last, needed = self.looks[-1], self.plain_draws
        reason = REASONS[self.reason].format(level=f"{self.level:.0%}")
        head = f"{last.draws} draws, {counted(len(self.looks), 'look')}; {reason}"
        if not self.precise:
            head += f". At the last look, {last.distance}"
        most = int(np.argmax(_or_infinite(needed)))
        name = last.estimate.names[most]
        return f"{head}\nplain averages would need {count(needed[most])} draws, for {name}"

    def __repr__(self) -> str:
        return f"{self.summary}\n{self.estimate!r}"


def _is_constant(found: Estimate) -> np.ndarray:
    """Whether an integrand is the same on all draws: its standard error is that of rounding."""
    return only_rounding(np.asarray(found.plain_mcse), np.asarray(found.plain_value))


def _or_infinite(values: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(values), np.inf, values)


def reason_to_stop(looks: Sequence[Look], final: Reason | None = None) -> Reason | None:
    """Decide whether to stop after these looks; None to go on.

    Args:
        looks: all looks so far.
        final: why there are no more draws, if so: then a single look that is precise is enough.
    """
    asked = looks[-1:] if final else looks[-IN_A_ROW:]
    if len(asked) == (1 if final else IN_A_ROW) and all(look.precise for look in asked):
        return "precise"
    disagree = len(looks) > 1 and all(look.apart for look in looks[-2:])
    return "chains" if disagree else final


def with_errors_of_two(looks: Sequence[Look]) -> Estimate:
    """Widen the errors of the last look to those of the look before, scaled to as many draws.

    A run stops when its errors seem small, so those of the last look alone are too small on average.
    """
    *_, before, last = looks
    share = np.sqrt(before.draws / last.draws)
    mcse = np.maximum(last.estimate.mcse, np.asarray(before.estimate.mcse) * share)
    freedom = np.minimum(last.estimate.freedom, before.estimate.freedom)
    worth = (last.estimate.plain_mcse / mcse) ** 2
    return replace(last.estimate, mcse=mcse, freedom=freedom, worth=worth)


def expected_draws(looks: Sequence[Look]) -> float:
    """Extrapolate the number of draws at which the widest interval is within its tolerance."""
    *before, last = looks
    ratio, slope = _or_infinite(last.ratio).max(), -0.5
    if before and 0 < ratio < (earlier := _or_infinite(before[-1].ratio).max()) < np.inf:
        slope = min(np.log(ratio / earlier) / np.log(last.draws / before[-1].draws), slope)
    return last.draws * max(ratio, 1.0) ** (-1 / slope)


@dataclass
class _Watch:
    """What `until` asks at each look, and the looks that there were."""

    f: Any
    tolerance: float | Mapping[str, float]
    unit: Unit
    level: float
    options: dict[str, Any]
    started: float = field(default_factory=time.monotonic)
    looking: float = 0.0
    looks: list[Look] = field(default_factory=list)
    sample: Sample | None = None  # of the last look

    def due(self, held: Sample) -> Sample | None:
        """The draws to look at next; None if there are too few new ones, or looks have taken too long.

        A sampler may be faster than looks: the number of draws grows by a limited factor all the same, as
        looks at ten times as many draws would take ten times as long.
        """
        before = self.looks[-1].draws / held.chains if self.looks else LEAST / held.chains
        most = int(MOST * before)
        if held.length >= most:
            return held[:, :most]
        usual = self.looking * (1 + 1 / max(len(self.looks), 1))  # with one more look
        if self.looks and usual > SHARE * (time.monotonic() - self.started):
            return None
        return held if held.length >= before * (GROWTH if self.looks else 1) else None

    def catch_up(self, held: Sample, shown: Any, on_look: Callable[[Look], object] | None) -> bool:
        """Make all looks that are due; whether there is a reason to stop."""
        while (sample := self.due(held)) is not None:
            look = self.look(sample)
            shown.describe(f"{look!r}; about {count(expected_draws(self.looks))} draws expected")
            if on_look is not None:
                on_look(look)
            if reason_to_stop(self.looks) is not None:
                return True
        return False

    def look(self, sample: Sample) -> Look:
        """Estimate from all draws so far."""
        began = time.monotonic()
        wanted = self.wanted(sample)
        found = estimate(wanted, sample, **self.options)
        half = np.ptp(found.interval(self.level), axis=-1) / 2
        tolerance, apart = self._tolerances(found), _are_apart(found, wanted, sample)
        now = time.monotonic()
        look = Look(sample.size, now - self.started, found, half, tolerance, apart)
        self.looking += now - began
        self.looks.append(look)
        self.sample = sample
        return look

    def wanted(self, sample: Sample) -> IntegrandSpec:
        """The integrands: by default all variables."""
        if self.f is not None:
            return self.f
        return list(sample.names if sample.variables is None else sample.variables.names)

    def result(self, held: Sample, final: Reason) -> Stopped:
        """Look at the last draws if there are many new ones, and collect the looks."""
        reason = reason_to_stop(self.looks) if self.looks else None
        if reason is None:
            if not self.looks or held.size >= GROWTH * self.looks[-1].draws:
                self.look(held)
            reason = reason_to_stop(self.looks, final) or final
        if reason == "precise" and held.size >= GROWTH * self.looks[-1].draws:
            self._look_at_all(held)
        found = self.looks[-1].estimate
        if reason == "precise" and len(self.looks) > 1:
            found = with_errors_of_two(self.looks)
        assert self.sample is not None
        return Stopped(found, self.sample, tuple(self.looks), reason, self.level, self.looking)

    def _look_at_all(self, held: Sample) -> None:
        """Look at draws beyond those of the last look, as of a run that has ended; keep it if precise."""
        before = self.sample
        if not self.look(held).precise:
            self.looks.pop()
            self.sample = before

    def _tolerances(self, found: Estimate) -> np.ndarray:
        given = self.tolerance
        wanted = np.full(len(found.names), np.nan if isinstance(given, Mapping) else given)
        for name, value in given.items() if isinstance(given, Mapping) else ():
            if not (rows := places(name, found.names)):
                raise ValueError(
                    f"tolerance names {name!r}, and the integrands are {some_of(found.names)}: use one of "
                    "these."
                )
            wanted[rows] = value
        if np.isnan(wanted).any():
            lacking = [name for name, one in zip(found.names, wanted, strict=True) if np.isnan(one)]
            raise ValueError(
                f"there is no tolerance for {some_of(lacking, 5)}: give one for each integrand, or a number "
                "for all of them."
            )
        if self.unit == "sd":
            return wanted * np.asarray(found.plain_mcse) * np.sqrt(found.plain_ess)
        return wanted * np.abs(found.value) if self.unit == "relative" else wanted


def _are_apart(found: Estimate, wanted: IntegrandSpec, sample: Sample) -> bool:
    """Whether an integrand has another mean in each chain, though each alone has many effective draws."""
    high = np.asarray(found.plain_rhat) > RHAT
    if not high.any():
        return False
    values = np.asarray(integrands(wanted, sample).values)[..., high]
    alone = [chain_statistics(chain[None]).ess for chain in values]
    return bool(np.any(np.min(alone, axis=0) >= SETTLED))


def until(
    source: Iterable[Sample] | Any,
    f: IntegrandSpec | None = None,
    tolerance: float | Mapping[str, float] = 0.05,
    family: AbstractFamily | None = None,
    *,
    unit: Unit = "sd",
    level: float = 0.95,
    draws: int | None = None,
    seconds: float | None = None,
    audit: AuditMode = "raise",
    on_look: Callable[[Look], object] | None = None,
    **options: Any,
) -> Stopped:
    r"""Sample until every expectation is known to within a tolerance, and no longer.

    After each batch of draws all expectations are estimated with control variates. Sampling stops when
    every interval $\text{value} \pm \text{tolerance}$ has been reached at two looks in a row, with a quarter
    more draws in between, at least 100 effective draws of each integrand, and an R-hat of at most 1.1.
    A rule that stops at the first small error bar favours error bars that are too small; that is why
    there are two, and why the reported errors are the larger of both. If there are no more draws, one look
    is enough. Looks take at most a tenth of the time, unless the number of draws doubles in the meantime.

    Args:
        source: gives draws with scores. One of

            - an iterable of samples, such as a generator: each has further draws of the same chains, or
              all draws so far. The first may have training points from the warm-up;
            - a background sampler, `nutpie.sample(..., blocking=False)`, with as many cores as chains. It is
              aborted at the end;
            - the folder or the files that CmdStan is writing, or the zarr store that nutpie is writing
              (see `follow`).
        f: the integrands, as for `estimate`: names or functions, since their draws are still to come. By
            default all variables of the model.
        tolerance: half the width of the intervals: one number, or one for each name.
        family: the family of control variates; chosen from the draws by default.
        unit: of the tolerance: `"sd"` for posterior standard deviations, `"absolute"`, or `"relative"` for
            parts of the value.
        level: the probability of the intervals.
        draws: the most draws, of all chains together.
        seconds: the most seconds, also to wait for the first draws.
        audit: as for `estimate`, at each look.
        on_look: is called with each `Look`.
        options: further arguments of `estimate`, such as `threshold` or `split`.

    Example::

        def batches():  # NumPyro, resumed
            mcmc.run(key, extra_fields=("z_grad",))
            while True:
                yield sx.from_numpyro(mcmc)
                mcmc.post_warmup_state = mcmc.last_state
                mcmc.run(mcmc.last_state.rng_key, extra_fields=("z_grad",))


        found = sx.until(batches(), ["mu", "tau"], tolerance=0.01)
        found.estimate, found.plain_draws

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(100, 4, 25, 2))
    >>> batches = (sx.Sample(batch, -batch) for batch in x)
    >>> found = sx.until(batches, {"square": lambda x: x[0] ** 2}, tolerance=0.01)
    >>> found.reason, len(found.looks), bool(found.plain_draws[0] > 10_000)
    ('precise', 2, True)
    """
    if unit not in get_args(Unit.__value__):
        raise ValueError(f"unit={unit!r}: use 'sd', 'absolute' or 'relative'.")
    _check_tolerance(tolerance)
    if isinstance(f, Integrands):
        raise TypeError(
            "the integrands are arrays of values on given draws, but more draws will follow: give names "
            "or functions."
        )
    options |= {"family": family, "audit": audit}
    watch = _Watch(f, tolerance, unit, level, options)
    held: Sample | None = None
    final: Reason | None = None
    with closing(_batches(source, seconds)) as batches, progress("sampling") as shown:
        for batch in batches:
            held = _joined(held, batch)
            final = _spent(held, watch.started, draws, seconds)
            if watch.catch_up(held, shown, on_look) or final:
                break
    if held is None:
        waited = "" if seconds is None else f" within {seconds:g} seconds"
        raise ValueError(
            f"the source gave no draws{waited}: give one that yields samples with scores, and enough time "
            "for the warm-up of a sampler that is running."
        )
    return watch.result(held, final or _spent(held, watch.started, draws, seconds) or "ended")


def _check_tolerance(tolerance: float | Mapping[str, float]) -> None:
    values = list(tolerance.values()) if isinstance(tolerance, Mapping) else [tolerance]
    if not values or not all(np.isfinite(value) and value > 0 for value in values):
        raise ValueError(
            f"tolerance={tolerance!r}: give half the width of an interval, above 0, such as 0.01 posterior "
            'standard deviations, or one for each name, such as {"mu": 0.01}.'
        )


def _spent(
    sample: Sample, started: float, draws: int | None, seconds: float | None
) -> Reason | None:
    """Which budget is used up, if any."""
    if draws is not None and sample.size >= draws:
        return "draws"
    if seconds is not None and time.monotonic() - started >= seconds:
        return "seconds"
    return None


def _joined(held: Sample | None, batch: object) -> Sample:
    """Append a batch, unless it begins with the draws so far: then it replaces them."""
    if not isinstance(batch, Sample):
        raise TypeError(
            f"the source gave a {type(batch).__name__}: let it yield samples, such as from_numpyro(mcmc)."
        )
    if held is None:
        return batch
    start = batch.draws[:, : held.length]
    if start.shape == held.draws.shape and np.array_equal(start, held.draws):
        return batch if batch.training else batch.with_training(*held.training, tried=held.tried)
    return held.extended(batch)


def _batches(source: Any, seconds: float | None = None) -> Any:
    """Make a generator of samples from any source, which waits `seconds` at most for new draws."""
    if isinstance(source, Sample):
        raise TypeError("the source is a Sample, to which no draws will be added: use estimate.")
    if hasattr(source, "get_samples"):
        raise TypeError(
            f"the source is a finished {type(source).__name__}: give a generator that runs it again and "
            "again and yields from_numpyro(mcmc), as in the example of until."
        )
    several = source if isinstance(source, list | tuple) else [source]
    files = len(several) > 0 and all(isinstance(one, str | os.PathLike) for one in several)
    if files or _is_sampler(source) or not isinstance(source, Iterable):
        most = {} if seconds is None else {"patience": min(seconds, PATIENCE), "wait": seconds}
        return follow(source, **most)
    return (batch for batch in source)


def _is_sampler(source: Any) -> bool:
    """Whether a source is a background sampler of nutpie."""
    return hasattr(source, "inspect") and hasattr(source, "abort")


def follow(
    source: Any, *, every: float = 1.0, patience: float = PATIENCE, wait: float = WAIT
) -> Iterator[Sample]:
    """Iterate over all draws so far of a sampler that is running.

    Each sample holds the draws that every chain has. The iteration ends with the run. A background sampler
    is aborted if the iteration is left before.

    Args:
        source: a background sampler, `nutpie.sample(..., blocking=False)`; the zarr store that nutpie is
            writing; or the CSV files that CmdStan is writing, draws and diagnostics: their folder, a
            pattern or a list.
        every: seconds between two readings, at least; reading takes at most a tenth of the time.
        patience: seconds without new draws after which the run is taken to have ended.
        wait: seconds for the first file to appear in a folder that the sampler has not written to yet.

    Example::

        for sample in sx.stopping.follow("output"):  # of CmdStan, save_latent_dynamics=True
            print(sx.summary(sample))
    """
    length, news, last = 0, time.monotonic(), False
    while _is_unwritten(source) and time.monotonic() - news < wait:
        time.sleep(min(every, WAKE))
    read, has_ended, stop = _reading(source)
    try:
        while True:
            began = time.monotonic()
            sample = _if_started(read)
            pause = max(every, (time.monotonic() - began) / SHARE)
            if sample is not None and sample.length > length:
                length, news = sample.length, time.monotonic()
                yield sample
            if last:
                return
            last = has_ended(length) or time.monotonic() - news > patience
            if not last:
                time.sleep(max(began + pause - time.monotonic(), 0.0))
    finally:
        stop()


def _if_started(read: Callable[[], Sample]) -> Sample | None:
    """What can be read; None before every chain has draws."""
    with suppress(NoDrawsError):
        return read()
    return None


def _reading(
    source: Any,
) -> tuple[Callable[[], Sample], Callable[[int], bool], Callable[[], object]]:
    """How to read a source, how to tell from the length of its chains that it ended, and how to stop it."""
    if _is_sampler(source):
        return (
            lambda: _quietly(lambda: from_nutpie(source.inspect())),
            lambda _: _has_finished(source),
            lambda: _quietly(source.abort),
        )
    if _is_store(source):
        return lambda: _of_store(source), lambda n: 0 < n >= nutpie_length(source), _nothing
    return (
        lambda: from_cmdstan(source, partial=True),
        lambda n: 0 < n >= cmdstan_length(source),
        _nothing,
    )


def _nothing() -> None:
    """Leave a sampler that is another process alone."""


def _quietly(read: Callable[[], Any]) -> Any:
    """Read a trace without warnings of groups that have no draws yet, or of pieces still to be written."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "draw .* is missing, and later ones are there")
        warnings.filterwarnings("ignore", "Found chain dimension to be longer than draw")
        return read()


def _is_store(source: Any) -> bool:
    """Whether a source is a zarr store: of zarr or nutpie, or a folder with its files or its ending."""
    if isinstance(source, list | tuple):
        return False
    return not isinstance(source, str | os.PathLike) or _is_written(source) or _ends_in_zarr(source)


def _is_unwritten(source: Any) -> bool:
    """Whether a source is a folder without CSV files, and no zarr store yet."""
    several = source if isinstance(source, list | tuple) else [source]
    return any(
        isinstance(one, str | os.PathLike)
        and os.path.isdir(one)
        and not _is_store(one)
        and not any(Path(one).glob("*.csv"))
        for one in several
    )


def _ends_in_zarr(folder: str | os.PathLike[str]) -> bool:
    return os.fspath(folder).endswith(".zarr")


def _is_written(folder: str | os.PathLike[str]) -> bool:
    return any(os.path.exists(os.path.join(folder, name)) for name in ("zarr.json", ".zgroup"))


def _of_store(store: Any) -> Sample:
    """Read a zarr store, which may be a folder that nothing has been written to."""
    if isinstance(store, str | os.PathLike) and not _is_written(store):
        raise NoDrawsError(f"nothing has been written to {store}: wait, or check the path.")
    return _quietly(lambda: from_nutpie(store))


def _has_finished(sampler: Any) -> bool:
    try:
        return bool(sampler.is_finished)
    except TimeoutError:  # what nutpie raises while it is sampling
        return False
