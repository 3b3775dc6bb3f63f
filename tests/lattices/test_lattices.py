"""Lattices: features that are exact for free fields, observables, effective masses and pyerrors.

Statistical tests have fixed seeds; the bounds below are at least four standard errors away.
"""

import jax.numpy as jnp
import numpy as np
import pytest

import steinax as sx
from steinax._numerics import precision
from steinax.families import Lattice
from steinax.lattices import (
    connected,
    effective_mass,
    from_fields,
    from_pyerrors,
    observables,
    to_pyerrors,
)

SHAPES = [(1,), (2,), (5,), (3, 4), (4, 4), (9, 3), (3, 4, 3)]


def laplacian(shape: tuple[int, ...]) -> np.ndarray:
    """The matrix of sum_mu (2 phi_x - phi_{x + mu} - phi_{x - mu})."""
    unit = np.eye(int(np.prod(shape))).reshape(-1, *shape)
    axes = range(1, 1 + len(shape))
    hops = sum(2 * unit - np.roll(unit, 1, axis) - np.roll(unit, -1, axis) for axis in axes)
    return hops.reshape(len(unit), -1)


def free(
    shape: tuple[int, ...], chains: int = 4, length: int = 50, mass: float = 1.0, seed: int = 0
):
    """Configurations of a free field, their scores, and the propagator."""
    kernel = laplacian(shape) + mass**2 * np.eye(int(np.prod(shape)))
    root = np.linalg.inv(np.linalg.cholesky(kernel))
    x = np.random.default_rng(seed).normal(size=(chains, length, len(kernel))) @ root
    fields = (chains, length, *shape)
    return x.reshape(fields), (-x @ kernel).reshape(fields), np.linalg.inv(kernel)


def quartic(length: int, seed: int = 0, coupling: float = 0.5) -> sx.Sample:
    """Configurations on 6 x 6 sites by Metropolis's algorithm on checkerboards, with their scores."""
    rng, phi = np.random.default_rng(seed), np.zeros((4, 6, 6))
    even = np.add.outer(np.arange(6), np.arange(6)) % 2 == 0
    kept = []

    def near(phi):
        return sum(np.roll(phi, step, axis) for step in (1, -1) for axis in (1, 2))

    for sweep in range(100 + 4 * length):
        for sites in (even, ~even):
            new = phi + rng.uniform(-1.2, 1.2, size=phi.shape)
            action = [2.5 * each**2 - each * near(phi) + coupling * each**4 for each in (phi, new)]
            accepted = (np.log(rng.uniform(size=phi.shape)) < action[0] - action[1]) & sites
            phi = np.where(accepted, new, phi)
        if sweep >= 100 and sweep % 4 == 0:
            kept.append(phi)
    fields = np.stack(kept, axis=1)
    hops = sum(np.roll(fields, step, axis) for step in (1, -1) for axis in (2, 3))
    return from_fields(fields, hops - 5 * fields - 4 * coupling * fields**3)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("reach", [0, 1, 3])
def test_features_are_those_of_the_basis_and_independent(shape, reach) -> None:
    """In other coordinates too, as `estimate` standardises them, and by automatic differentiation."""
    rng, dim = np.random.default_rng(1), int(np.prod(shape))
    names = from_fields(*np.zeros((2, 1, 4, *shape))).names
    with precision(np.float64):
        for symmetric in (True, False):
            family = Lattice((), reach, symmetric).placed(
                names, rng.normal(size=dim), np.exp(rng.normal(size=dim))
            )
            x, score = rng.normal(size=(2, 300, dim))
            features = family.feature_matrix(None, x, score)
            assert features.shape == (300, family.size(None, dim))
            assert np.linalg.matrix_rank(features - features.mean(axis=0)) == features.shape[1]
            in_jax = family.feature_matrix(None, jnp.asarray(x[:3]), jnp.asarray(score[:3]))
            np.testing.assert_allclose(in_jax, features[:3], rtol=1e-9, atol=1e-9)
            by_derivative = family.operator(
                lambda z, family=family: family.basis(None, z),
                jnp.asarray(x[0]),
                jnp.asarray(score[0]),
            )
            np.testing.assert_allclose(by_derivative, features[0], rtol=1e-8, atol=1e-8)


