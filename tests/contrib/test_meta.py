"""A network that was trained across tasks, adapted to a new one."""

import numpy as np
import pytest

import steinax as sx
from steinax.contrib import MetaNetwork, Settings, meta_learn

from .test_related import gaussian_tasks

QUICK = Settings(iterations=600)


@pytest.fixture(scope="module")
def meta() -> MetaNetwork:
    samples, f, _ = gaussian_tasks(30, 20, 0)
    return meta_learn(f, samples, settings=QUICK)


@pytest.mark.slow
def test_an_adapted_network_has_mean_zero(meta: MetaNetwork) -> None:
    samples, f, _ = gaussian_tasks(1, 20, 1)
    g = meta.adapt(f[0], samples[0])
    assert isinstance(g, sx.ControlVariate)
    mean = float(np.mean(samples[0].x + samples[0].score))
    nodes, weights = np.polynomial.hermite_e.hermegauss(100)
    at = g((mean + nodes)[:, None], -nodes[:, None])[:, 0]
    assert abs(weights @ at / weights.sum()) < 1e-6 * np.sqrt(weights @ at**2 / weights.sum())


@pytest.mark.slow
def test_new_tasks_gain(meta: MetaNetwork) -> None:
    samples, f, truth = gaussian_tasks(20, 20, 2)
    found = [meta.estimate(*one, audit="off") for one in zip(f, samples, strict=True)]
    error, plain = (
        np.array([getattr(one, name)[0] for one in found]) - truth
        for name in ("value", "plain_value")
    )
    assert np.sqrt(np.mean(error**2)) < 0.5 * np.sqrt(np.mean(plain**2))
    assert np.mean(np.abs(error) < 2.5 * np.array([one.mcse[0] for one in found])) > 0.7
    assert {"sun2023meta", "zhu2018neural"} <= {
        one.key for one in sx.citations(found[0]).references
    }


@pytest.mark.slow
def test_other_shapes_are_refused(meta: MetaNetwork) -> None:
    x = np.random.default_rng(0).normal(size=(1, 20, 2))
    with pytest.raises(ValueError, match="as in the tasks"):
        meta.adapt("x", sx.Sample(x, -x))
