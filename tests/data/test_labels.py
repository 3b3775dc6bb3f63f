"""Names and coordinates: functions of variables by name, labelled arrays, and parts of a sample."""

import arviz_base
import dask.array
import jax.numpy as jnp
import numpy as np
import pytest
import xarray

import steinax as sx
from steinax.data import integrands, variables_asked

X = np.random.default_rng(0).normal(size=(3, 40, 4))
THETA, TAU = X[..., :3] + 2, np.exp(X[..., 3])
TREE = arviz_base.from_dict(
    {
        "posterior": {"theta": THETA, "tau": TAU},
        "log_likelihood": {"y": X[..., :2] ** 2},
        "observed_data": {"y": np.arange(2.0)},
    },
    coords={"school": ["Choate", "Deer", "Lawrence"]},
    dims={"theta": ["school"]},
)
NAMES = ["theta[0]", "theta[1]", "theta[2]", "log_tau"]
SAMPLE = sx.Sample(
    X,
    -X,
    NAMES,
    diverging=X[..., 0] > 2,
    variables=TREE,
    log_weights=X[..., 1] / 9,
    log_density=-0.5 * (X**2).sum(-1),
)
FUNCTIONS = {
    "a ratio": (lambda d: d["theta"][0] / d["tau"], THETA[..., 0] / TAU),
    "of jax": (lambda d: jnp.log(d["theta"] ** 2), np.log(THETA**2)),
    "of NumPy": (lambda d: np.log(d["theta"] ** 2), np.log(THETA**2)),
    "of floats": (lambda d: float(d["tau"]) ** 2, TAU**2),
    "an element": (lambda d: d["theta[Deer]"], THETA[..., 1]),
    "a column": (lambda d: d["log_tau"], X[..., 3]),
    "a group": (lambda d: d["log_likelihood/y"].sum(), (X[..., :2] ** 2).sum(-1)),
    "jax alone": (lambda d: d["theta"].at[0].set(0.0).sum(), THETA[..., 1:].sum(-1)),
    "in place": (lambda d: np.cumsum(np.array(d["theta"]))[-1], THETA.sum(-1)),
    "called x": (lambda x: x["tau"], TAU),
    "positional": (lambda d, /: d["tau"], TAU),
    "called nearly so": (lambda taus: taus["tau"], TAU),
    "unpacked": (lambda d: dict(d)["tau"], TAU),
    "what there is": (lambda d: d["tau"] if "tau" in d else d["log_tau"], TAU),
    "another on some draws": (
        lambda d: d["tau"] if d["log_tau"] > 0 else d["theta"][1],
        np.where(X[..., 3] > 0, TAU, THETA[..., 1]),
    ),
}


