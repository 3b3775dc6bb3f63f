"""Posterior predictive expectations: against closed forms, quadrature, and other ways to say the same."""

from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import stats

import pumps
import steinax as sx

# Cavendish's 29 measurements of the density of the earth, 1798, in g/cm^3.
EARTH = np.fromstring(
    "5.50 5.61 4.88 5.07 5.26 5.55 5.36 5.29 5.58 5.65 5.57 5.53 5.62 5.29 5.44 "
    "5.34 5.79 5.10 5.27 5.39 5.42 5.47 5.63 5.34 5.46 5.30 5.75 5.68 5.85",
    sep=" ",
)


def earth(seed: int = 0, length: int = 250) -> sx.Sample:
    """Independent draws of mean and standard deviation, under the prior 1 / sigma."""
    n, rng = len(EARTH), np.random.default_rng(seed)
    sigma = EARTH.std() * np.sqrt(n / rng.chisquare(n - 1, (4, length)))
    mu = rng.normal(EARTH.mean(), sigma / np.sqrt(n))
    apart = EARTH - mu[..., None]
    scores = np.stack(
        [apart.sum(axis=-1) / sigma**2, (apart**2).sum(axis=-1) / sigma**2 - n], axis=-1
    )
    draws = np.stack([mu, np.log(sigma)], axis=-1)
    return sx.from_arrays(draws, scores, ["mu", "log_sigma"], variables={"mu": mu, "sigma": sigma})


def student() -> Any:
    """The predictive distribution of one more measurement, in closed form."""
    n = len(EARTH)
    scale = EARTH.std(ddof=1) * np.sqrt(1 + 1 / n)
    return stats.t(n - 1, EARTH.mean(), scale)


def normal(mu: Any, sigma: Any) -> Any:
    return stats.norm(mu, sigma)


@pytest.fixture(scope="module")
def one_more() -> sx.estimation.Predictive:
    return sx.predictive(normal, earth())


@pytest.fixture(scope="module")
def with_family() -> sx.estimation.Predictive:
    """The same with a family, which takes a tenth of the time of a search."""
    return sx.predictive(normal, earth(), sx.Polynomial(2))


def close(est: sx.Estimate, truth: Any, worth: float) -> None:
    """Within four of its errors, and rounding, of the truth, and worth at least so much."""
    np.testing.assert_array_less(np.abs(est.value - truth), 4 * est.mcse + 1e-9)
    assert np.all(est.worth > worth), est


class TestAgainstStudent:
    def test_mean(self, one_more: sx.estimation.Predictive) -> None:
        close(one_more.mean(), student().mean(), 1e4)

    def test_standard_deviation(self, one_more: sx.estimation.Predictive) -> None:
        est = one_more.sd()
        close(est, student().std(), 1e4)
        assert est.names == ("sd y",)
        plain = np.sqrt(
            (one_more.sample.variables["sigma"].values ** 2).mean()
            + one_more.sample.variables["mu"].values.var()
        )
        np.testing.assert_allclose(est.plain_value, plain)

    def test_probabilities(self, one_more: sx.estimation.Predictive) -> None:
        exact = student()
        close(one_more.probability(above=6), exact.sf(6), 1e3)
        close(one_more.probability(below=5), exact.cdf(5), 1e3)
        both = one_more.probability(above=5, below=6)
        close(both, exact.cdf(6) - exact.cdf(5), 1e3)
        assert both.names == ("P(5 < y <= 6)",)

    def test_quantiles(self, one_more: sx.estimation.Predictive) -> None:
        levels = [0.01, 0.5, 0.95]
        est = one_more.quantile(levels)
        close(est, student().ppf(levels), 1e3)
        assert est.names == ("y 1%", "y 50%", "y 95%")
        assert np.all(est.mcse < 1e-4)

    def test_a_plain_quantile_inverts_the_plain_average(
        self, one_more: sx.estimation.Predictive
    ) -> None:
        plain = one_more.quantile(0.9).plain_value[0]
        mu, sigma = (one_more.sample.variables[name].values for name in ("mu", "sigma"))
        assert abs(stats.norm(mu, sigma).cdf(plain).mean() - 0.9) < 1e-5

    def test_log_pointwise_predictive_density(self) -> None:
        """Of the data that were fitted: $p(y_i)$ is not Student's, but its mean over the draws is."""
        est = sx.predictive(lambda mu, sigma: stats.norm(mu, np.full(29, sigma)), earth()).lppd(
            EARTH
        )
        close(est, student().logpdf(EARTH).sum(), 1e3)
        assert est.names == ("lppd",)

    def test_data_of_another_length(self) -> None:
        new = sx.predictive(lambda mu, sigma: stats.norm(mu, np.full(29, sigma)), earth())
        with pytest.raises(ValueError, match=r"y of shape \(5,\) .* one number for each"):
            new.lppd(EARTH[:5])

    def test_a_utility(self, one_more: sx.estimation.Predictive) -> None:
        est = one_more.expect(
            {"E y^2": lambda d: d.mean() ** 2 + d.var(), "P(y > 6)": lambda d: d.sf(6)}
        )
        exact = student()
        close(est, [exact.mean() ** 2 + exact.var(), exact.sf(6)], 1e3)
        assert est.names == ("E y^2", "P(y > 6)")


