"""The log evidence with control variates and without, by four methods.

From two data sets, and for a model whose evidence is known.
"""

import numpy as np

import steinax as sx

from ._regression import Regression
from ._van_der_pol import chains, particles, truth

METHODS = (
    sx.tempering.ThermodynamicIntegration(),
    sx.tempering.Trapezium(),
    sx.tempering.SteppingStones(1.0),
    sx.tempering.SteppingStones(),
)
TEMPERATURES, DRAWS, FEW, ROUNDS = 11, 400, 100, 50
FAMILY = sx.Polynomial(2) + sx.KernelTranslates()  # of few draws


def measure(only: str | None = None, rounds: int | None = None) -> list[dict]:
    """A row for each problem and method. A mean over replicates stands for one number where there are any.

    Args:
        only: a part of a problem's name.
        rounds: replicates of the regression.
    """
    rounds = ROUNDS if rounds is None else rounds
    problems = {
        "regression": lambda method: _replicates(method, rounds),
        "regression, few draws": lambda method: _few(method, rounds // 4, 0),
        "regression, few draws, neighbours": lambda method: _few(method, rounds // 4, 1),
        "van der Pol, chains": lambda method: _data_set(chains, method),
        "van der Pol, particles": lambda method: _data_set(particles, method),
    }
    return [
        {"problem": name, **row(method)}
        for name, row in problems.items()
        if only is None or only in name
        for method in METHODS
    ]


def replicates(
    method: sx.tempering.AbstractMethod, rounds: int, draws: int = DRAWS, **options
) -> list[sx.tempering.Evidence]:
    """The evidence of the regression from independent draws, again and again."""
    model, temperatures = Regression(), np.linspace(0, 1, TEMPERATURES) ** 4
    return [
        sx.evidence(model.tempered(temperatures, draws, seed), method=method, **options)
        for seed in range(rounds)
    ]


def _replicates(method: sx.tempering.AbstractMethod, rounds: int, **options) -> dict:
    found, exact = replicates(method, rounds, **options), Regression().log_evidence
    return _row(found, exact, np.var([one.plain_value for one in found], ddof=1))


def _few(method: sx.tempering.AbstractMethod, rounds: int, neighbours: int) -> dict:
    """With few draws at each temperature, and a kernel that is fitted to those of its neighbours too."""
    settings = {"draws": FEW, "family": FAMILY, "neighbours": neighbours}
    return _replicates(method, max(rounds, 3), **settings)


def _data_set(read, method: sx.tempering.AbstractMethod) -> dict:
    return _row([sx.evidence(read(), method=method)], truth(), None)


def _row(found: list[sx.tempering.Evidence], exact: float, plain: float | None) -> dict:
    """Errors against the truth, as root mean squares; the gain is a ratio of variances."""
    value = np.array([one.value for one in found])
    plain_value = np.array([one.plain_value for one in found])
    gain = found[0].worth if plain is None else plain / np.var(value, ddof=1)
    inside = [one.interval()[0] <= exact <= one.interval()[1] for one in found]
    return {
        "method": found[0].method,
        "truth": exact,
        "value": float(value.mean()),
        "error": _size(value - exact),
        "mcse": _size([one.mcse for one in found]),
        "quadrature": float(np.median([one.quadrature_error for one in found])),
        "plain error": _size(plain_value - exact),
        "plain mcse": _size([one.plain_mcse for one in found]),
        "gain": float(gain),
        "covered": float(np.mean(inside)),
    }


def _size(values) -> float:
    return float(np.sqrt(np.mean(np.square(values))))
