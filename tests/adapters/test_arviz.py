"""Trees and files with scores, and hand-made ones with mistakes."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import xarray

import steinax as sx
from adapters.settled import same_draws, training_of
from steinax import checks

RNG = np.random.default_rng(3)
NAMES = ["mu", "tau_log__", "nu"]
# log(tau) is a log-gamma variable, so none of the three is like another
MU, NU = 2 + RNG.normal(size=(4, 500)), 0.3 * RNG.normal(size=(4, 500))
TAU = RNG.gamma(3.0, size=(4, 500))
DRAWS = np.stack([MU, np.log(TAU), NU], axis=-1)
SCORES = np.stack([2 - MU, 3 - TAU, -NU / 0.09], axis=-1)


def _tree(draws=DRAWS, scores=SCORES, **extra) -> xarray.DataTree:
    axes = ("chain", "draw", "unconstrained_parameter")
    stats = {"gradient": (axes, scores), "unconstrained_draw": (axes, draws), **extra}
    posterior = {name: (axes[:2], one) for name, one in (("mu", MU), ("tau", TAU), ("nu", NU))}
    return xarray.DataTree.from_dict(
        {
            "posterior": xarray.Dataset(posterior),
            "sample_stats": xarray.Dataset(stats, {"unconstrained_parameter": NAMES}),
        }
    )


def _log_density(x: np.ndarray) -> float:
    return -((x[0] - 2) ** 2) / 2 + 3 * x[1] - np.exp(x[1]) - x[2] ** 2 / 0.18


def test_a_right_tree_keeps_the_contract_of_adapters() -> None:
    checks.check_adapter(
        lambda: sx.from_arviz(_tree()),
        chains=4,
        length=500,
        dim=3,
        names=NAMES,
        log_density=_log_density,
    )


def test_estimates_are_asked_for_by_the_users_names() -> None:
    est = sx.estimate(["mu", "tau"], sx.from_arviz(_tree()), sx.Polynomial(3))
    assert est.names == ("mu", "tau")
    assert np.all(np.abs(est.value - [2, 3]) < 5 * est.mcse + 1e-12)  # false alarm: 1e-6
    assert np.all(est.worth > 10)


MISTAKES = {
    "a wrong sign": (DRAWS, -SCORES, "sign", "give -scores"),
    "swapped columns": (DRAWS, SCORES[..., [0, 2, 1]], "order", "tau_log__.*nu|nu.*tau_log__"),
    "constrained draws": (np.stack([MU, TAU, NU], axis=-1), SCORES, "constrained", "log"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_refused_and_its_repair_named(mistake: str) -> None:
    draws, scores, kind, repair = MISTAKES[mistake]
    with pytest.raises(sx.AuditError, match=repair) as caught:
        sx.from_arviz(_tree(draws, scores))
    assert caught.value.report.problems[0].kind == kind
    assert isinstance(sx.from_arviz(_tree(draws, scores), audit=False), sx.Sample)


def test_labels_say_which_score_is_whose() -> None:
    stats = xarray.Dataset(
        {
            "gradient": (("chain", "draw", "of"), SCORES[..., [2, 0, 1]]),
            "unconstrained_draw": (("chain", "draw", "parameter"), DRAWS),
        },
        {"of": ["nu", "mu", "tau_log__"], "parameter": NAMES},
    )
    tree = _tree()
    tree["sample_stats"] = xarray.DataTree(stats)
    np.testing.assert_array_equal(sx.from_arviz(tree).scores, SCORES)


def test_axes_in_another_order() -> None:
    tree = _tree()
    tree["sample_stats"] = xarray.DataTree(
        tree["sample_stats"].to_dataset().transpose("unconstrained_parameter", "draw", "chain")
    )
    np.testing.assert_array_equal(sx.from_arviz(tree).draws, DRAWS)


def test_divergences_are_counted() -> None:
    flags = np.zeros((4, 500), dtype=bool)
    flags[1, 7] = True
    sample = sx.from_arviz(_tree(diverging=(("chain", "draw"), flags)))
    assert sx.audit(sample).divergences == 1


def test_a_trace_without_scores_is_told_how_to_get_them() -> None:
    tree = _tree()
    tree["sample_stats"] = xarray.DataTree(tree["sample_stats"].to_dataset()[["gradient"]])
    with pytest.raises(ValueError, match=r"(?s)'gradient' alone.*from_pymc\(model, idata\)"):
        sx.from_arviz(tree)
    with pytest.raises(ValueError, match=r"(?s)neither.*store_gradient=True"):
        sx.from_arviz(xarray.DataTree.from_dict({"posterior": tree["posterior"].to_dataset()}))


def test_what_is_neither_tree_nor_path() -> None:
    with pytest.raises(TypeError, match="a dict is neither a DataTree nor a path: give"):
        sx.from_arviz({"posterior": 1})
    with pytest.raises(FileNotFoundError, match="there is no file"):
        sx.from_arviz("nowhere.nc")


@pytest.mark.parametrize("drop", [True, False])
def test_a_dropped_axis_is_named_with_what_to_do(drop: bool) -> None:
    with pytest.raises(ValueError, match=r"no chain: .*\.isel\(chain=\[0\]\)"):
        sx.from_arviz(_tree().isel(chain=0, drop=drop))
    assert sx.from_arviz(_tree().isel(chain=[0])).chains == 1


WARMUP = 300  # of the draws


def _warm(**changed: xarray.Dataset) -> xarray.DataTree:
    """The tree with its first draws in the groups of the warm-up."""
    density = np.apply_along_axis(_log_density, -1, DRAWS)
    tree, groups = _tree(lp=(("chain", "draw"), density)), {}
    for name, node in tree.children.items():
        groups[f"warmup_{name}"] = node.dataset.isel(draw=slice(WARMUP))
        groups[name] = node.dataset.isel(draw=slice(WARMUP, None))
    return xarray.DataTree.from_dict(groups | changed)


@pytest.mark.parametrize("form", ["tree", "nc", "zarr"])
def test_the_warm_up_is_for_training(form: str, tmp_path: Path) -> None:
    source = tree = _warm()
    if form == "nc":
        tree.to_netcdf(source := tmp_path / "warm.nc", engine="h5netcdf")
    elif form == "zarr":
        tree.to_zarr(source := tmp_path / "warm.zarr", consolidated=False)
    sample = sx.from_arviz(source)
    np.testing.assert_array_equal(sample.draws, DRAWS[:, WARMUP:])
    part, rows = training_of(sample, DRAWS[:, :WARMUP])
    np.testing.assert_array_equal(part.scores, SCORES[:, rows])
    np.testing.assert_array_equal(sx.data.integrands("tau", part).values[..., 0], TAU[:, rows])
    assert "training points" in sx.estimate("tau", sample, sx.Polynomial(2)).note
    same_draws(sx.from_arviz(source, warmup=False), sample)
    same_draws(sx.from_arviz(_tree().isel(draw=slice(WARMUP, None))), sample)
    assert repr(sx.from_arviz(source, stream=True)).startswith("Stream(4 chains x 200 draws")


@pytest.mark.parametrize("name", ["gradient", "unconstrained_draw", "lp"])
def test_a_warm_up_begins_after_its_last_draw_that_is_not_finite(name: str) -> None:
    stats = _warm()["warmup_sample_stats"].to_dataset().copy(deep=True)
    for chain, draw, value in ((3, 0, np.nan), (1, 99, np.inf)):
        stats[name][chain, draw] = value
    sample = sx.from_arviz(_warm(warmup_sample_stats=stats))
    part, rows = training_of(sample, DRAWS[:, 100:WARMUP])
    np.testing.assert_array_equal(part.scores, SCORES[:, 100:WARMUP][:, rows])
    np.testing.assert_array_equal(
        sx.data.integrands("tau", part).values[..., 0], TAU[:, 100:WARMUP][:, rows]
    )
    stats[name][0, -1] = np.nan
    same_draws(sx.from_arviz(_warm(warmup_sample_stats=stats)), sample)


UNUSABLE: dict[str, Callable[[xarray.DataTree], dict[str, xarray.Dataset]]] = {
    "no scores": lambda tree: {
        "warmup_sample_stats": tree["warmup_sample_stats"].to_dataset().drop_vars("gradient")
    },
    "other columns": lambda tree: {
        "warmup_sample_stats": tree["warmup_sample_stats"]
        .to_dataset()
        .assign_coords(unconstrained_parameter=["mu", "nu", "tau_log__"])
    },
    "fewer columns": lambda tree: {
        "warmup_sample_stats": tree["warmup_sample_stats"]
        .to_dataset()
        .isel(unconstrained_parameter=slice(2))
    },
    "variables of other draws": lambda tree: {
        "warmup_posterior": tree["warmup_posterior"].to_dataset().isel(draw=slice(9))
    },
    "no variables": lambda tree: {"warmup_posterior": xarray.Dataset()},
    "no draws": lambda tree: {
        name: tree[name].to_dataset().isel(draw=slice(0))
        for name in ("warmup_posterior", "warmup_sample_stats")
    },
}


@pytest.mark.parametrize("lack", UNUSABLE)
def test_a_warm_up_that_cannot_be_used_is_left_out(lack: str) -> None:
    same_draws(sx.from_arviz(_warm(**UNUSABLE[lack](_warm()))), sx.from_arviz(_warm()))