@pytest.mark.slow
def test_errors_hold_over_many_samples() -> None:
    """Of 20 estimates each, the root mean square in units of the error; beyond 1.6 once in 10,000 runs."""
    exact, z = student(), []
    for seed in range(20):
        new = sx.predictive(normal, earth(seed, 50), sx.Polynomial(2))
        for est, truth in ((new.sd(), exact.std()), (new.quantile(0.95), exact.ppf(0.95))):
            z.append((est.value[0] - truth) / est.mcse[0])
    assert np.sqrt(np.mean(np.square(z))) < 1.6


class TestOtherDistributions:
    def test_plain_functions(self, with_family: sx.estimation.Predictive) -> None:
        def own(mu: Any, sigma: Any) -> Any:
            return SimpleNamespace(
                mean=lambda: mu,
                var=lambda: sigma**2,
                cdf=lambda y: jax.scipy.stats.norm.cdf(y, mu, sigma),
                logpdf=lambda y: jax.scipy.stats.norm.logpdf(y, mu, sigma),
            )

        same = sx.predictive(own, with_family.sample, sx.Polynomial(2))
        for name, given in (("mean", ()), ("sd", ()), ("quantile", (0.9,)), ("lppd", (5.5,))):
            ours, theirs = (getattr(one, name)(*given) for one in (same, with_family))
            np.testing.assert_allclose(ours.value, theirs.value, rtol=1e-7)
            np.testing.assert_allclose(ours.mcse, theirs.mcse, rtol=0.1)
        up = (one.probability(above=6).value for one in (same, with_family))
        np.testing.assert_allclose(*up, rtol=1e-6)

    def test_numpyro(self, with_family: sx.estimation.Predictive) -> None:
        same = sx.predictive(
            lambda mu, sigma: dist.Normal(loc=mu, scale=sigma), with_family.sample, sx.Polynomial(2)
        )
        for name, given in (("mean", ()), ("sd", ()), ("quantile", (0.9,)), ("lppd", (5.5,))):
            ours, theirs = (getattr(one, name)(*given) for one in (same, with_family))
            np.testing.assert_allclose(ours.value, theirs.value, rtol=1e-6)

    def test_scipy_of_the_new_kind(self, with_family: sx.estimation.Predictive) -> None:
        same = sx.predictive(
            lambda mu, sigma: stats.Normal(mu=mu, sigma=sigma), with_family.sample, sx.Polynomial(2)
        )
        np.testing.assert_allclose(same.sd().value, with_family.sd().value, rtol=1e-7)
        np.testing.assert_allclose(same.lppd(5.5).value, with_family.lppd(5.5).value, rtol=1e-7)

    def test_a_scipy_distribution_is_made_once_for_each_draw(self) -> None:
        made = []

        def counted(mu: Any, sigma: Any) -> Any:
            if isinstance(mu, np.ndarray | np.generic):
                made.append(mu)
            return stats.norm(mu, sigma)

        new = sx.predictive(counted, earth(length=50), sx.Polynomial(2))
        new.mean(), new.sd(), new.quantile(0.5)
        assert len(made) == 200

    def test_quantiles_without_a_variance(self) -> None:
        """A Cauchy around a standard normal mean: symmetric, and heavier than either."""
        x = np.random.default_rng(0).normal(size=(4, 250, 1))
        new = sx.predictive(lambda x: stats.cauchy(loc=x[0], scale=3), sx.Sample(x, -x))
        grid = np.linspace(-8, 8, 4001)
        exact = stats.cauchy.cdf((4 - grid) / 3) @ stats.norm.pdf(grid) * (grid[1] - grid[0])
        close(new.quantile(float(exact)), 4.0, 1e3)

    def test_many_new_data_at_once(self) -> None:
        shift = np.array([0.0, 1.0, 2.0])
        new = sx.predictive(lambda mu, sigma: stats.norm(mu + shift, sigma), earth(), name="t")
        exact = student()
        close(new.mean(), exact.mean() + shift, 1e3)
        assert new.mean().names == ("t[0]", "t[1]", "t[2]")
        est = new.quantile([0.1, 0.9])
        close(est, np.ravel(exact.ppf([[0.1], [0.9]]) + shift), 1e3)
        assert est.names[:2] == ("t[0] 10%", "t[1] 10%")
        close(new.probability(above=6 + shift), np.full(3, exact.sf(6)), 1e3)


