"""BridgeStan's documented Python interface over Stan's own density: see `Bridge`."""

from typing import Any

import numpy as np
import pytest

import steinax as sx
from adapters import model_stan
from adapters.settled import same_draws
from steinax.checks import check_adapter

pytestmark = pytest.mark.slow  # the model is compiled once, in about 40 s, and then cached


class Bridge:
    """The methods of bridgestan.StanModel 2.9 that are used, keyword-only where they are so there.

    The density, its gradient and both transforms are Stan's, compiled by PyStan: BridgeStan's own C++
    sources are on no package registry.
    """

    def __init__(self) -> None:
        model = model_stan.build()
        self._stan, self._data = model_stan.compiled(model), model.data
        self._names, self._dims = model.param_names, model.dims

    def param_unc_num(self) -> int:
        return len(self.param_unc_names())

    def param_names(self, *, include_tp: bool = False, include_gq: bool = False) -> list[str]:
        return list(self._stan.constrained_param_names(self._data))

    def param_unc_names(self) -> list[str]:
        return [f"{v}.{i}" for v in ("beta",) for i in (1, 2, 3)] + [
            "tau",
            *(f"{v}.{i}" for v in ("w", "L") for i in (1, 2, 3)),
        ]

    def param_constrain(
        self,
        theta_unc: np.ndarray,
        *,
        include_tp: bool = False,
        include_gq: bool = False,
        out: np.ndarray | None = None,
        rng: Any = None,
    ) -> np.ndarray:
        if include_gq and rng is None:
            raise ValueError("Error: must specify rng when including generated quantities")
        self._expect(theta_unc)
        return np.array(
            self._stan.write_array(self._data, theta_unc.tolist(), include_tp, include_gq)
        )

    def param_unconstrain(self, theta: np.ndarray, *, out: np.ndarray | None = None) -> np.ndarray:
        self._expect(theta)
        values, start = {}, 0
        for name, dims in zip(self._names, self._dims, strict=True):
            size = int(np.prod(dims, dtype=int))
            values[name] = theta[start : start + size].reshape(dims, order="F")
            start += size
        try:
            return np.array(self._stan.transform_inits(self._data, values))
        except (RuntimeError, ValueError) as error:  # BridgeStan's are all RuntimeError
            raise RuntimeError(str(error)) from error

    def log_density_gradient(
        self,
        theta_unc: np.ndarray,
        *,
        propto: bool = True,
        jacobian: bool = True,
        out: np.ndarray | None = None,
    ) -> tuple[float, np.ndarray]:
        self._expect(theta_unc)
        gradient = self._stan.log_prob_grad(self._data, theta_unc.tolist(), jacobian)
        return model_stan.log_density(theta_unc), np.array(gradient)

    @staticmethod
    def _expect(array: np.ndarray) -> None:
        """BridgeStan hands a pointer to C, and refuses any other array."""
        assert array.dtype == np.float64 and array.flags.c_contiguous and array.ndim == 1


@pytest.fixture(scope="module")
def bridge() -> Bridge:
    return Bridge()


@pytest.fixture(scope="module")
def drawn() -> sx.Sample:
    """Draws by PyStan, a few of each chain, with the scores Stan's sampler kept."""
    return next(iter(model_stan.pystan_sample().blocks(100)))


def check_same(found: sx.Sample, expected: sx.Sample, rtol: float = 1e-9) -> None:
    assert found.names == expected.names
    np.testing.assert_allclose(found.draws, expected.draws, rtol=rtol, atol=1e-12)
    size = np.sqrt(np.mean(expected.scores**2))
    np.testing.assert_allclose(found.scores, expected.scores, rtol=rtol, atol=rtol * size)
    assert found.variables is not None and expected.variables is not None
    for name in ("beta", "tau", "w", "L"):
        values = expected.variables[name].values
        np.testing.assert_allclose(found.variables[name].values, values, rtol=rtol, atol=1e-12)


def test_draws_by_name_give_the_scores_of_the_sampler(bridge: Bridge, drawn: sx.Sample) -> None:
    assert drawn.variables is not None
    tree = drawn.variables.tree
    check_same(sx.from_bridgestan(bridge, tree), drawn)
    dataset = tree["posterior"].to_dataset()
    check_same(sx.from_bridgestan(bridge, dataset.transpose(..., "chain", "draw")), drawn)
    arrays = {str(name): array.values for name, array in dataset.data_vars.items()}
    check_same(sx.from_bridgestan(bridge, arrays | {"twice": 2 * arrays["tau"]}), drawn)


def test_arrays_give_the_scores_of_the_sampler(bridge: Bridge, drawn: sx.Sample) -> None:
    check_same(sx.from_bridgestan(bridge, drawn.draws, unconstrained=True), drawn)
    constrained = np.array([bridge.param_constrain(x) for x in drawn.x])
    check_same(sx.from_bridgestan(bridge, constrained), drawn)


