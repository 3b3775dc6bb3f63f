"""The claims of docs/beyond/evidence.md, on a part of what the benchmark measures."""

from pathlib import Path

import numpy as np
import pytest
from benchmarks.beyond._regression import Regression
from benchmarks.beyond._van_der_pol import chains, particles, truth
from benchmarks.beyond.evidence import replicates

from steinax import evidence
from steinax.tempering import SteppingStones, ThermodynamicIntegration

PUBLISHED = 10.36  # by the manual of the package ZVCV
SOLVER = 0.002  # the log likelihoods of the chains are off by 0.01 or so each, on both sides


@pytest.mark.slow
def test_regression_is_worth_ten_times_the_draws() -> None:
    """Three replicates. One normal error in 15,000 is beyond 4; one mean square in 1,000 beyond 5.4."""
    found, exact = replicates(SteppingStones(), 3), Regression().log_evidence
    errors = np.array([(one.value - exact) / one.mcse for one in found])
    assert np.median([one.worth for one in found]) > 10
    assert np.abs(errors).max() < 4 and np.mean(errors**2) < 5.4


@pytest.mark.slow
@pytest.mark.parametrize("method", [ThermodynamicIntegration(), SteppingStones()], ids=repr)
def test_van_der_pol_by_chains(data_dir: Path, method) -> None:
    """With 31 temperatures the error is below that of the solver which made the log likelihoods."""
    found = evidence(chains(), method=method)
    assert abs(truth() - PUBLISHED) < 0.005  # to the digits that were published
    assert abs(found.value - truth()) < 3 * found.mcse + found.quadrature_error + SOLVER
    assert found.worth > 1000


@pytest.mark.slow
@pytest.mark.parametrize("method", [ThermodynamicIntegration(), SteppingStones()], ids=repr)
def test_van_der_pol_by_particles(data_dir: Path, method) -> None:
    """With 50 particles at 8 temperatures, the quadrature is the larger error, and is said to be."""
    pytest.importorskip("rdata")
    found = evidence(particles(), method=method)
    reach = 0.005 + 3 * found.mcse + 1.5 * found.quadrature_error
    assert abs(found.value - PUBLISHED) < reach < 0.05
    assert found.worth > 100
