"""Moments merge and part exactly, and estimates from blocks are those from the whole sample."""

import os
import subprocess
import sys
from functools import reduce
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steinax as sx
import targets
from steinax.solvers._moments import Moments, moments

TESTS = Path(__file__).parents[1]
F = {"sine": lambda x: jnp.sin(x[0] + x[1]), "norm": lambda x: jnp.sum(x**2)}
FIELDS = ("value", "mcse", "plain_value", "plain_mcse")


def _data(n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Columns far from zero, where moments about zero would lose all digits, and integrands."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=(n, 3)) * [1.0, 1e-3, 1e3] + [1e6, 1e3, -1e6]
    return a, rng.normal(size=(n, 2)) + 1e6


def _close(one: Moments, other: Moments) -> bool:
    size = np.sqrt(np.diag(other.gram))
    return (
        one.n == other.n
        and np.allclose(one.mean, other.mean, rtol=1e-13)
        and np.allclose(one.mean_f, other.mean_f, rtol=1e-13)
        and np.allclose(one.gram / np.outer(size, size), other.gram / np.outer(size, size))
        and np.allclose(one.cross / size[:, None], other.cross / size[:, None], atol=1e-6)
    )


@pytest.mark.parametrize("cuts", [[100], [1, 2], [7, 50, 51, 199]], ids=str)
def test_merged_moments_are_those_of_all_draws(cuts) -> None:
    a, f = _data()
    parts = [moments(*part) for part in zip(np.split(a, cuts), np.split(f, cuts), strict=True)]
    assert _close(reduce(Moments.merge, parts), moments(a, f))
    assert _close(reduce(Moments.merge, parts[::-1]), moments(a, f))


@pytest.mark.parametrize("start, stop", [(0, 50), (30, 31), (150, 200)])
def test_moments_without_a_part_are_those_of_the_rest(start, stop) -> None:
    a, f = _data()
    left = np.r_[0:start, stop : len(a)]
    without = moments(a, f).without(moments(a[start:stop], f[start:stop]))
    assert _close(without, moments(a[left], f[left]))


def test_solution_is_least_squares_with_an_intercept() -> None:
    rng = np.random.default_rng(0)
    a, f = rng.normal(size=(50, 4)) * [1.0, 1e4, 1e-4, 1.0] + 5.0, rng.normal(size=(50, 2))
    penalty = np.diag([0.0, 1.0, 1e-9, 2.0])
    c, w = moments(a, f).solve(penalty)
    rest = f - c - a @ w
    size = np.linalg.norm(a, axis=0)[:, None]
    assert np.allclose(rest.sum(axis=0), 0, atol=1e-9)
    assert np.allclose((a.T @ rest - penalty @ w) / size, 0, atol=1e-9)


def _same(one: sx.Estimate, other: sx.Estimate, tolerance: float = 1e-9) -> bool:
    assert one.names == other.names
    scale = np.abs(other.plain_mcse)
    return all(
        np.allclose(
            getattr(one, field) / scale, getattr(other, field) / scale, rtol=0, atol=tolerance
        )
        for field in FIELDS
    )


@pytest.mark.parametrize("make", [targets.banana, targets.correlated_gaussian])
def test_stream_gives_what_the_sample_gives(make) -> None:
    sample = make(3).sample(0, length=250)
    whole = sx.estimate(F, sample, sx.Polynomial(2))
    stream = sx.Stream(lambda: sample.blocks(100), chains=4)
    assert _same(sx.estimate(F, stream, sx.Polynomial(2)), whole)


@pytest.mark.slow
@pytest.mark.parametrize("penalty", [sx.NativeNorm(1e-2), sx.Ridge(1e-2)], ids=repr)
@pytest.mark.parametrize("objective", [sx.LeastSquares(), sx.Variance()], ids=repr)
def test_stream_weighs_penalties_as_a_sample_does(penalty, objective) -> None:
    sample = targets.skewed(3).sample(0, length=250)
    stream = sx.Stream(lambda: sample.blocks(100), chains=4)
    settings = {"penalty": penalty, "objective": objective}
    assert _same(
        sx.estimate(F, stream, sx.Polynomial(2), **settings),
        sx.estimate(F, sample, sx.Polynomial(2), **settings),
    )


@pytest.mark.slow
def test_number_and_cut_of_blocks_do_not_matter() -> None:
    sample = targets.skewed(3).sample(0, length=250)

    def uneven():
        for draws, scores in zip(sample.draws, sample.scores, strict=True):
            for part in np.split(np.arange(250), [1, 2, 40, 130]):
                yield sx.Sample(draws[part], scores[part])

    readers = [lambda size=size: sample.blocks(size) for size in (250, 125, 77, 10)]
    whole, *cut = (sx.estimate(F, sx.Stream(read, chains=4)) for read in (*readers, uneven))
    assert all(_same(one, whole, 1e-10) for one in cut)


def test_folds_may_end_within_a_block() -> None:
    sample = targets.skewed(3).sample(0, chains=1, length=1000)
    split = sx.CrossFit(7)
    stream = sx.Stream(lambda: sample.blocks(300))
    assert _same(
        sx.estimate(F, stream, sx.Polynomial(2), split=split),
        sx.estimate(F, sample, sx.Polynomial(2), split=split),
    )


def _stream(sample: sx.Sample, chains: int = 1) -> sx.Stream:
    return sx.Stream(lambda: sample.blocks(100), chains)


REFUSALS = {
    "solver": ({"solver": sx.Stochastic()}, "and no solver"),
    "dual": ({"solver": sx.Exact(dual=True)}, r"use Exact\(\)"),
    "memory": ({"memory": 1e9}, "leave memory out"),
    "key": ({"key": jax.random.key(0)}, "leave key out"),
    "split": ({"split": sx.InSample()}, "use split=CrossFit"),
    "family": ({"family": sx.Network()}, "use Polynomial"),
    "sum": ({"family": sx.Polynomial(2) + sx.Network()}, "use Polynomial"),
    "centres": ({"family": sx.KernelTranslates()}, r"Landmarks\(count\)"),
    "degree": ({"family": sx.Polynomial(9)}, "use a lower degree"),
    "penalty": ({"penalty": sx.MeanSquare(0.1)}, "NativeNorm or NoPenalty"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusal_says_what_to_do(name) -> None:
    settings, says = REFUSALS[name]
    sample = targets.skewed(3).sample(0, chains=1, length=400)
    with pytest.raises(ValueError, match=says):
        sx.estimate("x", _stream(sample), **settings)


def test_integrands_must_be_functions() -> None:
    sample = targets.skewed(3).sample(0, chains=1, length=400)
    with pytest.raises(ValueError, match="as functions of the draw"):
        sx.estimate(sx.data.integrands("x", sample), _stream(sample))


def test_chains_must_be_of_equal_length() -> None:
    sample = targets.skewed(3).sample(0, chains=1, length=400)
    with pytest.raises(ValueError, match=r"set Stream\(read, chains=...\)"):
        sx.estimate("x", _stream(sample, chains=3))


def test_stream_must_be_readable_again() -> None:
    sample = targets.skewed(3).sample(0, chains=1, length=400)
    once = sample.blocks(100)
    with pytest.raises(ValueError, match="starts anew on every call"):
        sx.estimate("x", sx.Stream(lambda: once))
    with pytest.raises(ValueError, match="at least one Sample"):
        sx.estimate("x", sx.Stream(lambda: iter(())))


@pytest.mark.parametrize("value", [0.0, 0.1, 1e6 / 3])
def test_constant_column_is_refused(value) -> None:
    sample = targets.skewed(3).sample(0, chains=1, length=400)
    stuck = sx.Sample(np.where(np.arange(3) == 1, value, sample.draws), sample.scores)
    with pytest.raises(ValueError, match="leave those columns out"):
        sx.estimate("x", _stream(stuck))


# A million draws in four dimensions with their 34 cubic features are 336 MB, and least squares on
# them takes several times that. In blocks of 100,000 it is the blocks, a few copies of their features
# (27 MB each) and the series f and f - g (16 MB) that are held, with what the standard error of a
# million numbers takes: 260 MB were measured.
MEGABYTES = 350
PROGRAM = """
import steinax as sx
import targets
from benchmarks._pinned import peak_megabytes

target = targets.skewed(4)

def blocks(total):
    for x, score in targets.blocks(target, 0, total, 100_000):
        yield sx.Sample(x, score)

f = {"square": lambda x: x[0] ** 2}
sx.estimate(f, sx.Stream(lambda: blocks(1000)), sx.Polynomial(3))
before = peak_megabytes()
estimate = sx.estimate(f, sx.Stream(lambda: blocks(1_000_000)), sx.Polynomial(3))
print(peak_megabytes() - before, estimate.value[0], target.expectations[1], estimate.mcse[0])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
def test_a_million_draws_need_the_memory_of_a_block() -> None:
    env = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (TESTS, TESTS.parent)))}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=env, check=True, stdout=subprocess.PIPE, text=True
    )
    grown, value, exact, mcse = map(float, done.stdout.split())
    assert grown < MEGABYTES
    assert abs(value - exact) < 5 * mcse