def test_the_number_of_features_does_not_grow_with_the_sites() -> None:
    assert Lattice((16, 16)).size(None, 256) == 56
    few, many = (Lattice((n, n)).size(None, n * n) for n in (32, 64))
    assert many - few == 3 * 16  # the slices alone


def test_features_are_invariant_under_translations_reflections_and_exchange() -> None:
    x, score = np.random.default_rng(2).normal(size=(2, 5, 6, 6))
    family, found = Lattice((6, 6), 2, symmetric=False), []
    for move in (
        lambda f: f,
        lambda f: np.roll(f, (1, 2), (1, 2)),
        lambda f: f[:, ::-1],
        lambda f: f.swapaxes(1, 2),
    ):
        flat = (np.ascontiguousarray(move(each)).reshape(5, -1) for each in (x, score))
        found.append(family.feature_matrix(None, *flat))
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("shape", [(8,), (6, 6), (4, 3, 3)])
def test_a_free_field_is_exact_and_its_masses_are_known(shape) -> None:
    """The propagator at zero momentum is a hyperbolic cosine, with 2 cosh m = 2 + mass^2."""
    fields, forces, propagator = free(shape, length=80)
    sample = from_fields(fields, forces)
    f = observables(shape, ["phi^2", "chi", "C", "G"])
    estimate = sx.estimate(f, sample, Lattice(reach=4))
    whole = propagator[0].reshape(shape)
    time = shape.index(max(shape))
    slices = np.moveaxis(whole, time, 0).reshape(max(shape), -1)
    here = np.arange(max(shape) // 2 + 1)
    np.testing.assert_allclose(estimate["phi^2"].value, whole.flat[0], rtol=1e-9)
    np.testing.assert_allclose(estimate["chi"].value, 1.0, rtol=1e-9)
    np.testing.assert_allclose(estimate["C"].value, slices.sum(axis=1)[here], rtol=1e-9)
    np.testing.assert_allclose(estimate["G"].value, slices[here, 0], rtol=1e-9)
    masses = estimate.derived(effective_mass(shape))
    np.testing.assert_allclose(masses.value, np.arccosh(1.5), rtol=1e-8)


@pytest.mark.parametrize("length", [100, 25])
def test_an_interacting_field_gains_much_and_its_error_bar_holds(length: int) -> None:
    """Two runs of different seeds agree within five of their errors; 36 sites, 400 and 100 configurations."""
    f, family = observables((6, 6), ["phi^2", "phi^4", "C"]), Lattice()
    long = sx.estimate(f, quartic(1000, seed=5), family)
    short = sx.estimate(f, quartic(length, seed=6), family)
    assert short.worth.min() > (30 if length == 100 else 3)
    error = np.hypot(short.mcse, long.mcse)
    assert np.all(np.abs(short.value - long.value) < 5 * error)


def test_odd_integrands_need_features_without_the_symmetry() -> None:
    fields, forces, _ = free((4, 4))
    sample = from_fields(fields + 0.7, forces)  # a field with a source
    f = observables((4, 4), ["phi", "chi", "C"])
    assert sx.estimate(f, sample, Lattice()).worth[0] < 10
    estimate = sx.estimate(f, sample, Lattice(symmetric=False))
    np.testing.assert_allclose(estimate["phi"].value, 0.7, rtol=1e-9)
    found = estimate.derived(connected((4, 4)))
    np.testing.assert_allclose(found["chi_c"].value, 1.0, rtol=1e-6)


@pytest.mark.parametrize(("chains", "length"), [(4, 100), (4, 25)])
def test_the_audit_names_wrong_forces_on_256_sites(chains: int, length: int) -> None:
    """Whatever the seed: forces of the wrong sign, of half the size, or times a step of 0.1."""
    fields, forces, _ = free((16, 16), chains, length, seed=3)
    flat = (chains, length, -1)
    assert sx.audit(from_fields(fields, forces)).passed
    for factor, kind in ((-1.0, "sign"), (0.5, "tempered"), (0.1, "tempered")):
        report = sx.audit(sx.Sample(fields.reshape(flat), factor * forces.reshape(flat)))
        assert kind in {problem.kind for problem in report.problems}, report


def test_mistakes_are_refused_with_what_to_do() -> None:
    fields, forces, _ = free((4, 4))
    sample = from_fields(fields, forces)
    with pytest.raises(ValueError, match="give both as"):
        from_fields(fields, forces[..., 0])
    with pytest.raises(ValueError, match="15 sites and the draws have 16 columns"):
        sx.estimate("phi", sample, Lattice((3, 5)))
    with pytest.raises(ValueError, match="sites along each axis"):
        Lattice((0, 4))
    with pytest.raises(ValueError, match="0 or more"):
        Lattice(reach=-1)
    with pytest.raises(ValueError, match="no observable is called 'psi'"):
        observables((4, 4), ["psi"])
    with pytest.raises(ValueError, match="give the number of sites"):
        observables(())
    with pytest.raises(ValueError, match="shape of the sample"):
        sx.estimate(observables((4, 5)), sample, Lattice())
    several = sx.Sample(sample.draws, sample.scores, ["mu", *sample.names[1:]])
    with pytest.raises(ValueError, match="several variables"):
        sx.estimate(sample.draws[..., 0], several, Lattice())


class TestPyerrors:
    """Held to what pyerrors computes from the same series."""

    def test_an_exported_estimate_has_its_value_and_nearly_its_error(self) -> None:
        pytest.importorskip("pyerrors")
        f, sample = observables((6, 6), ["phi^2", "C"]), quartic(100, seed=6)
        estimate = sx.estimate(f, sample, Lattice())
        ours, plain = to_pyerrors(f, sample, Lattice(), ensemble="A"), to_pyerrors(f, sample)
        for name in estimate.names:
            for obs, value, error in (
                (ours[name], estimate[name].value, estimate[name].mcse),
                (plain[name], estimate[name].plain_value, estimate[name].plain_mcse),
            ):
                obs.gamma_method()
                assert abs(obs.value - value) < 1e-12
                assert 0.7 < obs.dvalue / error < 1.4
        assert ours["phi^2"].mc_names == ["A"]
        difference = ours["C[0]"] - ours["C[1]"]  # propagated with their correlation
        difference.gamma_method()
        found = estimate.derived({"d": lambda mean: mean["C[0]"] - mean["C[1]"]})
        assert 0.6 < difference.dvalue / found.mcse[0] < 1.6

    def test_an_imported_ensemble_is_the_series_that_was_measured(self) -> None:
        pyerrors = pytest.importorskip("pyerrors")
        series = np.random.default_rng(0).normal(size=(3, 40))
        obs = pyerrors.Obs([*series], ["B|r1", "B|r2", "B|r3"])
        np.testing.assert_allclose(from_pyerrors(obs), series, rtol=1e-12)
        f, sample = observables((6, 6), ["phi^2"]), quartic(30)
        history = from_pyerrors(to_pyerrors(f, sample)["phi^2"])
        np.testing.assert_allclose(history, (sample.draws**2).mean(axis=-1), rtol=1e-12)

    def test_what_is_no_single_complete_ensemble_is_refused(self) -> None:
        pyerrors = pytest.importorskip("pyerrors")
        one = np.random.default_rng(0).normal(size=30)
        with pytest.raises(ValueError, match="history"):
            from_pyerrors(3.0)
        with pytest.raises(ValueError, match="lengths"):
            from_pyerrors(pyerrors.Obs([one, one[:20]], ["A|r1", "A|r2"]))
        with pytest.raises(ValueError, match="gaps"):
            from_pyerrors(pyerrors.Obs([one], ["A|r1"], idl=[[*range(1, 30), 40]]))
        with pytest.raises(ValueError, match="2 ensembles"):
            from_pyerrors(pyerrors.Obs([one], ["A|r1"]) + pyerrors.Obs([one], ["B|r1"]))
