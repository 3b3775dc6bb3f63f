"""Every row of the table in docs/math.md is run: the paper's methods, as steinax expressions."""

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import steinax as sx

PAGE = Path(__file__).parents[2] / "docs" / "math.md"
ROW = re.compile(r"^\| (?P<name>.+?) \| `(?P<code>sx\..+)` \|$", re.MULTILINE)
ROWS = [(m["name"], m["code"]) for m in ROW.finditer(PAGE.read_text(encoding="utf-8"))]


@pytest.fixture(scope="module")
def sample() -> sx.Sample:
    return banana(5)


def f(x):
    return x[0] + 0.3 * jnp.sin(x[1])


def truth() -> float:
    """E[f] by Gauss-Hermite quadrature: x[1] is a normal plus half of another's square less one."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    second = nodes[:, None] + 0.5 * (nodes**2 - 1)
    return 0.3 * float(weights @ np.sin(second) @ weights)


def banana(seed: int) -> sx.Sample:
    """4 chains of 100 exact draws, with their scores."""
    x = np.random.default_rng(seed).normal(size=(4, 100, 2))
    x[..., 1] += 0.5 * (x[..., 0] ** 2 - 1)
    bend = x[..., 1] - 0.5 * (x[..., 0] ** 2 - 1)
    return sx.Sample(x, np.stack([-x[..., 0] + bend * x[..., 0], -bend], axis=-1))


def left_of(result: sx.Estimate | sx.ControlVariate) -> float:
    """The share of the variance that a control variate leaves, a fitted one on draws of its own."""
    if isinstance(result, sx.Estimate):
        return float(np.var(result.batches) / np.var(result.plain_batches))
    others = banana(6)
    values = sx.data.integrands(f, others).values
    return float(np.var(values - result(others.draws, others.scores)) / np.var(values))


def test_the_table_is_there():
    assert len(ROWS) >= 28


def row(name: str, code: str):
    trained = "Stochastic" in code or "Network" in code  # compiled for longer than they run
    return pytest.param(name, code, id=name, marks=[pytest.mark.slow] if trained else [])


@pytest.mark.parametrize(("name", "code"), [row(*one) for one in ROWS])
def test_row(name, code, sample):
    """It runs, is right within six plain standard errors (1e-8), and leaves less than the plain average."""
    names = {"sx": sx, "jax": jax, "jnp": jnp, "optax": optax, "f": f, "sample": sample}
    result = eval(code, names)
    value = result.value if isinstance(result, sx.Estimate) else result.intercept
    plain = sx.chains.chain_statistics(sx.data.integrands(f, sample).values)
    assert abs(value[0] - truth()) < 6 * plain.mcse[0]
    assert left_of(result) < 0.7  # a control variate that is zero leaves 1
