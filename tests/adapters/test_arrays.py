"""Samples from arrays, with the model's own quantities."""

import arviz_base
import numpy as np
import pytest

import steinax as sx
from steinax import checks

X = np.random.default_rng(0).normal(size=(4, 100, 2))
THETA = np.exp(X)


def test_it_keeps_the_contract_of_adapters() -> None:
    checks.check_adapter(
        lambda: sx.from_arrays(X, -X, ["a", "b"], variables={"theta": THETA}),
        chains=4,
        length=100,
        dim=2,
        names=("a", "b"),
        log_density=lambda x: -0.5 * float(x @ x),
    )


@pytest.mark.parametrize("kind", ["dict", "dataset", "tree", "labelled"])
def test_variables_of_every_kind(kind: str) -> None:
    dataset = arviz_base.dict_to_dataset({"theta": THETA})
    variables = {
        "dict": {"theta": THETA},
        "dataset": dataset,
        "tree": arviz_base.from_dict({"posterior": {"theta": THETA}}),
        "labelled": {"theta": dataset["theta"]},
    }[kind]
    sample = sx.from_arrays(X, -X, variables=variables)
    found = sx.data.integrands("theta", sample)
    assert found.names == ("theta[0]", "theta[1]")
    np.testing.assert_array_equal(found.values, THETA)


def test_divergences_and_names_are_kept() -> None:
    sample = sx.from_arrays(X, -X, ["a", "b"], diverging=np.zeros((4, 100), bool))
    assert sample.names == ("a", "b")
    assert sample.diverging is not None


def test_axes_of_variables_have_names_and_labels() -> None:
    sample = sx.from_arrays(
        *(X, -X),
        variables={"theta": THETA},
        dims={"theta": ["site"]},
        coords={"site": ["near", "far"]},
    )
    assert sx.data.integrands("theta", sample).names == ("theta[near]", "theta[far]")


def test_misspelt_axes_are_named_and_entries_of_other_variables_ignored() -> None:
    def read(dims: dict, coords: dict) -> sx.Sample:
        return sx.from_arrays(X, -X, variables={"theta": THETA}, dims=dims, coords=coords)

    with pytest.raises(ValueError, match="`dims` has an entry for 'thetas': write 'theta'"):
        read({"thetas": ["site"]}, {"site": ["near", "far"]})
    with pytest.raises(ValueError, match="`coords` has an entry for 'sites': write 'site'"):
        read({"theta": ["site"]}, {"sites": ["near", "far"]})
    sample = read({"theta": ["site"], "y": ["year"]}, {"site": ["near", "far"], "year": [1, 2, 3]})
    assert sx.data.integrands("theta", sample).names == ("theta[near]", "theta[far]")


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match=r"'tau' has shape \(100,\): give each variable as"):
        sx.from_arrays(X, -X, variables={"theta": THETA, "tau": THETA[0, :, 0]})
    with pytest.raises(ValueError, match="2 names for 2 dimensions, 'a' more than once"):
        sx.from_arrays(X, -X, ["a", "a"])
