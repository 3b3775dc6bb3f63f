import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np
from numpy.typing import ArrayLike

from .._precision import precision
from .._types import Points, Series
from ._sample import Sample, as_reals
from ._variables import element

type Integrand = str | Callable[..., ArrayLike] | ArrayLike
type IntegrandSpec = Integrand | Mapping[str, Integrand] | Iterable[str]

# Of the square roots of the smallest and largest number: within them a variance can be computed.
LIMITS = np.array([1e4, 1e-4])
# What jax raises for a function that asks for the value of its argument, as NumPy and `if` do.
_NEEDS_VALUES = (
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.ConcretizationTypeError,
)
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Integrands(eqx.Module):
    """The functions whose expectations are wanted, evaluated on every draw.

    >>> import numpy as np
    >>> Integrands(np.zeros((4, 250, 2)), ("a", "b"))
    Integrands(2: a, b)
    """

    values: Series
    names: tuple[str, ...] = eqx.field(static=True)

    def __repr__(self) -> str:
        shown = ", ".join(self.names[:4]) + (", ..." if len(self.names) > 4 else "")
        return f"Integrands({len(self.names)}: {shown})"


def integrands(f: IntegrandSpec | Integrands, sample: Sample) -> Integrands:
    """Evaluate integrands on a sample.

    Args:
        f: the name of a variable of the model (`"tau"`, `"theta[Choate]"`, `"log_likelihood/y"`), of a
            dimension of the draws or of a vector of them (`"beta"` for `beta[0]`, `beta[1]`, ...); a
            function whose arguments are such names, `lambda mu, tau: mu / tau`, or of one draw `x` of
            shape (dim,), giving a number or an array; an array of values that begins (chain, draw);
            several names; or a dict of any of these.
        sample: the draws on which to evaluate them.

    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(2, 50, 3))
    >>> sample = Sample(x, -x, names=["mu", "beta[0]", "beta[1]"])
    >>> integrands({"mu": "mu", "beta": "beta", "norm": lambda x: (x**2).sum()}, sample)
    Integrands(4: mu, beta[0], beta[1], norm)
    """
    if not isinstance(sample, Sample):
        raise TypeError(
            f"the sample is a {type(sample).__name__}: give a Sample(draws, scores), after the integrands."
        )
    if isinstance(f, Integrands):
        if f.values.shape[:2] != (sample.chains, sample.length):
            raise ValueError(
                f"these integrands belong to another sample, of {f.values.shape[0]} chains of "
                f"{f.values.shape[1]} draws, not {sample.chains} of {sample.length}: evaluate them "
                "on this one."
            )
        return f
    named = _named(f)
    if not named:
        raise ValueError("no integrands given: name a dimension, or give a function or an array.")
    parts = [_evaluate(label, one, sample) for label, one in named.items()]
    values = np.concatenate([values for values, _ in parts], axis=-1)
    names = tuple(name for _, names in parts for name in names)
    twice = sorted({name for name in names if names.count(name) > 1}) if _repeats(names) else []
    if twice:
        raise ValueError(
            f"two integrands are called {twice[0]!r}: give each its own name, in a dict such as "
            '{"first": ..., "second": ...}.'
        )
    _check(values, names, sample.dtype)
    return Integrands(values.astype(sample.dtype, copy=False), names)


def _named(f: IntegrandSpec) -> dict[str, Any]:
    """Each integrand under its name."""
    if isinstance(f, Mapping):
        return {str(name): one for name, one in f.items()}
    if isinstance(f, str):
        return {f: f}
    if isinstance(f, Iterable) and not hasattr(f, "__array__"):
        several = list(f)
        if all(isinstance(name, str) for name in several):
            if _repeats(several):
                raise ValueError(f"a name is given twice in {several}: give each once.")
            return {str(name): name for name in several}
        return {"f": several}
    return {"f": f}


def _repeats(names: Sequence[object]) -> bool:
    return len(set(names)) < len(names)


def _check(values: np.ndarray, names: tuple[str, ...], dtype: np.dtype) -> None:
    """Refuse what has no average: values that are not finite, or whose squares are not."""
    if values.shape[-1] == 0:
        raise ValueError("the integrands are empty: each must give at least one number per draw.")
    if not np.all(np.isfinite(values)):
        bad = names[int(np.argwhere(~np.isfinite(values))[0, 2])]
        raise ValueError(
            f"the integrand {bad!r} is not finite on every draw: its plain average would not be "
            "either. Mend the function, or leave out the draws on which it fails."
        )
    size = np.abs(values.astype(np.float64)).max(axis=(0, 1))
    low, high = (
        float(edge) for edge in LIMITS * np.sqrt([np.finfo(dtype).tiny, np.finfo(dtype).max])
    )
    unfit = (size > high) | ((size < low) & (size > 0))
    if unfit.any():
        i = int(np.argmax(unfit))
        raise ValueError(
            f"the integrand {names[i]!r} is as large as {size[i]:.2g}, outside {low:.0e} to {high:.0e}, and "
            f"its variance is beyond {dtype}: give it in other units, such as a multiple of it."
        )


