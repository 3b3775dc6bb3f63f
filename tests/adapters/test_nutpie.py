"""Scores that nutpie kept: in memory, in a zarr store, and where no model can be called."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray

import steinax as sx
from adapters.settled import same_draws, training_of
from steinax import checks
from steinax.adapters._nutpie import from_nutpie

NO_MODEL = """
import sys
for package in ("pymc", "pytensor", "nutpie", "numba"):
    sys.modules[package] = None  # an import of it fails
from steinax.adapters._nutpie import from_nutpie
sample = from_nutpie(sys.argv[1])
print(sample, sample.variables["tau"].shape)
"""


@pytest.fixture(scope="module")
def trace() -> Any:
    from adapters import model_pymc

    return model_pymc.nutpie_trace()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A smaller model than the shared one, with the warm-up in the store and in the trace."""
    from adapters import model_pymc
    from adapters.model_pymc import pm

    path = tmp_path_factory.mktemp("nutpie") / "trace.zarr"
    with model_pymc.compiling_by_jax():
        import nutpie

        with pm.Model(coords={"school": ["a", "b", "c"]}) as model:
            tau = pm.HalfNormal("tau", 2)
            pm.Normal("theta", 1, tau, dims="school")
            pm.Normal("B", shape=(2, 3))
            pm.Normal("theta_9")
        compiled = nutpie.compile_pymc_model(model, backend="jax")
        target = nutpie.zarr_store.LocalStore(str(path), mkdir=True)
        run = {"chains": 2, "draws": 200, "tune": 300, "seed": 1, "progress_bar": False}
        nutpie.sample(compiled, zarr_store=target, **run, **model_pymc.KEEP)
    return path


@pytest.mark.slow
def test_a_trace_keeps_the_contract_of_adapters(trace: Any) -> None:
    from adapters import model_pymc

    names = from_nutpie(trace).names
    assert sorted(names) == sorted(model_pymc.COLUMNS)
    checks.check_adapter(
        lambda: from_nutpie(trace),
        chains=4,
        length=500,
        dim=10,
        names=names,
        log_density=model_pymc.log_density(model_pymc.model(), names),
    )
    report = sx.audit(from_nutpie(trace))
    assert report.passed and report.compared


@pytest.mark.slow
def test_stored_scores_agree_with_finite_differences(trace: Any) -> None:
    from adapters import model_pymc
    from adapters.differences import differences

    sample = from_nutpie(trace)
    density = model_pymc.log_density(model_pymc.model(), sample.names)
    typical = np.sqrt(np.mean(sample.score**2, axis=0))
    for i in (0, 700, 1999):
        off = np.abs(sample.score[i] - differences(density, sample.x[i])) / typical
        assert off.max() < 1e-6


@pytest.mark.slow
def test_integrands_go_by_the_users_names(trace: Any) -> None:
    sample = from_nutpie(trace)
    assert sample.variables is not None and sample.variables.tree is trace
    posterior = trace["posterior"]
    found = sx.data.integrands(["beta", "tau", "w", "L[1, 0]"], sample)
    assert found.names[:4] == ("beta[0]", "beta[1]", "beta[2]", "tau")
    np.testing.assert_array_equal(found.values[..., 3], posterior["tau"])
    np.testing.assert_array_equal(found.values[..., -1], posterior["L"][..., 1, 0])
    assert np.array_equal(sample.diverging, trace["sample_stats"]["diverging"])


@pytest.mark.slow
def test_the_draws_of_a_store_are_those_after_its_warm_up(store: Path) -> None:
    sample = from_nutpie(store)
    assert (sample.chains, sample.length, sample.dim) == (2, 200, 11)
    wanted = {"tau_log__", "theta_9", *(f"theta[{i}]" for i in range(3))}
    wanted |= {f"B[{i}, {j}]" for i in range(2) for j in range(3)}
    assert set(sample.names) == wanted  # theta_9 is a variable, and theta_0 was an element
    column = sample.draws[..., sample.names.index("tau_log__")]
    np.testing.assert_allclose(np.exp(column), sx.data.integrands("tau", sample).values[..., 0])
    nutpie = pytest.importorskip("nutpie")
    again = from_nutpie(nutpie.zarr_store.LocalStore(str(store)))
    np.testing.assert_array_equal(again.scores, sample.scores)


def _score(sample: sx.Sample) -> np.ndarray:
    """Of the model of `store`, from the columns by name."""
    x = dict(zip(sample.names, np.moveaxis(sample.draws, -1, 0), strict=True))
    precision, theta = np.exp(-2 * x["tau_log__"]), [x[f"theta[{i}]"] for i in range(3)]
    scores = {name: -values for name, values in x.items()}
    scores |= {f"theta[{i}]": (1 - one) * precision for i, one in enumerate(theta)}
    squares = sum((one - 1) ** 2 for one in theta)
    scores["tau_log__"] = squares * precision - 2 - np.exp(2 * x["tau_log__"]) / 4
    return np.stack([scores[name] for name in sample.names], axis=-1)


