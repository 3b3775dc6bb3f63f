"""A table of unusual and invalid samples and integrands, and whether each must be refused."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..data import Sample

CHAINS, LENGTH, DIM = 4, 20, 2


@dataclass(frozen=True)
class Input:
    """A sample and an integrand on which an estimator is checked.

    Attributes:
        name: what is unusual or wrong.
        sample: a function that makes the sample; it may raise.
        f: the integrand.
        refuse: whether an error is the only right answer.
        same: whether the answer must equal that for ordinary NumPy arrays.
    """

    name: str
    sample: Callable[[], Sample]
    f: Any = "x"
    refuse: bool = False
    same: bool = False


def gaussian_draws() -> np.ndarray:
    """Draw four chains of twenty draws from a standard Gaussian in two dimensions."""
    return np.random.default_rng(0).normal(size=(CHAINS, LENGTH, DIM))


def _gaussian(change: Callable[[np.ndarray], Any] = lambda x: x, **options: Any) -> Sample:
    x = change(gaussian_draws())
    return Sample(x, -x, **options)


def _both(change: Callable[[np.ndarray], Any]) -> Callable[[], Sample]:
    """Return a function that makes the Gaussian sample with `change` applied to draws and to scores."""
    return lambda: Sample(change(gaussian_draws()), change(-gaussian_draws()))


def _with(array: np.ndarray, value: float) -> np.ndarray:
    array = array.copy()
    array[1, 3, 0] = value
    return array


def frozen(array: np.ndarray) -> np.ndarray:
    """Return a copy that cannot be written to."""
    array = array.copy()
    array.setflags(write=False)
    return array


def _samples() -> Iterator[Input]:
    x = gaussian_draws()
    refused: dict[str, Callable[[], Sample]] = {
        "a draw that is NaN": lambda: Sample(_with(x, np.nan), -x),
        "a score that is NaN": lambda: Sample(x, _with(-x, np.nan)),
        "a draw that is infinite": lambda: Sample(_with(x, np.inf), -x),
        "a score that is infinite": lambda: Sample(x, _with(-x, -np.inf)),
        "fewer scores than draws": lambda: Sample(x, -x[:, :-1]),
        "scores with a dimension too few": lambda: Sample(x, -x[..., :1]),
        "one axis": lambda: Sample(x[0, :, 0], -x[0, :, 0]),
        "four axes": lambda: Sample(x[None], -x[None]),
        "no draws": lambda: Sample(x[:, :0], -x[:, :0]),
        "no dimensions": lambda: Sample(x[..., :0], -x[..., :0]),
        "an empty list": lambda: Sample([], []),
        "rows of different lengths": lambda: Sample([[1.0, 2.0], [3.0]], [[1.0, 2.0], [3.0]]),
        "None": lambda: Sample(None, None),  # type: ignore[arg-type]
        "a text": lambda: Sample("draws", "scores"),  # type: ignore[arg-type]
        "texts": _both(lambda x: x.astype(str)),
        "objects": _both(lambda x: x.astype(object)),
        "complex numbers": _both(lambda x: x + 1j),
        "booleans": _both(lambda x: x > 0),
        "dates": _both(lambda x: x.astype("datetime64[s]")),
        "a mask": lambda: Sample(np.ma.masked_greater(x, 1.0), -x),
        "one draw": partial(_gaussian, lambda x: x[:1, :1]),
        "a constant dimension": partial(_gaussian, lambda x: x * [1.0, 0.0]),
        "names that are not strings": partial(_gaussian, names=[1, 2]),
        "a name for two dimensions": partial(_gaussian, names="ab"),
        "a name twice": partial(_gaussian, names=["a", "a"]),
        "a name too few": partial(_gaussian, names=["a"]),
        "integers for a dtype": partial(_gaussian, dtype=int),
        "a scale of 1e200": lambda: Sample(x * 1e200, -x / 1e200),
        "a scale of 1e-200": lambda: Sample(x * 1e-200, -x / 1e-200),
        "scores of 1e300": lambda: Sample(x, -x * 1e300),
        "draws beyond float32": lambda: Sample(x * 1e50, -x, dtype=np.float32),
    }
    for name, sample in (refused | _weights(x.shape[:2])).items():
        yield Input(name, sample, lambda x: x[0], refuse=True)
    yield from _odd()


def _weights(shape: tuple[int, ...]) -> dict[str, Callable[[], Sample]]:
    return {
        "a weight too few": partial(_gaussian, log_weights=np.zeros(3)),
        "a weight that is NaN": partial(_gaussian, log_weights=np.full(shape, np.nan)),
        "a weight of zero": partial(_gaussian, log_weights=np.full(shape, -np.inf)),
        "weights that are texts": partial(_gaussian, log_weights=np.full(shape, "1")),
    }


def _odd() -> Iterator[Input]:
    """Yield unusual samples that may be answered, and unusual containers that must change nothing."""
    odd: dict[str, Callable[[], Sample]] = {
        "one draw in each chain": partial(_gaussian, lambda x: x[:, :1]),
        "two draws in each chain": partial(_gaussian, lambda x: x[:, :2]),
        "three draws in each chain": partial(_gaussian, lambda x: x[:, :3]),
        "eight chains of one draw": partial(_gaussian, lambda x: x.reshape(-1, 1, DIM)[:8]),
        "one chain": partial(_gaussian, lambda x: x[:1]),
        "a chain that never moves": partial(_gaussian, lambda x: _stuck(x, 1)),
        "chains that never move": partial(_gaussian, lambda x: _stuck(x, CHAINS)),
        "the same chain four times": partial(_gaussian, lambda x: np.repeat(x[:1], CHAINS, axis=0)),
        "every draw five times": partial(_gaussian, lambda x: np.repeat(x[:, :4], 5, axis=1)),
        "two equal dimensions": partial(_gaussian, lambda x: x[..., [0, 0]]),
        "a dimension that moves by rounding": partial(_gaussian, lambda x: 1 + x * [1.0, 1e-16]),
        "a mean of 1e15": lambda: Sample(gaussian_draws() + 1e15, -gaussian_draws()),
        "a scale of 1e150": lambda: Sample(gaussian_draws() * 1e150, -gaussian_draws() / 1e150),
        "a scale of 1e-150": lambda: Sample(gaussian_draws() * 1e-150, -gaussian_draws() / 1e-150),
        "scores that are zero": lambda: Sample(gaussian_draws(), 0 * gaussian_draws()),
        "one outlier": partial(_gaussian, lambda x: _with(x, 1e6)),
        "integers": partial(_gaussian, lambda x: np.round(10 * x).astype(int)),
        "float32": partial(_gaussian, dtype=np.float32),
        "half precision": partial(_gaussian, lambda x: x.astype(np.float16)),
    }
    for name, sample in odd.items():
        yield Input(name, sample, lambda x: x[0] ** 2)
    same: dict[str, Callable[[], Sample]] = {
        "Fortran order": _both(np.asfortranarray),
        "read-only": _both(frozen),
        "lists": _both(np.ndarray.tolist),
        "jax arrays": _from_jax,
        "a mask that hides nothing": lambda: Sample(
            np.ma.masked_greater(gaussian_draws(), 1e9), -gaussian_draws()
        ),
        "xarray": _from_xarray,
    }
    for name, sample in same.items():
        yield Input(name, sample, lambda x: x[0] ** 2, same=True)


def _stuck(x: np.ndarray, count: int) -> np.ndarray:
    x = x.copy()
    x[:count] = x[:count, :1]
    return x


def _from_jax() -> Sample:
    from .._numerics import precision

    with precision(np.float64):
        return Sample(jnp.asarray(gaussian_draws()), jnp.asarray(-gaussian_draws()))


def _from_xarray() -> Sample:
    import xarray

    axes = ("chain", "draw", "dim")
    return Sample(
        xarray.DataArray(gaussian_draws(), dims=axes),
        xarray.DataArray(-gaussian_draws(), dims=axes),
    )


def _raises(x: Any) -> Any:
    raise RuntimeError("this integrand does not work")


def _integrands() -> Iterator[Input]:
    x = gaussian_draws()
    refused: dict[str, Any] = {
        "NaN": lambda x: x[0] * jnp.nan,
        "infinite": lambda x: 1 / (0 * x[0]),
        "complex": lambda x: x[0] + 1j,
        "a complex array": x[..., 0] + 1j,
        "raises": _raises,
        "of no argument": lambda: 1.0,
        "gives None": lambda x: None,
        "gives a text": lambda x: "x",
        "gives a tuple": lambda x: (x[0], x[1]),
        "gives a dict": lambda x: {"a": x[0]},
        "gives nothing": lambda x: x[:0],
        "an unknown name": "nobody",
        "an empty name": "",
        "no integrands": {},
        "no names": [],
        "None": None,
        "a number": 3.0,
        "an array of another length": x[:, :-1, 0],
        "an array without chains": x[0, :, 0],
        "an array with NaN": _with(x, np.nan)[..., 0],
        "an array of texts": x[..., 0].astype(str),
        "an array of objects": x[..., 0].astype(object),
        "a masked array": np.ma.masked_greater(x[..., 0], 1.0),
        "an array of no columns": np.zeros((CHAINS, LENGTH, 0)),
        "a dict of None": {"a": None},
        "a dict in a dict": {"a": {"b": "x"}},
        "two of one name": {"x": "x", "x[0]": "x[0]"},
        "a name twice": ["x[0]", "x[0]"],
        "of size 1e300": lambda x: 1e300 * x[0],
        "of size 1e-300": lambda x: 1e-300 * x[0],
    }
    for name, f in refused.items():
        yield Input(f"an integrand: {name}", _gaussian, f, refuse=True)


def _odd_integrands() -> Iterator[Input]:
    x = gaussian_draws()
    odd: dict[str, Any] = {
        "constant": lambda x: 2.5,
        "zero": lambda x: 0 * x[0],
        "integer": lambda x: jnp.round(3 * x).astype(int),
        "boolean": lambda x: x[0] > 0,
        "a boolean array": x[..., 0] > 0,
        "an integer array": np.round(9 * x[..., 0]).astype(int),
        "of size 1e140": lambda x: 1e140 * x[0],
        "of size 1e-140": lambda x: 1e-140 * x[0],
        "made of NumPy": lambda x: np.sin(np.asarray(x)),
        "with an if": lambda x: 1.0 if x[0] > 0 else 0.0,
        "with a float()": lambda x: float(x[0]) ** 3,
        "a list of lists": x[..., 0].tolist(),
        "a dict with numbers for names": {1: lambda x: x[0]},
        "a set of names": {"x[0]"},
        "a 3 by 2 array": lambda x: jnp.outer(jnp.arange(3.0) + 1, x),
    }
    for name, f in odd.items():
        yield Input(f"an integrand: {name}", _gaussian, f)


def inputs() -> Iterator[Input]:
    """Yield every unusual or invalid input of the table."""
    yield from _samples()
    yield from _integrands()
    yield from _odd_integrands()
