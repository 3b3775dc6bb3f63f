"""The points and discrepancies are those of the package stein_thinning."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steinax as sx

peer = pytest.importorskip("stein_thinning.thinning")
peer_kernel = pytest.importorskip("stein_thinning.kernel")
peer_stein = pytest.importorskip("stein_thinning.stein")


class Metric(sx.kernels.AbstractKernel):
    """An inverse multiquadric of a distance with a matrix; its Stein kernel is left to autodiff."""

    precision: np.ndarray

    def __call__(self, x: jax.Array, y: jax.Array) -> jax.Array:
        return 1 / jnp.sqrt(1 + (x - y) @ self.precision @ (x - y))


def ours(name: str, x: np.ndarray) -> sx.kernels.AbstractKernel:
    precision = peer_kernel.make_precon(x, name)
    if name == "smpcov":
        return Metric(precision)
    return sx.kernels.InverseMultiquadric(1 / np.sqrt(precision[0, 0]))


@pytest.fixture(scope="module")
def mixture(data_dir: Path) -> tuple[np.ndarray, np.ndarray]:
    folder = data_dir / "stein_thinning_gmm"
    x, score = (np.loadtxt(folder / name, delimiter=",") for name in ("smp.csv", "scr.csv"))
    return x, score


@pytest.mark.parametrize("standardise", [True, False])
@pytest.mark.parametrize("name", ["id", "med", "sclmed", "smpcov"])
def test_points_and_discrepancies_are_equal(mixture: tuple, name: str, standardise: bool) -> None:
    x, score = mixture
    scale = np.abs(x - x.mean(axis=0)).mean(axis=0) if standardise else np.ones(2)
    kernel, sample = ours(name, x / scale), sx.Sample(x, score)
    expected = peer.thin(x, score, 40, standardize=standardise, preconditioner=name)
    found = sx.thin(sample, 40, kernel, standardise=standardise)
    assert found.indices.tolist() == expected.tolist()
    pairs = peer._make_stein_integrand(x, score, standardize=standardise, preconditioner=name)
    matrix = peer_stein.kmat(pairs, len(x))
    some = matrix[np.ix_(expected, expected)]
    path = [np.sqrt(some[:t, :t].mean()) for t in range(1, 41)]
    np.testing.assert_allclose(found.ksd, path, rtol=1e-10)
    whole = sx.ksd(sample, kernel, standardise=standardise)
    np.testing.assert_allclose(whole, np.sqrt(matrix.mean()), rtol=1e-10)


def test_as_many_points_as_draws(mixture: tuple) -> None:
    """With 500 of 500, many are chosen again and again, and copies of a draw tie."""
    x, score = mixture
    expected = peer.thin(x, score, 500)
    assert sx.thin(sx.Sample(x, score), 500).indices.tolist() == expected.tolist()


@pytest.mark.slow
def test_a_long_chain(data_dir: Path) -> None:
    chains = np.load(data_dir / "lotka_volterra" / "lv_generated_pmala.npz")
    x, score = (chains[name][:, ::10].reshape(-1, 4) for name in ("x", "score"))
    found = sx.thin(sx.Sample(x, score), 50)
    assert found.indices.tolist() == peer.thin(x, score, 50).tolist()
