"""A fingerprint is that of the question: the same for the same one, and another for any other."""

import functools
import os
import subprocess
import sys
import threading
import types
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steinax.working._fingerprint import fingerprint

OFFSET = 1.0
OTHER = types.ModuleType("not_installed")  # as a file of the user's would be
OTHER.scale, OTHER.unused = 1.0, threading.Lock()  # type: ignore[attr-defined]


def _scaled(by):
    return lambda x: by * x[0]


def _with_default(by):
    def f(x, by=by, *, also=None):
        return by * x[0]

    return f


def _with_keyword(by):
    def f(x, *, by=by):
        return by * x[0]

    return f


def _helper(x):
    return x + OFFSET


def uses_a_global(x):
    return OFFSET * x[0]


def uses_a_helper(x):
    return _helper(x[0])


def nested(x):
    def inner(y):
        return y + OFFSET

    return inner(x[0])


def uses_a_module(x):
    return OTHER.scale * x[0]  # type: ignore[attr-defined]


def passes_a_module_on(x):
    return vars(OTHER)["scale"] * x[0]


def factorial(n):
    return 1 if n == 0 else n * factorial(n - 1)


@dataclass
class Scaled:
    by: float

    def __call__(self, x):
        return self.by * x[0]

    def method(self, x):
        return self(x)


class Linear(eqx.Module):
    weights: jax.Array
    power: int = eqx.field(static=True, default=1)

    def __call__(self, x):
        return self.weights @ x**self.power


PAIRS = {
    "number": lambda by: by,
    "closure": _scaled,
    "default": _with_default,
    "keyword": _with_keyword,
    "array": lambda by: _scaled(np.array([by, 2.0])),
    "jax array": lambda by: _scaled(jnp.array([by, 2.0])),
    "list": lambda by: _scaled([{"a": (by,)}]),
    "set": lambda by: _scaled({by, 7.0, 8.0}),
    "partial": lambda by: functools.partial(_scaled(1.0), by),
    "object": Scaled,
    "method": lambda by: Scaled(by).method,
    "module": lambda by: Linear(jnp.array([by])),
    "static field": lambda by: Linear(jnp.ones(1), int(by)),
    "compiled": lambda by: jax.jit(_scaled(by)),
    "mapped": lambda by: jax.vmap(_scaled(by)),
    "filtered": lambda by: eqx.filter_jit(Linear(jnp.array([by]))),
    "cached": lambda by: functools.cache(_scaled(by)),
    "wrapped": lambda by: functools.wraps(factorial)(_scaled(by)),
    "random key": lambda by: _scaled(jax.random.key(int(by))),
    "dict subclass": lambda by: OrderedDict(a=by),
}


@pytest.mark.parametrize("make", PAIRS.values(), ids=PAIRS)
def test_values_count_wherever_they_are(make) -> None:
    assert fingerprint(make(1.0)) == fingerprint(make(1.0))
    assert fingerprint(make(1.0)) != fingerprint(make(2.0))


@pytest.mark.parametrize("f", [uses_a_global, uses_a_helper, nested], ids=lambda f: f.__name__)
def test_globals_count_also_those_of_other_functions(f, monkeypatch) -> None:
    before = fingerprint(f)
    monkeypatch.setitem(globals(), "unused", 1.0)
    assert fingerprint(f) == before
    monkeypatch.setitem(globals(), "OFFSET", 2.0)
    assert fingerprint(f) != before


def test_of_a_module_that_is_not_installed_what_is_used_counts(monkeypatch) -> None:
    before = fingerprint(uses_a_module)  # the lock in it is not used
    monkeypatch.setattr(OTHER, "scale", 2.0)
    assert fingerprint(uses_a_module) != before
    with pytest.raises(TypeError, match=r"module not_installed, .* passed on as a whole"):
        fingerprint(passes_a_module_on)


def test_a_module_that_is_closed_over_and_passed_on_is_refused() -> None:
    def closing(module):
        return lambda x: module.scale * x[0] + len(vars(module)), lambda x: module.scale * x[0]

    both, scale = closing(OTHER)
    fingerprint(scale)
    with pytest.raises(TypeError, match="passed on as a whole"):
        fingerprint(both)


def test_code_counts_and_where_it_is_written_does_not() -> None:
    def one(text: str, file: str = "a.py"):
        space: dict = {"jnp": jnp}
        exec(compile(text, file, "exec"), space)
        return space["f"]

    plain = fingerprint(one("def f(x): return jnp.where(jnp.abs(x[0]) > 3, 1.0, 0.0)"))
    assert (
        fingerprint(one("\n\ndef f(x): return jnp.where(jnp.abs(x[0]) > 3, 1.0, 0.0)", "b"))
        == plain
    )
    assert fingerprint(one("def f(x): return jnp.where(jnp.abs(x[0]) > 4, 1.0, 0.0)")) != plain
    assert fingerprint(one("def f(x): return jnp.where(jnp.exp(x[0]) > 3, 1.0, 0.0)")) != plain


def test_a_function_that_has_run_is_the_same() -> None:
    """The interpreter rewrites the code of what runs often."""
    before = fingerprint(factorial)
    for _ in range(1000):
        factorial(5)
    assert fingerprint(factorial) == before


def test_arrays_differ_by_shape_type_and_every_number() -> None:
    x = np.zeros((2, 3))
    others = [x.T, x.astype(np.float32), x.ravel(), np.where(np.arange(3) == 2, -0.0, x)]
    assert len({fingerprint(one) for one in (x, *others)}) == 5
    assert fingerprint("ab", "c") != fingerprint("a", "bc")
    zarr = pytest.importorskip("zarr")
    assert fingerprint(zarr.array(x)) == fingerprint(zarr.array(x))
    assert fingerprint(zarr.array(x)) != fingerprint(zarr.array(x + 1))


@pytest.mark.parametrize(
    "value", [threading.Lock(), (i for i in ()), sys.stdout, memoryview(b"")], ids=type
)
def test_what_has_no_content_is_refused(value) -> None:
    f = _scaled(value)
    with pytest.raises(
        TypeError, match=r"found by way of .*by\) cannot be compared .* leave `keep` out"
    ):
        fingerprint({"name": f})


PROGRAM = """
from working.test_fingerprint import PAIRS, nested, uses_a_helper
from steinax.working._fingerprint import fingerprint
print(fingerprint({name: make(1.0) for name, make in PAIRS.items()}, nested, uses_a_helper))
"""


@pytest.mark.slow
def test_another_process_finds_the_same() -> None:
    paths = [str(Path(__file__).parents[1]), *filter(None, sys.path)]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONHASHSEED": "5"}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=env, check=True, capture_output=True, text=True
    )
    from working.test_fingerprint import PAIRS, nested, uses_a_helper

    here = {name: make(1.0) for name, make in PAIRS.items()}
    assert run.stdout.strip() == fingerprint(here, nested, uses_a_helper)
