"""Bad input gives an error that says what to do, or NaN with a reason: never a silent number."""

import numpy as np
import pytest

import steinax as sx
from full import cases
from steinax import checks


def polynomial(f, sample: sx.Sample) -> sx.Estimate:
    return sx.estimate(f, sample, sx.Polynomial(1))


def in_sample(f, sample: sx.Sample) -> sx.Estimate:
    return sx.estimate(f, sample, sx.Polynomial(1), split=sx.InSample())


def held_out(f, sample: sx.Sample) -> sx.Estimate:
    return sx.estimate(f, sample, sx.Polynomial(1), split=sx.HoldOut(0.5))


def weighted(f, sample: sx.Sample) -> sx.Estimate:
    return sx.weigh(sample, sx.Polynomial(1)).mean(f)


def fitted(f, sample: sx.Sample) -> sx.ControlVariate:
    return sx.fit(f, sample, sx.Polynomial(1))


def kernel(f, sample: sx.Sample) -> sx.Estimate:
    return sx.estimate(f, sample, sx.Polynomial(1) + sx.KernelTranslates())


def automatic(f, sample: sx.Sample) -> sx.Estimate:
    return sx.estimate(f, sample)


def automatic_weights(f, sample: sx.Sample) -> sx.Estimate:
    return sx.weigh(sample).mean(f)


FAST = (polynomial,)
SLOW = (weighted, fitted, in_sample, held_out, kernel, automatic, automatic_weights)


def _cases():
    for turn, function in enumerate(FAST + SLOW):
        label, parts = f"{function.__name__}: ", 1 if function in FAST else 12
        yield from cases(label, checks.checks_for(function), turn, parts)


@pytest.mark.parametrize("check", list(_cases()))
def test_answers_honestly(check: checks.Check) -> None:
    check()


class Silent:
    """A number with an error bar for whatever it is given."""

    __name__ = "Silent"

    def __call__(self, f, sample: sx.Sample) -> sx.Estimate:
        x = np.random.default_rng(0).normal(size=(4, 20, 2))
        return polynomial("x", sx.Sample(x, -x))


def _unnamed(f, sample: sx.Sample) -> sx.Estimate:
    if sample.chains == 1:
        raise IndexError("list index out of range")
    return polynomial(f, sample)


def _zero_error(f, sample: sx.Sample) -> sx.Estimate:
    from dataclasses import replace

    found = polynomial(f, sample)
    return replace(found, mcse=0 * found.mcse)


def _no_reason(f, sample: sx.Sample) -> sx.Estimate:
    from dataclasses import replace

    return replace(in_sample(f, sample), reason=None)


def _wrong_plain(f, sample: sx.Sample) -> sx.Estimate:
    from dataclasses import replace

    found = polynomial(f, sample)
    return replace(found, plain_mcse=found.plain_mcse * 1.01)


def _writes(f, sample: sx.Sample) -> sx.Estimate:
    found = polynomial(f, sample)
    sample.draws[:] = 0.0
    return found


@pytest.mark.parametrize(
    ("mutant", "name", "message"),
    [
        (Silent(), "a constant dimension", "it gave an answer"),
        (Silent(), "an integrand: NaN", "it gave an answer"),
        (_unnamed, "one chain", "a bare IndexError"),
        (_zero_error, "one outlier", "below rounding"),
        (_no_reason, "one outlier", "no reason is given"),
        (_wrong_plain, "one outlier", "ArviZ's is"),
        (_writes, "one outlier", "it wrote into the sample"),
    ],
)
def test_the_table_catches(mutant, name: str, message: str) -> None:
    check = dict(checks.checks_for(mutant))[name]
    with pytest.raises(checks.CheckFailed, match=message):
        check()


class TestChainStatistics:
    @pytest.mark.parametrize(
        "series",
        [
            np.zeros((4, 10)),
            np.zeros((0, 10, 1)),
            np.zeros((4, 0, 1)),
            np.full((4, 10, 1), np.nan),
            np.full((4, 10, 1), np.inf),
            np.full((4, 10, 1), 1j),
            np.full((4, 10, 1), "a"),
        ],
        ids=["two axes", "no chains", "no draws", "NaN", "infinite", "complex", "texts"],
    )
    def test_bad_series_are_refused(self, series) -> None:
        assert isinstance(checks.outcome(lambda: sx.chains.chain_statistics(series)), Exception)

    def test_short_chains_have_no_error(self) -> None:
        found = sx.chains.chain_statistics(np.random.default_rng(0).normal(size=(4, 3, 2)))
        assert np.all(np.isfinite(found.mean)) and np.all(np.isnan(found.mcse))


class TestArguments:
    """Arguments in the wrong place. Where beartype is on, as in this suite, it is the first to say so."""

    SAMPLE = sx.Sample(np.random.default_rng(0).normal(size=(4, 20, 1)), np.zeros((4, 20, 1)))
    CALLS = (
        lambda s: sx.estimate("x", s.draws),
        lambda s: sx.estimate(s, "x"),
        lambda s: sx.estimate("x", s, 3),
        lambda s: sx.estimate("x", s, split=sx.CrossFit()),
        lambda s: sx.estimate("x", s, sx.Polynomial(1), penalty=[sx.NoPenalty()] * 2),
        lambda s: sx.estimate("x", s, sx.Polynomial(1), split=sx.CrossFit(1000)),
        lambda s: sx.estimate("x", s, sx.Polynomial(1), split=sx.HoldOut(1e-9)),
        lambda s: sx.fit("x", s, None),
        lambda s: sx.fit("x", s, sx.Polynomial(1))(1.0, 1.0),
        lambda s: sx.fit("x", s, sx.Polynomial(1))(np.zeros((2, 3)), np.zeros((2, 3))),
        lambda s: sx.weigh(s, sx.Polynomial(1), f="x"),
        lambda s: sx.weigh(s, sx.Network(4, 1)),
    )

    @pytest.mark.parametrize("call", CALLS)
    def test_are_refused(self, call) -> None:
        assert isinstance(checks.outcome(lambda: call(self.SAMPLE)), Exception)
