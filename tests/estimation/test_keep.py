"""What was kept of a stream answers one question: any other is refused."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import xarray

import steinax as sx
from steinax.working import OtherRunError

X = np.random.default_rng(0).normal(size=(2, 600, 2))


def _stream(tau: float = 1.0, names: tuple[str, ...] = ("a", "b")) -> sx.Stream:
    held = xarray.Dataset({"tau": (("chain", "draw"), tau * np.exp(X[..., 0]))})
    return sx.Stream.from_arrays(X, -X, names, variables=held)


def _beyond(height: float) -> Callable:
    return lambda x: jnp.where(jnp.abs(x[0]) > 3, height, 0.001)


CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "where no draw of the first eight is": ({"f": _beyond(0.001)}, {"f": _beyond(400.0)}),
    "names": ({"f": "a"}, {"f": "a", "sample": _stream(names=("b", "a"))}),
    "variables": ({"f": "tau"}, {"f": "tau", "sample": _stream(10.0)}),
    "variables of functions": (
        {"f": lambda tau: tau},
        {"f": lambda tau: tau, "sample": _stream(10.0)},
    ),
    "draws": ({"f": "a"}, {"f": "a", "sample": sx.Stream.from_arrays(X + 1, -X, ("a", "b"))}),
    "scores": ({"f": "a"}, {"f": "a", "sample": sx.Stream.from_arrays(X, 1 - X, ("a", "b"))}),
    "family": ({"f": "a"}, {"f": "a", "family": sx.Polynomial(1)}),
    "split": ({"f": "a"}, {"f": "a", "split": sx.CrossFit(4)}),
    "penalty": ({"f": "a"}, {"f": "a", "penalty": sx.Ridge(1e-3)}),
}


@pytest.mark.parametrize("what", CHANGES)
def test_another_question_is_refused(what: str, tmp_path: Path) -> None:
    one, other = ({"sample": _stream(), "audit": "off"} | change for change in CHANGES[what])
    first = sx.estimate(**one, keep=tmp_path)
    again = sx.estimate(**one, keep=tmp_path)
    np.testing.assert_array_equal(again.value, first.value)
    with pytest.raises(OtherRunError):
        sx.estimate(**other, keep=tmp_path)


def test_a_function_that_has_no_fingerprint_is_refused_before_anything_is_read(
    tmp_path: Path,
) -> None:
    lock = threading.Lock()
    f = {"locked": lambda x: x[0] if lock.locked() else x[1]}
    with pytest.raises(TypeError, match="leave `keep` out"):
        sx.estimate(f, _stream(), keep=tmp_path)
    assert not list(tmp_path.iterdir())
    assert np.isfinite(sx.estimate(f, _stream()).value).all()
