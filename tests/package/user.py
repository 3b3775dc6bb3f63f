# pyright: strict, reportMissingTypeStubs=false
"""A user's file: the public surface with the types that a strict checker must see."""

from typing import assert_type

import jax
import matplotlib as mpl
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes

import steinax as sx


def norm(x: jax.Array) -> jax.Array:
    return x @ x


def means(sample: sx.Sample) -> sx.Estimate:
    est = sx.estimate({"x": "x", "norm": norm}, sample, sx.Polynomial(2))
    assert_type(est, sx.Estimate)
    assert_type(est["norm"], sx.Estimate)
    assert_type(est.names, tuple[str, ...])
    assert_type(est.audit, sx.auditing.AuditReport | None)
    assert_type(est.candidates, sx.estimation.Candidates | None)
    low, high = est.interval(0.95).T
    print(float(low[0]), float(high[0]), est.covariance.shape)
    assert_type(est.derived({"twice": lambda mean: 2 * mean["norm"]}), sx.Estimate)
    return est


def parts(sample: sx.Sample) -> sx.ControlVariate:
    family = sx.Polynomial(1) + sx.KernelTranslates(
        sx.kernels.Matern52(sx.kernels.MedianHeuristic())
    )
    network = sx.Network(8)
    for one in (sx.CrossFit(), sx.HoldOut(), sx.InSample()):
        assert_type(sx.estimate("x", sample, sx.Polynomial(1), split=one), sx.Estimate)
    print(network, sx.Langevin(), sx.ScalarLangevin(), sx.RandomFeatures(8), sx.Landmarks(10))
    fitted = sx.fit("x", sample, family, penalty=[sx.NoPenalty(), sx.NativeNorm(1e-4)])
    assert_type(fitted, sx.ControlVariate)
    return fitted


def tables(sample: sx.Sample) -> None:
    assert_type(sx.summary(sample), pd.DataFrame)
    assert_type(sx.summary(sample, fmt="xarray"), xr.Dataset)
    weighted = sx.weigh(sample, sx.Polynomial(2))
    assert_type(weighted, sx.estimation.WeightedDraws)
    assert_type(weighted.sd("x"), sx.Estimate)
    assert_type(weighted.quantile("x", [0.05, 0.95]), sx.Estimate)
    assert_type(sx.audit(sample), sx.auditing.AuditReport)
    assert_type(sx.citations(weighted).bibtex, str)
    batch = sx.Batch(np.stack([sample.draws] * 2), np.stack([sample.scores] * 2))
    assert_type(sx.estimate_many("x", batch), sx.farm.Estimates)
    assert_type(sx.__version__, str)


def pictures(est: sx.Estimate, sample: sx.Sample) -> None:
    assert_type(sx.plot_estimate(est), Axes)
    assert_type(sx.plot_audit(sample), Axes)


def main() -> None:
    mpl.use("agg")
    x = np.random.default_rng(0).normal(size=(4, 50, 2))
    sample = sx.Sample(x, -x)
    assert_type(sample, sx.Sample)
    est = means(sample)
    print(parts(sample))
    tables(sample)
    pictures(est, sample)


if __name__ == "__main__":
    main()