class TestFunctionsByName:
    @pytest.mark.parametrize("name", FUNCTIONS)
    def test_values(self, name: str) -> None:
        f, expected = FUNCTIONS[name]
        found = integrands({"g": f}, SAMPLE)
        np.testing.assert_allclose(found.values, expected.reshape(3, 40, -1), rtol=1e-12)

    def test_columns_of_a_sample_without_variables(self) -> None:
        found = integrands(lambda d: d["theta"] * d["log_tau"], sx.Sample(X, -X, NAMES))
        np.testing.assert_allclose(found.values, X[..., :3] * X[..., 3:], rtol=1e-12)

    def test_only_what_is_asked_for_is_read(self) -> None:
        def refuse(_):
            raise AssertionError("read")

        far = dask.array.from_array(TAU).map_blocks(refuse, dtype=float)
        variables = {"tau": TREE["posterior"]["tau"], "far": (("chain", "draw"), far)}
        sample = sx.Sample(X, -X, NAMES, variables=xarray.Dataset(variables))
        assert integrands(lambda d: d["tau"], sample).names == ("f",)
        with pytest.raises(AssertionError, match="read"):
            integrands(lambda d: d["far"], sample)

    @pytest.mark.parametrize(
        ("f", "kind", "message"),
        [
            (lambda d: d["nu"], KeyError, "'nu': there are theta, tau, log_tau. Use one of these"),
            (lambda d: d["tau"] + d[0], TypeError, "give a name, such as theta"),
            (lambda d: d["theta[Eton]"], KeyError, "its elements are theta.Choate."),
            (lambda x: x.missing, AttributeError, "missing"),
            (lambda taus: taus + 1, ValueError, "the sample has no taus: it has theta, tau"),
        ],
    )
    def test_mistakes_are_named(self, f, kind: type, message: str) -> None:
        with pytest.raises(kind, match=message):
            integrands(f, SAMPLE)

    def test_everywhere(self) -> None:
        f = {"r": lambda d: d["theta"][0] / (1 + d["tau"]), "m": lambda d: np.exp(d["log_tau"])}
        sample, family = sx.Sample(X, -X, NAMES, variables=TREE), sx.Polynomial(2)
        values = {"r": THETA[..., 0] / (1 + TAU), "m": TAU}
        expected = sx.estimate(values, sample, family, audit="off").value
        stream = sx.Stream(lambda: sample.blocks(15), 3)
        answers = [
            sx.estimate(f, sample, family, audit="off").value,
            sx.estimate(f, stream, family, audit="off").value,
            sx.estimate_many(f, [sample], family, audit="off")[0].value,
            sx.weigh(sample, family, audit="off").mean(f).value,
        ]
        for answer in answers:
            np.testing.assert_allclose(np.ravel(answer), expected, rtol=1e-9)
        assert sx.fit(f, sample, family).names == ("r", "m")

    def test_kept_results_know_the_variables_that_are_read(self) -> None:
        variables = SAMPLE.variables
        assert set(variables_asked(lambda d: d["tau"], variables)) == {"theta", "tau"}
        asked = variables_asked(lambda d: d["log_tau"] * d["log_likelihood/y"], variables)
        assert "log_likelihood/y" in asked
        assert variables_asked(lambda x: x[0], variables) == {}


LABELLED = TREE["posterior"]["theta"] ** 2
STACKED = arviz_base.extract(TREE)


