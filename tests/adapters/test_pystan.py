"""PyStan 3 on the shared model, run for real; each claim is on Stan's own numbers."""

from typing import Any

import numpy as np
import pytest

import steinax as sx
from adapters import model_stan
from adapters.differences import differences
from adapters.settled import same_draws, training_of
from adapters.shared_model import DIMENSIONS
from steinax.checks import check_adapter

pytestmark = pytest.mark.slow  # the model is compiled once, in about 40 s, and then cached

NAMES = (
    *(f"beta[{i}]" for i in range(3)),
    "tau_free__",
    *(f"w_free__[{i}]" for i in range(3)),
    *(f"L_free__[{i}]" for i in range(3)),
)


@pytest.fixture(scope="module")
def fit() -> Any:
    return model_stan.pystan_fit()


@pytest.fixture(scope="module")
def sample() -> sx.Sample:
    return model_stan.pystan_sample()


def test_scores_are_those_of_stans_own_log_density(sample: sx.Sample) -> None:
    x, score = sample.x[::100], sample.score[::100]
    found = np.array([differences(model_stan.log_density, u) for u in x])
    size = np.sqrt(np.mean(found**2, axis=0))
    assert np.max(np.abs(score - found) / size) < 1e-6


def test_keeps_the_contract_of_an_adapter() -> None:
    check_adapter(
        model_stan.pystan_sample,
        chains=4,
        length=500,
        dim=DIMENSIONS,
        names=NAMES,
        log_density=model_stan.log_density,
    )


def test_passes_the_audit_and_beats_plain(sample: sx.Sample) -> None:
    report = sx.audit(sample)
    assert report.passed and report.compared
    estimate = sx.estimate(["beta", "tau", "w"], sample, sx.Polynomial(2))
    assert estimate.names[3:5] == ("tau", "w[0]")
    assert np.min(estimate.worth) > 10


def test_variables_are_what_arviz_reads(fit: Any, sample: sx.Sample) -> None:
    from arviz_base.io_pystan import from_pystan

    expected = from_pystan(fit)["posterior"]
    assert sample.variables is not None
    assert sample.variables.names == tuple(expected.data_vars)
    for name in sample.variables.names:
        np.testing.assert_array_equal(sample.variables[name].values, expected[name].values)
    assert sample.variables["L"].dims == ("chain", "draw", "L_dim_0", "L_dim_1")
    assert np.all(np.triu(sample.variables["L"].values, 1) == 0)


def test_the_warm_up_is_for_training_and_thinning_kept(sample: sx.Sample) -> None:
    fit = model_stan.pystan_fit(save_warmup=True, num_thin=2)
    thinned = sx.from_pystan(fit)
    np.testing.assert_array_equal(thinned.draws, sample.draws[:, ::2])
    np.testing.assert_array_equal(thinned.scores, sample.scores[:, ::2])
    beta, tau, density = (fit[name].reshape(-1, 750, 4).T for name in ("beta", "tau", "lp__"))
    part, rows = training_of(thinned, beta[:, :500], slice(3))
    assert part.variables is not None and part.log_density is not None
    np.testing.assert_array_equal(part.log_density, density[:, rows, 0])
    np.testing.assert_array_equal(part.variables["tau"].values, tau[:, rows, 0])
    np.testing.assert_allclose(part.draws[..., 3], np.log(tau[:, rows, 0]), rtol=1e-12, atol=1e-12)
    found = np.array([differences(model_stan.log_density, u) for u in part.x[::200]])
    size = np.sqrt(np.mean(found**2, axis=0))
    assert np.max(np.abs(part.score[::200] - found) / size) < 1e-6
    estimate = sx.estimate(["tau", "w"], thinned, sx.Polynomial(2))
    assert f"{part.size} training points" in estimate.note
    same_draws(sx.from_pystan(fit, warmup=False), thinned)
    assert sample.training == ()


def test_axes_have_names_and_labels() -> None:
    fit = model_stan.pystan_fit(save_warmup=True, num_thin=2)
    labelled = sx.from_pystan(fit, dims={"w": ["part"]}, coords={"part": ["a", "b", "c", "d"]})
    assert sx.data.integrands("w", labelled).names == ("w[a]", "w[b]", "w[c]", "w[d]")
    for part in labelled.training:
        assert part.variables is not None
        assert part.variables["w"].dims == ("chain", "draw", "part")


def test_log_likelihoods_go_to_their_own_group(sample: sx.Sample) -> None:
    """The simplex w stands for log_lik: any variable can be moved."""
    found = sx.from_pystan(model_stan.pystan_fit(), log_likelihood=["w"])
    assert found.variables is not None and sample.variables is not None
    assert found.names == NAMES and found.variables.names == ("beta", "tau", "L")
    moved = found.variables["log_likelihood/w"].values
    np.testing.assert_array_equal(moved, sample.variables["w"].values)


