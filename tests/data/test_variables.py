"""The model's own names: variables, elements, groups, and functions of them."""

import arviz_base
import arviz_stats
import jax.numpy as jnp
import numpy as np
import pytest
import xarray

import steinax as sx

RNG = np.random.default_rng(0)
LOG_TAU, THETA, Y = (
    RNG.normal(size=(4, 50)),
    RNG.normal(size=(4, 50, 3)),
    RNG.normal(size=(4, 50, 8)),
)
SCHOOLS = ["Choate", "Deerfield", "Phillips"]


def _tree() -> xarray.DataTree:
    return arviz_base.from_dict(
        {
            "posterior": {"tau": np.exp(LOG_TAU), "theta": THETA},
            "log_likelihood": {"y": Y},
            "observed_data": {"y": np.zeros(8)},
        },
        coords={"school": SCHOOLS},
        dims={"theta": ["school"]},
    )


def _sample() -> sx.Sample:
    x = np.concatenate([LOG_TAU[..., None], THETA], axis=-1)
    names = ["tau_log__", *(f"theta[{i}]" for i in range(3))]
    return sx.Sample(x, -x, names, variables=_tree())


def test_a_name_means_the_constrained_variable() -> None:
    found = sx.data.integrands("tau", _sample())
    np.testing.assert_array_equal(found.values[..., 0], np.exp(LOG_TAU))
    np.testing.assert_array_equal(
        sx.data.integrands("tau_log__", _sample()).values[..., 0], LOG_TAU
    )


def test_elements_are_called_as_arviz_calls_them() -> None:
    found = sx.data.integrands(["tau", "theta"], _sample())
    assert found.names == tuple(arviz_stats.summary(_tree()).index)


@pytest.mark.parametrize("name", ["theta[Deerfield]", "theta[1]"])
def test_an_element_by_label_or_position(name: str) -> None:
    found = sx.data.integrands({"second": name}, _sample())
    assert found.names == ("second",)
    np.testing.assert_array_equal(found.values[..., 0], THETA[..., 1])


def test_labels_come_before_positions() -> None:
    data = xarray.Dataset({"b": (("chain", "draw", "k"), THETA)}, {"k": [2, 1, 0]})
    sample = sx.Sample(THETA, -THETA, variables=data)
    np.testing.assert_array_equal(sx.data.integrands("b[2]", sample).values[..., 0], THETA[..., 0])


def test_log_likelihoods_by_path_and_as_a_group() -> None:
    for name in ("log_likelihood/y", "log_likelihood"):
        found = sx.data.integrands(name, _sample())
        np.testing.assert_array_equal(found.values, Y)
        assert found.names[7] == "log_likelihood/y[7]"
    assert sx.data.integrands("log_likelihood/y[7]", _sample()).values.shape == (4, 50, 1)


def test_functions_of_several_variables() -> None:
    f = {
        "ratio": lambda theta, tau: theta / tau,
        "numpy": lambda tau, *, theta: np.hypot(tau, theta[0]),
    }
    found = sx.data.integrands(f, _sample())
    np.testing.assert_allclose(found.values[..., :3], THETA / np.exp(LOG_TAU)[..., None])
    np.testing.assert_allclose(found.values[..., 3], np.hypot(np.exp(LOG_TAU), THETA[..., 0]))


def test_a_function_of_x_or_of_no_name_gets_the_unconstrained_draw() -> None:
    for f in (lambda x, power=2: jnp.sum(x**power), lambda z, /: jnp.sum(z**2)):
        found = sx.data.integrands({"sum": f}, _sample())
        np.testing.assert_allclose(found.values[..., 0], LOG_TAU**2 + (THETA**2).sum(-1))


def test_a_function_of_another_name_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no rate: it has .*; for the whole .* lambda x: "):
        sx.data.integrands({"P": lambda rate: rate[0] > rate[1]}, _sample())


def test_a_variable_has_no_labels_in_a_function() -> None:
    for label in ("Choate", "tau"):  # another variable's name is a label like any other
        with pytest.raises(ValueError, match=r"gets the variable theta, an array without labels"):
            sx.data.integrands({"one": lambda theta, at=label: theta[at]}, _sample())


def test_columns_are_arguments_too() -> None:
    x = np.stack([LOG_TAU, THETA[..., 0], THETA[..., 1]], axis=-1)
    sample = sx.Sample(x, -x, ["mu", "beta[0]", "beta[1]"])
    found = sx.data.integrands(lambda mu, beta: mu * beta, sample)
    np.testing.assert_allclose(found.values, LOG_TAU[..., None] * THETA[..., :2])