class TestLabelledArrays:
    @pytest.mark.parametrize("axes", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
    def test_coordinates_become_names_in_any_order_of_axes(self, axes: tuple[int, ...]) -> None:
        array = LABELLED.transpose(*(LABELLED.dims[i] for i in axes))
        found = integrands({"c": array}, SAMPLE)
        assert found.names == ("c[Choate]", "c[Deer]", "c[Lawrence]")
        np.testing.assert_array_equal(found.values, THETA**2)

    def test_an_array_brings_its_name(self) -> None:
        assert integrands(LABELLED.rename("c"), SAMPLE).names[0] == "c[Choate]"
        assert integrands(LABELLED.rename(None), SAMPLE).names[0] == "f[Choate]"

    def test_axes_without_names_are_taken_in_order(self) -> None:
        found = integrands({"c": xarray.DataArray(THETA)}, SAMPLE)
        assert found.names == ("c[0]", "c[1]", "c[2]")

    def test_coordinates_stay_beside_plain_arrays(self) -> None:
        variables = {"theta": TREE["posterior"]["theta"], "tau": TAU, "beta": THETA}
        sample = sx.from_arrays(X, -X, variables=variables)
        assert sample.variables.names == ("theta", "tau", "beta")
        assert integrands("theta", sample).names[1] == "theta[Deer]"
        np.testing.assert_array_equal(integrands("beta", sample).values, THETA)

    @pytest.mark.parametrize("axis", ["chain", "draw"])
    def test_a_dropped_axis(self, axis: str) -> None:
        with pytest.raises(ValueError, match=rf"no {axis}: .*a list keeps it: .isel\(chain=\[0\]"):
            integrands({"c": LABELLED.isel({axis: 0})}, SAMPLE)
        with pytest.raises(ValueError, match=r"a list keeps it: .isel\(chain=\[0\]"):
            sx.Sample(X, -X, variables=TREE["posterior"].to_dataset().isel({axis: 0}))


class TestExtracted:
    def test_integrands(self) -> None:
        found = integrands(STACKED, SAMPLE)
        assert found.names == ("theta[Choate]", "theta[Deer]", "theta[Lawrence]", "tau")
        np.testing.assert_array_equal(found.values[..., :3], THETA)
        np.testing.assert_array_equal(integrands(STACKED["tau"], SAMPLE).values[..., 0], TAU)

    def test_variables_and_draws(self) -> None:
        stacked = STACKED["theta"]
        sample = sx.Sample(
            stacked,
            -stacked,
            variables=STACKED,
            log_density=STACKED["tau"],
            diverging=STACKED["tau"] > 2,
        )
        np.testing.assert_array_equal(sample.draws, THETA)
        np.testing.assert_array_equal(sample.log_density, TAU)
        np.testing.assert_array_equal(sample.diverging, TAU > 2)
        np.testing.assert_array_equal(sample.variables["tau"], TAU)

    def test_the_order_of_chains_is_kept(self) -> None:
        other = arviz_base.extract(TREE.isel(chain=[2, 0, 1]))
        found = integrands(other["tau"], SAMPLE)
        np.testing.assert_array_equal(found.values[..., 0], TAU[[2, 0, 1]])

    def test_some_draws_are_refused(self) -> None:
        some = arviz_base.extract(TREE, num_samples=50)
        with pytest.raises(
            ValueError, match=r"50 stacked draws do not fill .* without num_samples"
        ):
            integrands(some["tau"], SAMPLE)


class TestParts:
    @pytest.mark.parametrize(
        ("index", "chains", "draws"),
        [
            ((slice(None), slice(10)), [0, 1, 2], range(10)),
            (1, [1], range(40)),
            ((-1, -1), [2], [39]),
            (([0, 2], slice(5, None, 7)), [0, 2], range(5, 40, 7)),
            ((slice(None), np.arange(40) % 2 == 0), [0, 1, 2], range(0, 40, 2)),
        ],
    )
    def test_everything_is_cut(self, index, chains, draws) -> None:
        cut = np.ix_(list(chains), list(draws))
        part = SAMPLE[index]
        for field in ("draws", "scores", "diverging", "log_density"):
            np.testing.assert_array_equal(getattr(part, field), getattr(SAMPLE, field)[cut])
        np.testing.assert_array_equal(part.variables["theta"], THETA[cut])
        np.testing.assert_array_equal(part.variables["log_likelihood/y"], X[..., :2][cut] ** 2)
        weights = SAMPLE.weights[cut]
        np.testing.assert_allclose(part.weights, weights / weights.mean(), rtol=1e-12)
        assert part.names == SAMPLE.names
        assert integrands("theta", part).names[1] == "theta[Deer]"
        np.testing.assert_array_equal(part.variables.tree["observed_data"]["y"], [0, 1])
        both = index if isinstance(index, tuple) else (index,)
        names = dict(zip(("chain", "draw"), both, strict=False))
        np.testing.assert_array_equal(SAMPLE.isel(**names).draws, part.draws)

    def test_space_and_precision_are_kept(self) -> None:
        inside = 0.1 + 0.8 * np.random.default_rng(1).uniform(size=(2, 30, 1))
        box = sx.spaces.Box(0.0, 1.0)
        part = sx.Sample(inside, inside, dtype=np.float32, space=box)[:, :10]
        assert part.space is box
        assert part.dtype == np.float32

    def test_chains_come_one_by_one(self) -> None:
        assert [part.draws.shape for part in SAMPLE] == [(1, 40, 4)] * 3

    @pytest.mark.parametrize(
        ("index", "kind", "message"),
        [
            ("tau", TypeError, r"sample\[:, :500\].*estimate"),
            ((0, 0, 0), TypeError, r"sample\[:, :500\]"),
            (3, IndexError, "from 0 to 2"),
            ((slice(None), slice(0)), ValueError, "keep one or more"),
            ((slice(None), np.ones((3, 40), bool)), IndexError, "40 flags"),
        ],
    )
    def test_mistakes(self, index, kind: type, message: str) -> None:
        with pytest.raises(kind, match=message):
            SAMPLE[index]
