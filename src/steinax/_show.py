"""How families, kernels and solvers print: by name, with what was set."""

import dataclasses

import equinox as eqx
import jax
import numpy as np


def describe(module: object) -> str:
    """A module on one line: `Polynomial(2) + KernelTranslates(SquaredExponential(3.1))`.

    Only what differs from the default is shown, and a first number always.

    >>> from steinax import Polynomial
    >>> describe(Polynomial(3) + Polynomial(2))
    'Polynomial(3) + Polynomial(2)'
    """
    terms = getattr(module, "terms", ())
    if len(terms) > 1:
        return " + ".join(describe(term) for term in terms)
    if not isinstance(module, eqx.Module):
        return _plain(module)
    shown, skipped = [], False
    for place, field in enumerate(dataclasses.fields(module)):
        value = getattr(module, field.name)
        if _is_default(field, value) and not (place == 0 and isinstance(value, int)):
            skipped = True
        elif skipped:
            shown.append(f"{field.name}={describe(value)}")
        else:
            shown.append(describe(value))
    return f"{type(module).__name__}({', '.join(shown)})"


def _plain(value: object) -> str:
    if isinstance(value, (np.ndarray, jax.Array)) and value.ndim == 0:
        return f"{float(value):.4g}"
    return getattr(value, "__name__", repr(value))


def _is_default(field: dataclasses.Field, value: object) -> bool:
    default = field.default
    if field.default_factory is not dataclasses.MISSING:
        default = field.default_factory()
    if default is dataclasses.MISSING:
        return False
    if isinstance(value, eqx.Module):
        return type(value) is type(default) and describe(value) == f"{type(value).__name__}()"
    return bool(np.all(value == default)) if not callable(value) else value is default