def test_an_unknown_argument_is_named() -> None:
    with pytest.raises(
        ValueError, match=r"a function of tau, sigma, but the sample has no sigma: it has tau"
    ):
        sx.data.integrands(lambda tau, sigma: tau * sigma, _sample())


def test_an_unknown_name_lists_what_there_is() -> None:
    with pytest.raises(ValueError, match=r"'sigma': the sample has tau, theta, tau_log__\. Use"):
        sx.data.integrands("sigma", _sample())
    with pytest.raises(
        KeyError, match=r"has no element \[Eton\]: its elements are theta\[Choate\]"
    ):
        sx.data.integrands("theta[Eton]", _sample())


def test_a_dict_of_arrays_is_sent_to_the_adapter() -> None:
    x = RNG.normal(size=(4, 50, 1))
    with pytest.raises(
        TypeError, match=r"dict of arrays, such as .win.: give it to steinax\.from_arrays"
    ):
        sx.Sample(x, -x, variables={"win": x[..., 0]})


def test_elements_may_be_named_as_in_stan() -> None:
    x = RNG.normal(size=(4, 50, 6))
    sample = sx.from_arrays(x, -x, variables={"m": x.reshape(4, 50, 2, 3)})
    for name in ("m[1, 2]", "m[1,2]"):
        found = sx.data.integrands(name, sample)
        assert found.names == (name,)
        np.testing.assert_array_equal(found.values[..., 0], x[..., 5])


def test_labels_with_commas_stay_as_they_are() -> None:
    x = RNG.normal(size=(4, 50, 2))
    people = {"coords": {"who": ["Smith,Ann", "Smith,Bob"]}, "dims": {"u": ["who"]}}
    sample = sx.from_arrays(x, -x, variables={"u": x}, **people)
    found = sx.data.integrands("u[Smith,Bob]", sample)
    np.testing.assert_array_equal(found.values[..., 0], x[..., 1])


def test_hints_for_functions_of_another_library() -> None:
    with pytest.raises(ValueError, match="gets the variable theta, an array without labels or me"):
        sx.data.integrands(lambda theta: theta.sel(school="Choate"), _sample())
    with pytest.raises(AttributeError) as error:
        sx.data.integrands(lambda theta, tau: theta.sel(school="Choate") + tau, _sample())
    assert "take elements by position" in error.value.__notes__[-1]
    values = sx.data.integrands(lambda theta: theta[theta > -9].mean(), _sample()).values
    np.testing.assert_allclose(values[..., 0], THETA.mean(axis=-1))


def test_blocks_keep_their_variables() -> None:
    blocks = list(_sample().blocks(20))
    assert [block.length for block in blocks[:3]] == [20, 20, 10]
    tau = np.concatenate([sx.data.integrands("tau", block).values for block in blocks], axis=1)
    np.testing.assert_array_equal(tau[0, :, 0], np.exp(LOG_TAU).ravel())


def test_a_stream_estimates_by_name() -> None:
    sample = _sample()
    streamed = sx.estimate("tau", sx.Stream(lambda: sample.blocks(25), chains=4), sx.Polynomial(2))
    np.testing.assert_allclose(streamed.value, sx.estimate("tau", sample, sx.Polynomial(2)).value)


def test_variables_of_other_draws_are_refused() -> None:
    x = RNG.normal(size=(4, 49, 2))
    with pytest.raises(
        ValueError, match=r"\(4, 50\) chains and draws, and the draws \(4, 49\): give"
    ):
        sx.Sample(x, -x, variables=_tree())


def test_what_is_no_tree_is_refused() -> None:
    with pytest.raises(TypeError, match="variables of type list: give a DataTree"):
        sx.data.Variables([1, 2])
    with pytest.raises(ValueError, match=r"hold no 'posterior' with axes \(chain, draw\)"):
        sx.data.Variables(xarray.Dataset({"a": ("k", np.zeros(3))}))


def test_a_variable_as_a_labelled_array() -> None:
    variables = sx.data.Variables(_tree())
    assert variables["theta"].dims == ("chain", "draw", "school")
    assert repr(variables) == "Variables(tau, theta; groups log_likelihood)"
    with pytest.raises(ValueError, match=r"^no variable is called 'sigma': there are tau, theta"):
        variables["sigma"]
