"""What contrib is built on: public names only, and an estimate from held-out residuals."""

import ast
from pathlib import Path

import jax
import numpy as np
import pytest

import steinax as sx

CONTRIB = Path(sx.contrib.__file__).parent


@pytest.mark.parametrize("path", sorted(CONTRIB.glob("*.py")), ids=lambda path: path.name)
def test_contrib_imports_public_names_only(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            assert not any(name.name.startswith("steinax") for name in node.names)
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            assert not str(node.module).startswith("steinax"), ast.unparse(node)
        if isinstance(node, ast.ImportFrom) and node.level == 2:
            assert not str(node.module).startswith("_"), ast.unparse(node)
            home = getattr(sx, str(node.module))
            offered = getattr(home, "__all__", [name for name in vars(home) if name[0] != "_"])
            assert {name.name for name in node.names} <= set(offered), ast.unparse(node)


def test_an_estimate_from_held_out_residuals_is_that_of_the_cross_fit() -> None:
    x = np.random.default_rng(0).normal(size=(4, 100, 2))
    sample, family, split = sx.Sample(x, -x), sx.Polynomial(2), sx.CrossFit()
    wanted = sx.data.integrands({"cube": x[..., 0] ** 3, "sine": np.sin(x[..., 1])}, sample)
    known = sx.estimate(wanted, sample, family, split=split, solver=sx.Exact(), audit="off")
    folds = split.boundaries(4, 100)
    with jax.enable_x64(True):
        problem, _ = sx.solvers.prepare(wanted, sample, family, None, None)
        held = sx.Exact().crossfit(problem, folds)
    found = sx.Estimate.from_held_out(held, wanted, known.chosen)
    for name in ("value", "mcse", "plain_value", "plain_mcse", "worth", "ess", "batches"):
        assert np.allclose(getattr(found, name), getattr(known, name), rtol=1e-10), name
    assert (found.names, found.chosen) == (known.names, known.chosen)
    assert f"{len(folds)} folds, {found.note}" == known.note


def test_a_failed_audit_is_raised_or_told() -> None:
    x = np.random.default_rng(0).normal(size=(4, 250, 2))
    wrong = sx.Sample(x, 3 * x)
    with pytest.raises(sx.AuditError):
        sx.auditing.audited(wrong, "raise")
    with pytest.warns(sx.AuditWarning):
        report = sx.auditing.audited(wrong, "warn")
    assert report is not None
    assert not report.passed
    assert sx.auditing.audited(wrong, "off") is None
    est = sx.estimate("x", wrong, sx.Polynomial(1), audit="off")
    assert sx.estimation.with_audit(est, report, "off").audit is report
