from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import numpy as np

from .._types import Series
from ._arrays import ADAPTERS
from ._functions import named_arguments
from ._pieces import Integrand, Piece, piece
from ._sample import Sample
from ._variables import Variables

type IntegrandSpec = Integrand | Mapping[str, Integrand] | Iterable[str]

# Of the square roots of the smallest and largest number: within them a variance can be computed.
LIMITS = np.array([1e4, 1e-4])


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
    found = columns(f, sample)
    return f if isinstance(f, Integrands) else found.read(0, len(found.names))


@dataclass(frozen=True)
class Columns:
    """Integrands that are evaluated, or read, some columns at a time.

    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(2, 50, 3))
    >>> columns({"x": "x", "cube": lambda x: x**3}, Sample(x, -x)).read(2, 4)
    Integrands(2: x[2], cube[0])
    """

    names: tuple[str, ...]
    pieces: tuple[Piece, ...]
    dtype: np.dtype

    @property
    def extra(self) -> int:
        """Bytes that reading takes beside the columns themselves."""
        return max(piece.extra for piece in self.pieces)

    def read(self, start: int, stop: int) -> Integrands:
        """The columns from one number to another."""
        parts, first = [], 0
        for one in self.pieces:
            own = slice(max(start - first, 0), min(stop - first, len(one.names)))
            if own.start < own.stop:
                parts.append(one.read(own))
            first += len(one.names)
        names = self.names[start:stop]
        values = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)
        _check(values, names, self.dtype)
        return Integrands(values.astype(self.dtype, copy=False), names)


def columns(f: IntegrandSpec | Integrands, sample: Sample) -> Columns:
    """Integrands of which nothing is evaluated yet but how many there are.

    Args:
        f: as for `integrands`.
        sample: the draws on which to evaluate them.
    """
    if not isinstance(sample, Sample):
        raise TypeError(_no_sample(f, sample))
    if isinstance(f, Integrands):
        if f.values.shape[:2] != (sample.chains, sample.length):
            raise ValueError(
                f"these integrands belong to another sample, of {f.values.shape[0]} chains of "
                f"{f.values.shape[1]} draws, not {sample.chains} of {sample.length}: evaluate them "
                "on this one."
            )
        made = Piece(f.names, lambda part: np.asarray(f.values)[..., part])
        return Columns(f.names, (made,), sample.dtype)
    named = _named(f)
    if not named:
        raise ValueError("no integrands given: name a dimension, or give a function or an array.")
    pieces = tuple(piece(label, one, sample) for label, one in named.items())
    names = tuple(name for one in pieces for name in one.names)
    if not names:
        raise ValueError("the integrands are empty: each must give at least one number per draw.")
    if _repeats(names):
        twice = min(name for name, count in Counter(names).items() if count > 1)
        raise ValueError(
            f"two integrands are called {twice!r}: give each its own name, in a dict such as "
            '{"first": ..., "second": ...}.'
        )
    return Columns(names, pieces, sample.dtype)


def variables_asked(f: IntegrandSpec, variables: Variables | None) -> dict[str, Any]:
    """The variables of a model that integrands ask for, by name: their values and their labels.

    >>> import numpy as np, xarray
    >>> tau = xarray.Dataset({"tau": (("chain", "draw"), np.ones((1, 2)))})
    >>> variables_asked(lambda tau, x: tau * x, Variables(tau))
    {'tau': (array([[[1.],
            [1.]]]), ['tau'])}
    """
    if variables is None:
        return {}
    asked: list[str] = []
    for one in _named(f).values():
        asked += [one] if isinstance(one, str) else named_arguments(one) if callable(one) else []
    found = {}
    for name in asked:
        try:
            found[name] = variables.labelled(name)
        except KeyError:  # there is no such element, as is said when it is evaluated
            found[name] = None
    return {name: held for name, held in found.items() if held is not None}


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
        if any(callable(one) for one in several):
            raise TypeError(
                'several functions need names: give them in a dict, {"first": ..., "second": ...}, or as '
                "one function that returns an array."
            )
        return {"f": several}
    return {"f": f}


def _no_sample(f: object, sample: object) -> str:
    """What to do about arguments of which the second is no sample."""
    if isinstance(f, Sample):
        return (
            "the integrands come first, and then the sample: estimate(f, sample), where f is a name, a list "
            "of names, a function or a dict. For all parameters use summary(sample)."
        )
    return (
        f"the sample is of type {type(sample).__name__}: give a Sample(draws, scores), after the integrands. "
        f"{ADAPTERS}"
    )


def _repeats(names: Sequence[object]) -> bool:
    return len(set(names)) < len(names)


def _check(values: np.ndarray, names: tuple[str, ...], dtype: np.dtype) -> None:
    """Refuse what has no average: values that are not finite, or whose squares are not."""
    if not np.all(np.isfinite(values)):
        i = int(np.argwhere(~np.isfinite(values))[0, 2])
        bad = np.argwhere(~np.isfinite(values[..., i]))
        raise ValueError(
            f"the integrand {names[i]!r} is not finite on every draw, but NaN or infinite on {len(bad)}, the "
            f"first of them draw {bad[0, 1]} of chain {bad[0, 0]}: its plain average would not be finite "
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
