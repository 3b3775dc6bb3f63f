from collections.abc import Callable, Iterable, Mapping

import equinox as eqx
import jax
import numpy as np
from numpy.typing import ArrayLike

from .._precision import precision
from .._types import Points, Series
from ._sample import Sample

type Integrand = str | Callable[[jax.Array], ArrayLike] | ArrayLike
type IntegrandSpec = Integrand | Mapping[str, Integrand] | Iterable[str]


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
        f: the name of a dimension (`"mu"`) or of a vector of them (`"beta"` for `beta[0]`,
            `beta[1]`, ...); a function of one draw `x` of shape (dim,), giving a number or an
            array; an array of values that begins (chain, draw); several names; or a dict of any
            of these.
        sample: the draws on which to evaluate them.

    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(2, 50, 3))
    >>> sample = Sample(x, -x, names=["mu", "beta[0]", "beta[1]"])
    >>> integrands({"mu": "mu", "beta": "beta", "norm": lambda x: (x**2).sum()}, sample)
    Integrands(4: mu, beta[0], beta[1], norm)
    """
    if isinstance(f, Integrands):
        if f.values.shape[:2] != (sample.chains, sample.length):
            raise ValueError(
                f"these integrands belong to another sample, of {f.values.shape[0]} chains of "
                f"{f.values.shape[1]} draws, not {sample.chains} of {sample.length}: evaluate them "
                "on this one."
            )
        return f
    if isinstance(f, Mapping):
        named = dict(f)
    elif isinstance(f, str):
        named = {f: f}
    elif isinstance(f, Iterable) and not isinstance(f, (np.ndarray, jax.Array)):
        named = {str(name): name for name in f}
    else:
        named = {"f": f}
    if not named:
        raise ValueError("no integrands given: name a dimension, or give a function or an array.")
    parts = [_evaluate(label, one, sample) for label, one in named.items()]
    values = np.concatenate([values for values, _ in parts], axis=-1)
    names = tuple(name for _, names in parts for name in names)
    if not np.all(np.isfinite(values)):
        bad = names[int(np.argwhere(~np.isfinite(values))[0, 2])]
        raise ValueError(
            f"the integrand {bad!r} is not finite on every draw: its plain average would not be "
            "either. Mend the function, or leave out the draws on which it fails."
        )
    return Integrands(values.astype(sample.dtype, copy=False), names)


def _evaluate(label: str, f: Integrand, sample: Sample) -> tuple[np.ndarray, list[str]]:
    if isinstance(f, str):
        return _by_name(label, f, sample)
    if callable(f):
        with precision(sample.dtype):
            array = _over_draws(f, sample.x)
        array = array.reshape(sample.chains, sample.length, *array.shape[1:])
    else:
        array = np.asarray(f)
        if array.shape[:2] != (sample.chains, sample.length):
            raise ValueError(
                f"the integrand {label!r} has shape {array.shape}, but the sample has {sample.chains} "
                f"chains of {sample.length} draws: its first two axes must be (chain, draw)."
            )
    shape = array.shape[2:]
    names = [_label(label, index) for index in np.ndindex(*shape)]
    return array.reshape(sample.chains, sample.length, -1), names


def _by_name(label: str, name: str, sample: Sample) -> tuple[np.ndarray, list[str]]:
    columns = [i for i, n in enumerate(sample.names) if n == name or n.startswith(name + "[")]
    if not columns:
        raise ValueError(
            f"no dimension is called {name!r}: the sample has {', '.join(sample.names[:10])}"
            f"{', ...' if sample.dim > 10 else ''}. Use one of these, or a function of the draw."
        )
    return sample.draws[..., columns], [label + sample.names[i][len(name) :] for i in columns]


def _over_draws(f: Callable[[jax.Array], ArrayLike], x: Points) -> np.ndarray:
    """Map `f` over the draws by jax, or one by one where `f` is made of NumPy."""
    try:
        return np.asarray(jax.vmap(f)(jax.numpy.asarray(x)))
    except jax.errors.TracerArrayConversionError:
        return np.stack([np.asarray(f(row)) for row in x])


def _label(label: str, index: tuple[int, ...]) -> str:
    return f"{label}[{', '.join(map(str, index))}]" if index else label