class TestImportanceWeights:
    def test_averages_are_weighted(self) -> None:
        """Draws that are too wide, and weights: the predictive of a standard normal mean."""
        rng = np.random.default_rng(0)
        x = 1.5 * rng.normal(size=(4, 500, 1))
        logs = (-(x**2) / 2 + x**2 / 4.5)[..., 0]
        new = sx.predictive(lambda x: stats.norm(x[0], 1), sx.Sample(x, -x, log_weights=logs))
        exact = stats.norm(0, np.sqrt(2))
        close(new.sd(), exact.std(), 10)
        close(new.quantile([0.05, 0.9]), exact.ppf([0.05, 0.9]), 10)


class TestRefused:
    def test_numbers_instead_of_a_distribution(self) -> None:
        with pytest.raises(AttributeError, match="without mean: let the function give"):
            sx.predictive(lambda mu: SimpleNamespace(cdf=mu), earth(length=50)).mean()

    def test_quantiles_of_counts(self) -> None:
        new = sx.predictive(lambda sigma: stats.poisson(mu=sigma), earth(length=50))
        with pytest.raises(ValueError, match=r"use probability\(below=\.\.\.\)"):
            new.quantile(0.5)

    def test_levels_beyond_one(self, one_more: sx.estimation.Predictive) -> None:
        with pytest.raises(ValueError, match="numbers between 0 and 1"):
            one_more.quantile(95)

    def test_no_event(self, one_more: sx.estimation.Predictive) -> None:
        with pytest.raises(ValueError, match="give above="):
            one_more.probability()


@pytest.mark.slow
def test_pumps_by_nuts_against_quadrature() -> None:
    """Failures in a thousand more hours of the first, fifth and last pump, by NumPyro's NUTS.

    Given $b$ their number is negative binomial, so that all is an integral over $b$.
    """
    import numpyro
    from numpyro.infer import MCMC, NUTS

    failures = np.array([5, 1, 5, 14, 3, 19, 1, 1, 4, 22])
    hours = np.array([94.3, 15.7, 62.9, 126, 5.24, 31.4, 1.05, 1.05, 2.1, 10.5])

    def model() -> None:
        b = numpyro.sample("b", dist.Gamma(0.1, 1.0))
        rate = numpyro.sample("rate", dist.Gamma(1.8, b).expand([10]).to_event(1))
        numpyro.sample("failures", dist.Poisson(rate * hours), obs=failures)

    with jax.enable_x64():
        mcmc = MCMC(
            NUTS(model),
            num_warmup=300,
            num_samples=500,
            num_chains=4,
            chain_method="vectorized",
            progress_bar=False,
        )
        mcmc.run(jax.random.key(0), extra_fields=("z_grad",))
        sample = sx.from_numpyro(mcmc)
    some = np.array([0, 4, 9])
    new = sx.predictive(lambda rate: dist.Poisson(rate[some]), sample)
    b, weight = pumps.quadrature(failures, hours)
    shape, rate = (1.8 + failures)[some], (b + hours)[:, some]
    exact = stats.nbinom(shape, rate / (1 + rate))
    mean = weight @ exact.mean()
    close(new.mean(), mean, 1e3)
    variance = weight @ (exact.var() + exact.mean() ** 2) - mean**2
    close(new.sd(), np.sqrt(variance), 100)
    close(new.probability(above=1), weight @ exact.sf(1), 100)
    y = np.array([0, 1, 2])
    close(new.lppd(y), np.log(weight @ exact.pmf(y)).sum(), 100)
    replicated = np.random.default_rng(0).poisson(sample.variables["rate"].values[..., some])
    plain = sx.estimate({"y": replicated}, sample)
    assert np.all(plain.worth < 2)
    assert np.all(plain.plain_mcse > 10 * new.mean().mcse)


def test_a_number_is_no_distribution() -> None:
    for f in (lambda mu: mu, lambda mu, sigma: 1.0):
        with pytest.raises(TypeError, match="let it give the conditional distribution"):
            sx.predictive(f, earth()).mean()
