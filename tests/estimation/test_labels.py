"""Vectors by name, data frames, and the difference of two runs."""

import jax.numpy as jnp
import numpy as np
import pandas
import pytest

import steinax as sx

FAMILY = sx.Polynomial(1)
MEAN = np.array([1.0, 2.0, 3.0, -1.0])
NAMES = ["alpha[C00]", "alpha[C01]", "alpha[C02]", "mu"]


def _run(seed: int, shift: float = 0.0, length: int = 200) -> sx.Estimate:
    """Gaussian draws, and functions of which a line leaves something."""
    x = MEAN + shift + np.random.default_rng(seed).normal(size=(4, length, 4))
    sample = sx.Sample(x, MEAN + shift - x, NAMES)
    f = {
        "alpha": "alpha",
        "square": lambda d: d["alpha"] ** 2,
        "mu": "mu",
        "wave": np.sin(x[..., 3]),
    }
    return sx.estimate(f, sample, FAMILY)


EST, OTHER = _run(0), _run(1, shift=0.5, length=300)
SQUARES = ("square[0]", "square[1]", "square[2]")


class TestVectors:
    def test_a_vector_by_its_name(self) -> None:
        part = EST["alpha"]
        assert part.names == ("alpha[C00]", "alpha[C01]", "alpha[C02]")
        assert len(part.chosen) == 3
        np.testing.assert_array_equal(part.value, EST.value[:3])
        np.testing.assert_array_equal(part.batches, EST.batches[:, :3])
        assert EST[["mu", "square"]].names == ("mu", *SQUARES)
        assert EST["mu"].value.shape == ()

    def test_an_unknown_name(self) -> None:
        with pytest.raises(KeyError, match=r"no integrand is called 'alp': there are alpha"):
            EST["alp"]
        with pytest.raises(KeyError, match="'nu'"):
            EST[["mu", "nu"]]

    def test_derived_from_a_vector(self) -> None:
        found = EST.derived(lambda mean: jnp.log(mean["square"]).sum())
        by_hand = EST.derived({"f": lambda mean: sum(jnp.log(mean[one]) for one in SQUARES)})
        assert found.names == ("f",)
        np.testing.assert_allclose(found.value, np.log(EST["square"].value).sum(), rtol=1e-12)
        np.testing.assert_allclose(found.mcse, by_hand.mcse, rtol=1e-10)
        slope = 1 / EST["square"].value
        error = np.sqrt(slope @ EST["square"].covariance @ slope)
        np.testing.assert_allclose(found.mcse, error, rtol=1e-10)

    def test_derived_from_a_matrix(self) -> None:
        x = np.random.default_rng(0).normal(size=(4, 100, 1))
        est = sx.estimate(
            {"L": x[..., None] ** 2 + np.arange(6.0).reshape(2, 3)}, sx.Sample(x, -x), FAMILY
        )
        found = est.derived({"row": lambda mean: mean["L"][1].sum()})
        np.testing.assert_allclose(found.value[0], est.value[3:].sum(), rtol=1e-12)

    def test_mistakes_in_derived(self) -> None:
        with pytest.raises(KeyError, match="'nu': there are alpha, square, mu, wave"):
            EST.derived(lambda mean: mean["nu"])
        with pytest.raises(ValueError, match=r"shape \(3,\): let each function return one number"):
            EST.derived(lambda mean: mean["alpha"])

    def test_derived_by_the_names_of_arguments(self) -> None:
        by_name = EST.derived(lambda mu, alpha: mu / alpha[0])
        by_key = EST.derived(lambda mean: mean["mu"] / mean["alpha"][0])
        np.testing.assert_array_equal(by_name.value, by_key.value)
        with pytest.raises(ValueError, match=r"write it with jax\.numpy"):
            EST.derived(lambda mean: np.exp(mean["alpha"]).sum())


