"""Hypothesis strategies for valid and invalid samples and integrands: `pip install steinax[checks]`.

>>> from hypothesis import given, settings
>>> import steinax as sx
>>> from steinax.checks import outcome, strategies
>>> @settings(max_examples=5, derandomize=True, deadline=None)
... @given(strategies.arrays(shapes=[(2, 20, 1)]))
... def test_first_coordinate(draws_and_scores):
...     outcome(lambda: sx.estimate("x", sx.Sample(*draws_and_scores), sx.Polynomial(1)))
>>> test_first_coordinate()
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from .._require import require
from ..data import Sample
from ._bad_input import Input, frozen

if TYPE_CHECKING:
    from hypothesis import strategies as st
else:
    st = require("hypothesis.strategies", extra="checks")

type Shapes = Sequence[Any]  # of (chains, draws, dimensions)
type Draw = Callable[..., Any]  # the first argument of a composite strategy
type DrawsAndScores = tuple[Any, Any]

# Few, because each shape is compiled; they include short and single chains.
SHAPES: Shapes = ((1, 20, 1), (2, 8, 2), (4, 20, 3), (4, 3, 1), (2, 1, 2), (1, 2, 1), (8, 1, 2))
DTYPES = (np.float64, np.float64, np.float32)
TAILS = ("normal", "student", "lognormal", "uniform")


@st.composite
def arrays(draw: Draw, shapes: Shapes = SHAPES) -> tuple[np.ndarray, np.ndarray]:
    """Generate draws and scores of any scale, correlated, autocorrelated, with light or heavy tails."""
    chains, length, dim = draw(st.sampled_from(shapes))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    noise = _noise(rng, draw(st.sampled_from(TAILS)), (chains, length, dim))
    memory = draw(st.sampled_from([0.0, 0.5, 0.95, -0.5]))
    for i in range(1, length):
        noise[:, i] = memory * noise[:, i - 1] + np.sqrt(1 - memory**2) * noise[:, i]
    mixing = np.eye(dim) + draw(st.sampled_from([0.0, 0.9])) * np.tri(dim, k=-1)
    scale = 10.0 ** np.array(draw(st.lists(st.integers(-3, 3), min_size=dim, max_size=dim)))
    shift = draw(st.sampled_from([0.0, 1.0, -1e3]))
    factor = scale[:, None] * mixing
    return noise @ factor.T + shift, -noise @ np.linalg.inv(factor)


def _noise(rng: np.random.Generator, tails: str, shape: tuple[int, int, int]) -> np.ndarray:
    match tails:
        case "student":
            return rng.standard_t(2.5, size=shape)
        case "lognormal":
            return np.exp(rng.normal(size=shape))
        case "uniform":
            return rng.uniform(-1.0, 1.0, size=shape)
    return rng.normal(size=shape)


@st.composite
def samples(draw: Draw, shapes: Shapes = SHAPES) -> Sample:
    """Generate valid samples, some of them very small: see `arrays`."""
    x, score = draw(arrays(shapes))
    return Sample(x, score, dtype=draw(st.sampled_from(DTYPES)))


def _set(value: float) -> Callable[[np.ndarray, np.random.Generator], np.ndarray]:
    def change(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        array = array.copy()
        array[tuple(rng.integers(array.shape))] = value
        return array

    return change


def _xarray(array: np.ndarray) -> Any:
    import xarray

    return xarray.DataArray(array, dims=("chain", "draw", "dim"))


# Functions of an array and a random generator; True: an error is the only right answer.
CHANGES: dict[str, tuple[Callable[..., Any], bool]] = {
    "NaN": (_set(np.nan), True),
    "infinite": (_set(np.inf), True),
    "minus infinity": (_set(-np.inf), True),
    "complex": (lambda a, _: a + 1j, True),
    "boolean": (lambda a, _: a > 0, True),
    "texts": (lambda a, _: a.astype(str), True),
    "objects": (lambda a, _: a.astype(object), True),
    "one axis": (lambda a, _: a.ravel(), True),
    "four axes": (lambda a, _: a[None], True),
    "empty": (lambda a, _: a[:, :0], True),
    "None": (lambda a, _: None, True),
    "ragged": (lambda a, _: [*a.tolist(), [1.0]], True),
    "masked": (lambda a, _: np.ma.array(a, mask=np.ones(a.shape, bool)), True),
    "integers": (lambda a, _: np.round(a).astype(int), False),
    "float32": (lambda a, _: a.astype(np.float32), False),
    "Fortran order": (lambda a, _: np.asfortranarray(a), False),
    "read-only": (lambda a, _: frozen(a), False),
    "lists": (lambda a, _: a.tolist(), False),
    "xarray": (lambda a, _: _xarray(a), False),
    "one outlier": (_set(1e8), False),
    "zeros": (lambda a, _: 0 * a, False),
    "huge": (lambda a, _: a * 1e150, False),
    "tiny": (lambda a, _: a * 1e-150, False),
    "immense": (lambda a, _: a * 1e290, False),
}
# Functions of draws and scores; True: an error is the only right answer.
JOINT: dict[str, tuple[Callable[[np.ndarray, np.ndarray], DrawsAndScores], bool]] = {
    "equal chains": (lambda x, s: (_first(x, 0), _first(s, 0)), False),
    "chains that never move": (lambda x, s: (_first(x, 1), _first(s, 1)), False),
    "doubled draws": (lambda x, s: (_doubled(x), _doubled(s)), False),
    "a constant dimension": (lambda x, s: (_constant(x), s), True),
    "equal dimensions": (lambda x, s: (_first(x, 2), _first(s, 2)), False),
    "a score too few": (lambda x, s: (x, s[:, 1:]), True),
    "a dimension too many": (lambda x, s: (np.concatenate([x, x], axis=2), s), True),
    "huge, with tiny scores": (lambda x, s: (x * 1e150, s * 1e-150), False),
    "tiny, with huge scores": (lambda x, s: (x * 1e-150, s * 1e150), False),
    "scores one draw late": (lambda x, s: (x, np.roll(s, 1, axis=1)), False),
    "scores of the wrong sign": (lambda x, s: (x, -s), False),
}


def _first(array: np.ndarray, axis: int) -> np.ndarray:
    return np.repeat(np.take(array, [0], axis=axis), array.shape[axis], axis=axis)


def _doubled(array: np.ndarray) -> np.ndarray:
    return array.repeat(2, axis=1)[:, : array.shape[1]]


def _constant(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array[..., -1] = 1.5
    return array


@st.composite
def odd_samples(draw: Draw, shapes: Shapes = SHAPES) -> Input:
    """Generate unusual or invalid samples, each with a name and whether it must be refused."""
    x, score = draw(arrays(shapes))
    if draw(st.booleans()):
        name = draw(st.sampled_from(sorted(JOINT)))
        change, refuse = JOINT[name]
        pair = change(x, score)
        return Input(name, lambda: Sample(*pair), refuse=refuse)
    name = draw(st.sampled_from(sorted(CHANGES)))
    change, refuse = CHANGES[name]
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    where = draw(st.sampled_from(["draws", "scores", "both"]))
    first = change(x, rng) if where != "scores" else x
    second = change(score, rng) if where != "draws" else score
    return Input(f"{name} {where}", lambda: Sample(first, second), refuse=refuse)


def _raises(x: Any) -> Any:
    raise ArithmeticError("this integrand does not work")


FUNCTIONS: dict[str, tuple[Any, bool]] = {
    "first": (lambda x: x[0], False),
    "square": (lambda x: x[0] ** 2, False),
    "all": (lambda x: x, False),
    "sine": (lambda x: jnp.sin(x[0]), False),
    "indicator": (lambda x: x[0] > 0, False),
    "integer": (lambda x: jnp.floor(x[0]).astype(int), False),
    "constant": (lambda x: 1.5, False),
    "zero": (lambda x: 0 * x[0], False),
    "huge": (lambda x: 1e140 * jnp.tanh(x[0]), False),
    "exponential": (lambda x: jnp.exp(x[0]), False),
    "logarithm": (lambda x: jnp.log(x[0]), False),
    "NumPy": (lambda x: np.cos(np.asarray(x)), False),
    "an if": (lambda x: 1.0 if x[0] > 0 else 0.0, False),
    "a name": ("x", False),
    "names": (["x[0]"], False),
    "a dict": ({"a": "x[0]", "b": lambda x: x[0] ** 2}, False),
    "immense": (lambda x: 1e300 * (2 + jnp.tanh(x[0])), True),
    "minute": (lambda x: 1e-300 * (2 + jnp.tanh(x[0])), False),  # exactly 0 in float32
    "NaN": (lambda x: x[0] * jnp.nan, True),
    "infinite": (lambda x: x[0] + jnp.inf, True),
    "complex": (lambda x: x[0] * 1j, True),
    "raises": (_raises, True),
    "None": (lambda x: None, True),
    "a tuple": (lambda x: (x[0], x[0]), True),
    "a text": (lambda x: "x", True),
    "nothing": (lambda x: x[:0], True),
    "no function": (None, True),
    "a number": (2.0, True),
    "unknown": ("nobody", True),
    "empty": ({}, True),
    "a short array": (np.zeros((3, 3)), True),
    "objects": (np.array([[None]]), True),
}


def integrands() -> st.SearchStrategy[tuple[str, Any, bool]]:
    """Generate integrands with a name and whether they must be refused."""
    return st.sampled_from(sorted(FUNCTIONS)).map(lambda name: (name, *FUNCTIONS[name]))


@st.composite
def inputs(draw: Draw, shapes: Shapes = SHAPES) -> Input:
    """Generate pairs of a sample and an integrand, valid or not, as input of an estimate."""
    given: Input | None = draw(st.one_of(st.none(), odd_samples(shapes)))
    if given is None:
        (x, score), dtype = draw(arrays(shapes)), draw(st.sampled_from(DTYPES))
        given = Input("a sample", lambda: Sample(x, score, dtype=dtype))
    name, f, refuse = draw(integrands())
    return Input(f"{given.name}; f: {name}", given.sample, f, refuse or given.refuse)