def test_divergences_are_kept() -> None:
    settings = {"num_samples": 50, "num_warmup": 0, "stepsize": 2.5, "num_chains": 2}
    fit = model_stan.pystan_fit(**settings)
    diverging = sx.from_pystan(fit).diverging
    assert diverging is not None
    expected = fit["divergent__"].reshape(50, 2).T > 0
    assert expected.any()
    np.testing.assert_array_equal(diverging, expected)


def test_calls_no_model_code(fit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import httpstan.models
    import stan.common

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("the model was called")

    monkeypatch.setattr(httpstan.models, "import_services_extension_module", refuse)
    monkeypatch.setattr(stan.common.HttpstanClient, "__init__", refuse)
    assert sx.from_pystan(fit).size == 2000


def test_a_parameter_may_be_called_as_a_momentum_is(fit: Any, sample: sx.Sample) -> None:
    # tau under the name p_beta.1 is told from the momentum of beta.1 by its place alone.
    renamed = [
        (b'"tau":', b'"p_beta.1":'),
        (b'"p_tau":', b'"p_p_beta.1":'),
        (b'"g_tau":', b'"g_p_beta.1":'),
    ]
    outputs = fit.stan_outputs
    for old, new in renamed:
        outputs = tuple(output.replace(old, new) for output in outputs)
    names = tuple("p_beta.1" if name == "tau" else name for name in fit.constrained_param_names)
    param_names = tuple("p_beta" if name == "tau" else name for name in fit.param_names)
    dims = [
        [1] if name == "p_beta" else dim for name, dim in zip(param_names, fit.dims, strict=True)
    ]
    other = type(fit)(
        outputs, 4, param_names, names, dims, fit.num_warmup, fit.num_samples, fit.num_thin, False
    )
    found = sx.from_pystan(other)
    np.testing.assert_array_equal(found.draws, sample.draws)
    np.testing.assert_array_equal(found.scores, sample.scores)
    assert found.names[3] == "p_beta_free__[0]"


def test_fixed_param_has_no_scores() -> None:
    with model_stan.pystan_warnings():
        fit = model_stan.build().fixed_param(num_chains=1, num_samples=10)
    with pytest.raises(ValueError, match=r"fixed_param.*Use posterior\.sample"):
        sx.from_pystan(fit)


def test_other_things_are_refused() -> None:
    with pytest.raises(TypeError, match=r"not a fit of PyStan 3.*from_cmdstan"):
        sx.from_pystan({"mu": [1.0]})


ARRAYS = """
parameters {
    matrix[2, 3] M;
    matrix<lower=0>[2, 2] P;
    array[2] vector[3] v;
    array[2] matrix[2, 2] A;
    array[2, 3] real<lower=0> r;
    array[2] simplex[3] w;
    array[3] cholesky_factor_corr[2] L;
}
model {
    for (i in 1:2) {
        for (j in 1:3) {
            M[i, j] ~ normal(10 * i + j, 1);
            v[i][j] ~ normal(10 * i + j, 1);
            r[i, j] ~ gamma(10 * i + j, 1);
        }
        for (j in 1:2) {
            P[i, j] ~ gamma(10 * i + j, 1);
            for (k in 1:2) A[i, j, k] ~ normal(100 * i + 10 * j + k, 1);
        }
        w[i] ~ dirichlet(rep_vector(4 * i, 3));
    }
    for (i in 1:3) L[i] ~ lkj_corr_cholesky(2);
}
"""


def test_elements_of_arrays_and_matrices_have_their_own_names() -> None:
    """Stan names both column by column, but values of arrays are one member after the other."""
    with model_stan.pystan_warnings():
        fit = model_stan.build(ARRAYS, {}).sample(num_chains=2, num_samples=100)
    sample = sx.from_pystan(fit)
    assert sample.variables is not None
    columns = {name: sample.draws[..., i] for i, name in enumerate(sample.names)}
    for name, change in {"M": None, "P": np.log, "v": None, "A": None, "r": np.log}.items():
        given = sample.variables[name].values
        for place in np.ndindex(given.shape[2:]):
            free = columns[f"{name}{'_free__' if change else ''}{list(place)}"]
            own = given[:, :, *place]
            np.testing.assert_allclose(free, change(own) if change else own, rtol=1e-12)
    for i, simplex in enumerate(np.moveaxis(sample.variables["w"].values, 2, 0)):
        ratio = np.log(simplex[..., 0] / simplex[..., 1])  # the first isometric log-ratio
        np.testing.assert_allclose(columns[f"w_free__[{i}, 0]"] * 2**0.5, ratio, rtol=1e-9)
    for i, lower in enumerate(np.moveaxis(sample.variables["L"].values[..., 1, 0], -1, 0)):
        np.testing.assert_allclose(np.tanh(columns[f"L_free__[{i}, 0]"]), lower, rtol=1e-12)