def test_a_data_frame_has_the_columns_of_the_table() -> None:
    frame = EST.to_dataframe()
    assert isinstance(frame, pandas.DataFrame)
    assert frame.index.tolist() == list(EST.names)
    columns = ["value", "mcse", "plain_value", "plain_mcse", "worth", "ess", "rhat"]
    assert frame.columns.tolist() == columns
    for column in columns:
        np.testing.assert_array_equal(frame[column], getattr(EST, column))
    assert EST["mu"].to_dataframe().shape == (1, 7)


class TestDifferences:
    def test_errors_add_in_quadrature(self) -> None:
        found = OTHER - EST
        np.testing.assert_array_equal(found.value, OTHER.value - EST.value)
        np.testing.assert_allclose(found.mcse, np.sqrt(OTHER.mcse**2 + EST.mcse**2), rtol=1e-12)
        np.testing.assert_array_equal(found.plain_value, OTHER.plain_value - EST.plain_value)
        np.testing.assert_allclose(
            found.plain_mcse**2, OTHER.plain_mcse**2 + EST.plain_mcse**2, rtol=1e-12
        )
        np.testing.assert_allclose(found.worth, (found.plain_mcse / found.mcse) ** 2, rtol=1e-12)
        assert np.all(found.freedom <= EST.freedom + OTHER.freedom + 1e-9)
        assert np.all(found.freedom >= np.minimum(EST.freedom, OTHER.freedom) - 1e-9)
        assert found.note == "difference of independent runs"
        assert (
            found.audit is not None
            and found.audit.checked == EST.audit.checked + OTHER.audit.checked
        )

    @pytest.mark.parametrize("both", [True, False])
    def test_is_verified_where_both_runs_are(self, both: bool) -> None:
        samples = [sx.Sample(x, -x) for x in np.random.default_rng(0).normal(size=(2, 4, 200, 2))]
        for sample in samples[: 1 + both]:
            sx.audit(sample, log_density=lambda x: -0.5 * x @ x)
        one, two = (sx.estimate("x", sample, FAMILY) for sample in samples)
        audit = (one - two).audit
        assert audit is not None and audit.verified == both
        assert ("would not notice" in repr(audit)) == (not both)

    def test_the_truth_is_within_the_errors(self) -> None:
        expected = np.r_[0.5, 0.5, 0.5, MEAN[:3] + 0.25, 0.5]
        found = (OTHER - EST)[["alpha", "square", "mu"]]
        assert np.all(np.abs(found.value - expected) < 5 * found.mcse + 1e-12)

    def test_covariances_add(self) -> None:
        one, two = (run[["square", "wave"]] for run in (OTHER, EST))  # the others are exact
        found = (one - two).covariance
        np.testing.assert_allclose(found, one.covariance + two.covariance, rtol=1e-9)

    def test_names_in_another_order_and_one_alone(self) -> None:
        turned = EST[list(EST.names[::-1])]
        np.testing.assert_array_equal((OTHER - turned).value, (OTHER - EST).value)
        one = OTHER["square[1]"] - EST["square[1]"]
        assert one.value.shape == ()
        np.testing.assert_allclose(one.mcse, (OTHER - EST)["square[1]"].mcse, rtol=1e-12)

    def test_a_missing_error_stays_missing(self) -> None:
        lost = _run(2, length=3)["square"]
        assert np.isnan(lost.mcse).all()
        found = EST["square"] - lost
        assert np.isnan(found.mcse).all() and np.isfinite(found.value).all()
        assert found.reason == lost.reason
        assert not np.isnan((EST - OTHER).mcse).any()

    def test_what_cannot_be_subtracted(self) -> None:
        with pytest.raises(
            ValueError, match=r"different integrands: .*square.*Choose those that both"
        ):
            EST - OTHER["alpha"]
        with pytest.raises(
            ValueError, match=r"same draws, so their errors are not independent.*derived"
        ):
            EST - EST
        with pytest.raises(TypeError, match="unsupported operand"):
            EST - 1.0

    def test_an_integrand_that_is_constant_in_both_runs(self) -> None:
        ones = [sx.Sample(x, -x) for x in np.random.default_rng(0).normal(size=(2, 4, 50, 1))]
        one, two = (sx.estimate({"one": np.ones((4, 50))}, sample, FAMILY) for sample in ones)
        assert (one - two).value == 0
