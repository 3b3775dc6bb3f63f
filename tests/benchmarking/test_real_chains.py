"""A real sampler, not thinned draws: NUTS by NumPyro on a posterior of posteriordb."""

import json

import numpy as np
import pytest

import steinax as sx
from full import FULL

pytest.importorskip("numpyro")


@pytest.mark.slow
def test_right_out_of_the_sampler(data_dir) -> None:
    """Two runs of 4 x 250 draws, on CI one, against the published means, their errors counted.

    Five means and their published errors, two runs: beyond 5 standard errors once in 200,000 times.
    """
    from benchmarks.posteriors.chains._density import check
    from benchmarks.posteriors.chains._registry import MODELS
    from benchmarks.posteriors.chains._run import sample

    folder, name = data_dir / "posteriordb", "kidiq-kidscore_interaction"
    (model,) = (model for model in MODELS.values() if model.posterior == name)
    assert check(model, folder) < 1e-6  # the same density as posteriordb's
    published = json.loads((folder / name / "means.json").read_text())["mean"]
    chains = sample(model, folder, key=5, chains=8 if FULL else 4, draws=250)
    assert published["names"] == chains.value_names.tolist()
    for rows in (slice(0, 4), slice(4, 8))[: 2 if FULL else 1]:
        run = sx.Sample(chains.draws[rows], chains.scores[rows])
        found = sx.estimate(chains.values[rows], run)
        assert np.all(found.worth > 1e5)
        z = (found.value - published["mean_value"]) / np.hypot(found.mcse, published["mcse_mean"])
        assert np.all(np.abs(z) < 5), z