def _evaluate(label: str, f: Integrand, sample: Sample) -> tuple[np.ndarray, list[str]]:
    if isinstance(f, str):
        return _by_name(label, f, sample)
    if callable(f):
        # what overflows, or is no number, is refused below
        with precision(sample.dtype), np.errstate(all="ignore"):
            array = _over_draws(label, f, _arguments(f, sample))
        array = array.reshape(sample.chains, sample.length, *array.shape[1:])
    else:
        array = _reals(label, f)
        if array.shape[:2] != (sample.chains, sample.length):
            raise ValueError(
                f"the integrand {label!r} has shape {array.shape}, but the sample has {sample.chains} "
                f"chains of {sample.length} draws: its first two axes must be (chain, draw)."
            )
    shape = array.shape[2:]
    names = [element(label, index) for index in np.ndindex(*shape)]
    return array.reshape(sample.chains, sample.length, len(names)), names


def _reals(label: str, values: object) -> np.ndarray:
    """An array of real numbers; a boolean counts as 0 or 1."""
    if getattr(getattr(values, "dtype", None), "kind", "") == "b":
        values = np.asarray(values, dtype=np.float64)
    return as_reals(values, f"values of the integrand {label!r}")


def _by_name(label: str, name: str, sample: Sample) -> tuple[np.ndarray, list[str]]:
    found = None if sample.variables is None else sample.variables.labelled(name)
    if found is not None:
        values, names = found
        return _reals(label, values), [label + one[len(name) :] for one in names]
    columns = _columns(name, sample)
    if not columns:
        own = () if sample.variables is None else sample.variables.names
        known = [*own, *(one for one in sample.names if one not in own)]
        raise ValueError(
            f"no variable and no dimension is called {name!r}: the sample has {', '.join(known[:10])}"
            f"{', ...' if len(known) > 10 else ''}. Use one of these, or a function of the draw."
        )
    return sample.draws[..., columns], [label + sample.names[i][len(name) :] for i in columns]


def _columns(name: str, sample: Sample) -> list[int]:
    """The dimensions of the draws that a name stands for: one, or the elements of a vector."""
    return [i for i, n in enumerate(sample.names) if n == name or n.startswith(name + "[")]


def _arguments(f: Callable, sample: Sample) -> Points | dict[str, np.ndarray]:
    """What a function is to be called with on each draw: variables by name, or the draw itself."""
    try:
        signature = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):  # some functions have none
        return sample.x
    names = [p.name for p in signature if p.default is p.empty and p.kind in _NAMED]
    known = {name: _values(name, sample) for name in names}
    missing = [name for name, values in known.items() if values is None]
    if missing and len(names) > 1:
        raise ValueError(
            f"a function of {', '.join(names)}, but the sample has no {', '.join(missing)}: let its "
            "arguments be names of variables, or let it have one, the unconstrained draw x, (dim,)."
        )
    return sample.x if missing or not names else {name: known[name] for name in names}  # type: ignore


def _values(name: str, sample: Sample) -> np.ndarray | None:
    """A variable, or some dimensions of the draws, over all chains: (n, ...)."""
    if sample.variables is not None and name in sample.variables:
        values = np.asarray(sample.variables[name].values)
        return values.reshape(sample.size, *values.shape[2:])
    columns = _columns(name, sample)
    if not columns:
        return None
    return sample.x[:, columns[0] if sample.names[columns[0]] == name else columns]


def _over_draws(label: str, f: Callable, draws: Points | dict[str, np.ndarray]) -> np.ndarray:
    """Map `f` over the draws by jax, or one by one where `f` is made of NumPy or asks for values."""

    def one(row):
        value = f(**row) if isinstance(row, dict) else f(row)
        if value is None or isinstance(value, (str, Mapping, tuple, list)):
            raise TypeError(
                f"the integrand {label!r} gives a {type(value).__name__} for a draw: let it return a number "
                "or an array of numbers."
            )
        return value

    try:
        try:
            return _reals(label, jax.vmap(one)(jax.tree.map(jax.numpy.asarray, draws)))
        except _NEEDS_VALUES:
            n = len(jax.tree.leaves(draws)[0])
            each = (jax.tree.map(lambda values, i=i: values[i], draws) for i in range(n))
            rows = [np.asarray(one(row)) for row in each]
            return _reals(label, [row * 1.0 if row.dtype == bool else row for row in rows])
    except Exception as error:
        what = f"of {', '.join(draws)}" if isinstance(draws, dict) else "of one draw x, (dim,)"
        error.add_note(f"This came from the integrand {label!r}: a function {what}.")
        raise
