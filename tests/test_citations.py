"""What is cited is what was used, and BibTeX can read it."""

import re

import numpy as np
import pytest

import steinax as sx
from steinax.citing import Reference, _references

ROWS = [row for row in vars(_references).values() if isinstance(row, Reference)]
FAMILIES = {
    "assaraf1999zero",
    "mira2013zero",
    "south2018regularized",
    "oates2017control",
    "south2022semi",
    "zhu2018neural",
    "rahimi2007random",
}


@pytest.fixture(scope="module")
def sample() -> sx.Sample:
    x = np.random.default_rng(0).normal(size=(4, 50, 2))
    return sx.Sample(x, -x)


def _keys(estimate: sx.Estimate | sx.estimation.WeightedDraws | None = None) -> set[str]:
    return {one.key for one in sx.citations(estimate).references}


def test_without_an_estimate() -> None:
    assert _keys() == {"steinax", "si2020scalable"}
    assert f"Version {sx.__version__}" in str(sx.citations())


@pytest.mark.parametrize(
    ("family", "cited"),
    [
        (sx.Polynomial(1), {"assaraf1999zero", "mira2013zero"}),
        (sx.KernelTranslates(sx.kernels.Matern52(1.0)), {"oates2017control"}),
        (sx.RandomFeatures(8), {"rahimi2007random"}),
        (
            sx.Polynomial(1) + sx.KernelTranslates(sx.kernels.SquaredExponential(1.0)),
            {"assaraf1999zero", "mira2013zero", "oates2017control", "south2022semi"},
        ),
    ],
    ids=["polynomial", "kernel", "random features", "sum"],
)
def test_family(family: sx.families.AbstractFamily, cited: set[str], sample: sx.Sample) -> None:
    keys = _keys(sx.estimate("x", sample, family))
    assert keys & FAMILIES == cited
    assert {"chernozhukov2018double", "vehtari2021rank", "vehtari2024pareto"} <= keys


def test_network_and_solvers(sample: sx.Sample) -> None:
    quick = sx.Stochastic(epochs=1)
    network = sx.estimate("x", sample, sx.Network(2), solver=quick, split=sx.HoldOut(), audit="off")
    keys = _keys(network)
    assert keys & FAMILIES == {"zhu2018neural"}
    assert not keys & {"chernozhukov2018double", "vehtari2024pareto", "defazio2016simple"}
    assert "defazio2016simple" in _keys(sx.estimate("x", sample, sx.Polynomial(1), solver=quick))
    kernel = sx.KernelTranslates(sx.kernels.SquaredExponential(1.0))
    assert "williams2001using" in _keys(sx.estimate("x", sample, kernel, solver=sx.Nystrom()))


def test_weights(sample: sx.Sample) -> None:
    assert _keys(sx.weigh(sample, sx.Polynomial(1))) & FAMILIES == {
        "assaraf1999zero",
        "mira2013zero",
    }


def test_only_candidates_with_a_weight_are_cited(sample: sx.Sample) -> None:
    estimate = sx.estimate("x", sample)
    assert estimate.candidates is not None
    used = np.asarray(estimate.candidates.mixture).any(axis=1)
    names = [n for n, u in zip(estimate.candidates.names, used, strict=True) if u]
    assert not used.all()
    assert ("mira2013zero" in _keys(estimate)) == any("Polynomial" in name for name in names)
    assert len(_keys(estimate) & FAMILIES) > 0


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.key)
def test_entry_can_be_read(row: Reference) -> None:
    entry = row.bibtex
    assert entry.isascii() and entry.count("{") == entry.count("}")
    first, *fields, last = entry.splitlines()
    assert re.fullmatch(r"@[a-z]+\{[a-z0-9]+,", first) and last == "}"
    assert all(re.fullmatch(r"  [a-z]+ = \{.+\},", field) for field in fields)
    assert str(row.year) in row.key and str(row.year) in str(row)


def test_keys_are_different() -> None:
    assert len({row.key for row in ROWS}) == len(ROWS)