@pytest.mark.slow
def test_the_warm_up_of_a_store_is_for_training(store: Path) -> None:
    sample = from_nutpie(store)
    warm = xarray.open_datatree(store, engine="zarr", consolidated=False)
    stats, posterior = (warm[f"warmup_{name}"].dataset for name in ("sample_stats", "posterior"))
    part, rows = training_of(sample, stats["unconstrained_draw"].values)
    np.testing.assert_array_equal(part.scores, stats["gradient"].values[:, rows])
    np.testing.assert_allclose(part.scores, _score(part), rtol=1e-9, atol=1e-9)
    assert np.array_equal(part.log_density, stats["logp"].values[:, rows])
    assert np.array_equal(part.diverging, stats["diverging"].values[:, rows])
    found = sx.data.integrands(["tau", "theta[b]"], part)
    expected = [posterior["tau"][:, rows], posterior["theta"][:, rows, 1]]
    np.testing.assert_array_equal(found.values, np.stack(expected, axis=-1))
    assert f"{part.size} training points" in sx.estimate("tau", sample, sx.Polynomial(2)).note
    same_draws(from_nutpie(store, warmup=False), sample)
    (again,) = sx.from_arviz(store).training
    np.testing.assert_array_equal(again.scores, part.scores)
    assert sx.from_arviz(store, warmup=False).training == ()


@pytest.mark.slow
def test_no_model_is_called(store: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", NO_MODEL, str(store)], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert "11 dimensions" in run.stdout and "(2, 200)" in run.stdout


@pytest.mark.slow
def test_the_call_of_pymc_that_the_message_names() -> None:
    from adapters import model_pymc
    from adapters.model_pymc import pm
    from steinax.adapters._pymc import from_pymc

    with model_pymc.compiling_by_jax(), pm.Model() as model:
        pm.HalfNormal("t")
        pm.Normal("v", shape=2)
        trace = pm.sample(
            nuts_sampler="nutpie",
            nuts={"store_gradient": True},
            idata_kwargs={"include_transformed": True},
            compile_kwargs={"mode": "JAX"},
            discard_tuned_samples=False,
            **{"draws": 100, "tune": 200, "chains": 2, "progressbar": False, "random_seed": 1},
        )
    read, matched = from_nutpie(trace), from_pymc(model, trace)
    assert matched.names == ("t_log__", "v[0]", "v[1]")
    order = [read.names.index(name) for name in matched.names]
    np.testing.assert_array_equal(read.scores[..., order], matched.scores)
    stats = trace["warmup_sample_stats"]
    part, rows = training_of(matched, stats["unconstrained_draw"].values[..., order])
    np.testing.assert_array_equal(part.scores, stats["gradient"].values[:, rows][..., order])
    same_draws(from_pymc(model, trace, warmup=False), matched)
    without = trace.filter(lambda node: not node.path.startswith("/warmup"))
    same_draws(from_nutpie(without), read)


def _tree(posterior: dict[str, np.ndarray], columns: dict[str, np.ndarray]) -> xarray.DataTree:
    draws = np.stack(list(columns.values()), axis=-1)
    axes = ("chain", "draw", "unconstrained_parameter")
    return xarray.DataTree.from_dict(
        {
            "posterior": xarray.Dataset(
                {
                    name: (("chain", "draw", *(f"{name}_{i}" for i in range(x.ndim - 2))), x)
                    for name, x in posterior.items()
                }
            ),
            "sample_stats": xarray.Dataset(
                {"unconstrained_draw": (axes, draws), "gradient": (axes, -draws)},
                {"unconstrained_parameter": list(columns)},
            ),
        }
    )


def test_the_columns_of_a_stan_model() -> None:
    """As nutpie names them (BridgeStan's `param_unc_names`); no Stan model was run for this."""
    x = np.random.default_rng(0).normal(size=(2, 9, 5))
    tree = _tree(
        {"beta": x[..., :2], "tau": np.exp(x[..., 2]), "L": np.ones((2, 9, 2, 2))},
        {name: x[..., i] for i, name in enumerate(["beta.1", "beta.2", "tau", "L.1", "L.2"])},
    )
    names = ("beta[0]", "beta[1]", "tau_free__", "L_free__[0]", "L_free__[1]")
    assert from_nutpie(tree).names == names


def test_a_name_that_may_be_an_element_is_one_only_if_the_values_say_so() -> None:
    x = np.random.default_rng(0).normal(size=(2, 9, 2))
    columns = {"beta_0": x[..., 0], "c_0": x[..., 1]}
    tree = _tree({"beta": np.exp(x[..., :1]), "beta_0": x[..., 0], "c": x[..., :1]}, columns)
    assert from_nutpie(tree).names == ("beta_0", "c_0")


@pytest.mark.slow
def test_a_trace_without_scores_is_told_how_to_get_them(trace: Any) -> None:
    bare = xarray.DataTree.from_dict({"posterior": trace["posterior"].dataset})
    with pytest.raises(ValueError, match=r"store_gradient=True.*(?s:.*)from_pymc\(model, trace\)"):
        from_nutpie(bare)
