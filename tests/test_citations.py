"""What is cited is what was used, and BibTeX can read it."""

import re
from pathlib import Path

import numpy as np
import pytest

import steinax as sx
from steinax.citing import ENTRIES, Reference, _reference, references_of
from steinax.families import AbstractFamily
from steinax.operators import AbstractOperator
from steinax.solvers import AbstractSolver
from steinax.spaces import BirthDeath, Glauber, Multilinear

ROWS = [_reference(entry) for entry in ENTRIES.strip().split("\n\n")]
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


def _keys(used: object = None) -> set[str]:
    return {one.key for one in sx.citations(used).references}


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


def test_an_integrand_of_an_estimate_cites_its_own_candidates(sample: sx.Sample) -> None:
    both = {"x": sample.draws[..., 0], "noise": np.random.default_rng(1).normal(size=(4, 50))}
    estimate = sx.estimate(both, sample)
    assert not _keys(estimate["noise"]) & FAMILIES and _keys(estimate["x"]) & FAMILIES


def test_derived_stored_and_joined_estimates_cite_the_same(sample: sx.Sample) -> None:
    estimate = sx.estimate("x", sample)
    keys = _keys(estimate)
    assert _keys(sx.Estimate.from_dataset(estimate.to_dataset())) == keys
    assert _keys(estimate.derived({"sum": lambda mean: mean["x[0]"] + mean["x[1]"]})) == keys
    family = sx.Polynomial(1)
    blocks = sx.estimate({"x": np.tile(sample.draws, 3000)}, sample, family, memory=7e7)
    assert "blocks of" in blocks.note and _keys(blocks) == _keys(sx.estimate("x", sample, family))


def test_parts_cite_what_they_hold() -> None:
    assert _keys(sx.Polynomial(2)) == {
        "steinax",
        "si2020scalable",
        "assaraf1999zero",
        "mira2013zero",
    }
    assert "chen1975poisson" in _keys(sx.Polynomial(1, operator=BirthDeath()))
    assert "bresler2019stein" in _keys(Multilinear(1, operator=Glauber()))
    assert "williams2001using" in _keys(sx.Nystrom()) and len(sx.citations(sx.Exact())) == 2


@pytest.mark.parametrize(
    "used", [np.zeros(3), "x", sx.Sample(np.ones((1, 2, 1)), np.ones((1, 2, 1)))]
)
def test_what_has_no_references_is_refused(used: object) -> None:
    with pytest.raises(TypeError, match="has no references: give the result of estimate or weigh"):
        sx.citations(used)


def test_the_automatic_solver_cites_the_one_it_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).normal(size=(4, 150, 1))
    monkeypatch.setattr("steinax.solvers._auto.KEPT_ROWS", 550)
    estimate = sx.estimate("x", sx.Sample(x, -x), sx.KernelTranslates(sx.kernels.Matern52(1.0)))
    assert "williams2001using" in _keys(estimate)


def _subclasses(kind: type) -> set[type]:
    return {kind}.union(*(_subclasses(one) for one in kind.__subclasses__()))


@pytest.mark.parametrize("kind", [AbstractFamily, AbstractOperator, AbstractSolver])
def test_every_key_of_a_class_has_an_entry(kind: type) -> None:
    keys = [getattr(one, "references", ()) for one in _subclasses(kind)]
    used = {key for one in keys if isinstance(one, tuple) for key in one}
    assert used and used <= {row.key for row in ROWS}


def test_a_sum_is_more_than_its_terms() -> None:
    apart = references_of(sx.Polynomial(1), sx.KernelTranslates())
    together = references_of(sx.Polynomial(1) + sx.KernelTranslates())
    assert {*together} - {*apart} == {"south2022semi"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.key)
def test_entry_can_be_read(row: Reference) -> None:
    entry = row.bibtex
    assert entry.isascii() and entry.count("{") == entry.count("}")
    first, *fields, last = entry.splitlines()
    assert re.fullmatch(r"@[a-z]+\{[a-z0-9]+,", first) and last == "}"
    assert all(re.fullmatch(r"  [a-z]+ = \{.+|    .+\},", field) for field in fields)
    year = re.search(r"year = \{(\d{4})\}", entry)
    assert year and year[1] in row.key and f"({year[1]})" in str(row)


def test_keys_are_different() -> None:
    assert len({row.key for row in ROWS}) == len(ROWS)


def test_the_paper_cites_as_the_library_does() -> None:
    """An entry of `paper/paper.bib` that the library has too is the same."""
    path = Path(__file__).parents[1] / "paper" / "paper.bib"
    entries = path.read_text(encoding="utf-8").strip().split("\n\n")
    keys = {row.key for row in ROWS}
    shared = [entry for entry in entries if Reference("", entry).key in keys]
    assert len(shared) >= 10
    assert [entry for entry in shared if entry not in ENTRIES] == []
