"""A matrix that grows with the tails of Student's t, against the identity, on the same draws.

Figures are shares of the variance of f that are left on draws which nothing was fitted to: a geometric mean
over the integrands and the rounds, a round being another sample.
"""

from collections.abc import Callable

import numpy as np

import steinax as sx
from steinax.contrib import Diffusion, GrowingMatrix

from ..problems import student

N, FRESH, ROUNDS = 1000, 9000, 10
FREEDOM = (3.0, 5.0, 10.0)

type Make = Callable[[sx.operators.AbstractOperator], sx.families.AbstractFamily]


def _kernel(operator: sx.operators.AbstractOperator) -> sx.families.AbstractFamily:
    return sx.KernelTranslates(operator=operator)


FAMILIES: dict[str, tuple[Make, bool]] = {  # and whether it is one of fields
    "Polynomial(1)": (lambda operator: sx.Polynomial(1, operator), False),
    "Polynomial(2)": (lambda operator: sx.Polynomial(2, operator), False),
    "KernelTranslates": (_kernel, True),
}
INTEGRANDS = {"x0": slice(0, 1), "others": slice(1, 4)}


def measure(only: str | None = None, rounds: int | None = None) -> list[dict]:
    """What each matrix leaves, for each target and family; `only` is a word in the target's name."""
    return [
        row
        for freedom in FREEDOM
        if only is None or only in f"t({freedom:g})"
        for family in FAMILIES
        for row in _rows(freedom, family, rounds or ROUNDS)
    ]


def _rows(freedom: float, family: str, rounds: int) -> list[dict]:
    make, on_fields = FAMILIES[family]
    plain = sx.Langevin() if on_fields else sx.ScalarLangevin()
    # 1 + |x|^2 / freedom, in units of the standard deviations
    growing = Diffusion(GrowingMatrix(1 / (freedom - 2)), on_fields)
    left = [
        np.log([_left(freedom, make(one), seed) for seed in range(rounds)])
        for one in (plain, growing)
    ]
    rows = []
    for name, some in INTEGRANDS.items():
        identity, grown = (float(np.exp(one[:, some].mean())) for one in left)
        shares = {"identity": float(f"{identity:.2g}"), "growing": float(f"{grown:.2g}")}
        gain = float(f"{identity / grown:.2g}")
        rows.append(
            {"target": f"t({freedom:g})", "family": family, "integrand": name}
            | shares
            | {"gain": gain}
        )
    return rows


def _left(freedom: float, family: sx.families.AbstractFamily, seed: int) -> np.ndarray:
    """What is left of the variance of each integrand, on the draws past the first N."""
    problem = student(freedom)
    x = problem.draw(np.random.default_rng(seed), N + FRESH)
    score, values = problem.score(x), list(problem.values(x).values())
    f = np.stack(values, axis=-1)[:, :4]
    named = {f"f{i}": f[None, :N, i] for i in range(f.shape[1])}
    g = sx.fit(named, sx.Sample(x[None, :N], score[None, :N]), family)
    residual = f[N:] - g(x[N:], score[N:])
    return residual.var(axis=0) / f[N:].var(axis=0)