def test_keeps_the_contract_of_an_adapter(bridge: Bridge, drawn: sx.Sample) -> None:
    check_adapter(
        lambda: sx.from_bridgestan(bridge, drawn.draws, unconstrained=True),
        chains=1,
        length=100,
        dim=10,
        names=drawn.names,
        log_density=model_stan.log_density,
    )


def test_divergences_of_a_tree_are_kept(bridge: Bridge, drawn: sx.Sample) -> None:
    import xarray

    assert drawn.variables is not None
    flags = np.arange(100)[None] % 7 == 0
    stats = xarray.Dataset({"diverging": (("chain", "draw"), flags)})
    tree = drawn.variables.tree.assign({"sample_stats": xarray.DataTree(stats)})
    found = sx.from_bridgestan(bridge, tree)
    np.testing.assert_array_equal(found.diverging, flags)  # pyright: ignore[reportArgumentType]


@pytest.fixture(scope="module")
def warm() -> sx.Sample:
    """Warm-up draws of one chain by PyStan, with the scores Stan's sampler kept."""
    fit = model_stan.pystan_fit(save_warmup=True, num_thin=2)
    return sx.from_pystan(fit).training[0].isel(chain=0, draw=slice(100))


def check_training(found: sx.Sample, warm: sx.Sample) -> sx.Sample:
    """Check that the training points are warm-up draws, with the scores that the sampler kept."""
    (part,) = found.training
    first = int(np.argmin(np.abs(warm.draws - part.draws[:, :1]).sum(axis=(0, 2))))
    assert 0 < first < first + part.length < warm.length
    check_same(part, warm.isel(draw=slice(first, first + part.length)))
    return part


def test_the_warm_up_is_for_training(bridge: Bridge, drawn: sx.Sample, warm: sx.Sample) -> None:
    import xarray

    assert drawn.variables is not None and warm.variables is not None
    groups = {"posterior": drawn.variables.tree, "warmup_posterior": warm.variables.tree}
    tree = xarray.DataTree.from_dict({k: v["posterior"].to_dataset() for k, v in groups.items()})
    found = sx.from_bridgestan(bridge, tree)
    check_same(found, drawn)
    part = check_training(found, warm)
    assert part.names == found.names and part.verified and part.log_density is not None
    same_draws(sx.from_bridgestan(bridge, tree, warmup=False), found)
    arrays = {name: warm.variables[name].values for name in ("beta", "tau", "w", "L")}
    plain = {name: drawn.variables[name].values for name in arrays}
    check_training(sx.from_bridgestan(bridge, plain, warmup=arrays), warm)
    free = sx.from_bridgestan(bridge, drawn.draws, unconstrained=True, warmup=warm.draws)
    check_training(free, warm)
    same_draws(sx.from_bridgestan(bridge, plain), found)


def test_a_warm_up_begins_after_the_last_draw_that_stan_refuses(
    bridge: Bridge, drawn: sx.Sample, warm: sx.Sample
) -> None:
    assert drawn.variables is not None and warm.variables is not None
    arrays, draws = (
        {name: sample.variables[name].values.copy() for name in ("beta", "tau", "w", "L")}
        for sample in (warm, drawn)
        if sample.variables is not None
    )
    arrays["w"][:, :30] = np.round(arrays["w"][:, :30], 4)
    found = sx.from_bridgestan(bridge, draws, warmup=arrays)
    check_training(found, warm.isel(draw=slice(30, None)))
    arrays["w"] = np.round(arrays["w"], 4)
    with pytest.raises(ValueError, match=r"not finite.*or leave `warmup` out"):
        sx.from_bridgestan(bridge, draws, warmup=arrays)


def test_what_does_not_fit_is_refused(bridge: Bridge, drawn: sx.Sample) -> None:
    assert drawn.variables is not None
    arrays = {name: drawn.variables[name].values for name in ("beta", "tau", "w", "L")}
    with pytest.raises(ValueError, match=r"lack w, which.*give all of them"):
        sx.from_bridgestan(bridge, {name: arrays[name] for name in ("beta", "tau", "L")})
    with pytest.raises(ValueError, match="shapes of the model's parameters"):
        sx.from_bridgestan(bridge, arrays | {"w": arrays["w"][..., :3]})
    with pytest.raises(
        ValueError, match=r"\(1, 100, 10\).*17 columns: beta\.1.*unconstrained=True"
    ):
        sx.from_bridgestan(bridge, drawn.draws)
    with pytest.raises(ValueError, match=r"draw 1 of chain 0.*write all digits"):
        sx.from_bridgestan(bridge, arrays | {"w": np.round(arrays["w"], 4)})
