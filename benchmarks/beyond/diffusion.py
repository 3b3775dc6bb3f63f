"""A matrix that is learned with u, constant or varying, against the identity, on the same draws and epochs.

Figures are shares of the variance of f that are left on draws which nothing was fitted to: a geometric mean
over the integrands and the rounds, a round being another sample.
"""

from collections.abc import Callable

import numpy as np

import steinax as sx

from ..posteriors._data import load
from ..problems import Problem, banana, funnel, student

N, FRESH, ROUNDS, INTEGRANDS = 1000, 9000, 3, 4
POSTERIOR = "kilpisjarvi_mod-kilpisjarvi"

type Parts = tuple[np.ndarray, np.ndarray, np.ndarray]  # draws, scores, integrands
type Make = Callable[[sx.operators.AbstractOperator], sx.families.AbstractFamily]


def _network(operator: sx.operators.AbstractOperator) -> sx.families.AbstractFamily:
    return sx.Network(16, 2, operator=operator)


def _kernel(operator: sx.operators.AbstractOperator) -> sx.families.AbstractFamily:
    return sx.KernelTranslates(sx.kernels.SquaredExponential(1.5), sx.Landmarks(100), operator)


FAMILIES: dict[str, tuple[Make, bool]] = {  # and whether it is one of fields
    "Network, fields": (_network, True),
    "Network, potentials": (_network, False),
    "KernelTranslates": (_kernel, True),
}


def measure(only: str | None = None, rounds: int | None = None) -> list[dict]:
    """What each matrix leaves, for each target and family; `only` is a word in the target's name."""
    targets = {one.name: _of_problem(one) for one in (banana(), student(3.0), funnel(1.0))}
    targets[POSTERIOR] = _of_posterior
    rows = [
        _row(target, parts, family, rounds or ROUNDS)
        for target, parts in targets.items()
        if only is None or only in target
        for family in FAMILIES
    ]
    return rows + ([_tails(rounds or ROUNDS)] if only is None or only in "t(3)" else [])


def _row(target: str, parts: Callable[[int], Parts], family: str, rounds: int) -> dict:
    make, on_fields = FAMILIES[family]
    dim = parts(0)[0].shape[1]
    plain = sx.Langevin() if on_fields else sx.ScalarLangevin()
    constant = sx.Diffusion(sx.operators.TriangularMatrix(dim), on_fields)
    varying = sx.Diffusion(sx.operators.NetworkMatrix(dim), on_fields)
    learned = sx.families.Learned
    return _figures(
        target, family, parts, rounds, make(plain), learned(make(constant)), learned(make(varying))
    )


def _tails(rounds: int) -> dict:
    """Student's t, whose score times a matrix that grows is linear."""
    growing = sx.Diffusion(sx.operators.GrowingMatrix(0.3), on_fields=False)
    constant = sx.Diffusion(sx.operators.TriangularMatrix(2), on_fields=False)
    families = (
        sx.Polynomial(1),
        sx.families.Learned(sx.Polynomial(1, constant)),
        sx.families.Learned(sx.Polynomial(1, growing)),
    )
    parts = _of_problem(student(3.0))

    def first(seed: int) -> Parts:
        x, score, f = parts(seed)
        return x, score, f[:, :1]

    return _figures("t(3), x0 alone", "Polynomial(1)", first, rounds, *families)


def _figures(
    target: str,
    family: str,
    parts: Callable[[int], Parts],
    rounds: int,
    *families: sx.families.AbstractFamily,
) -> dict:
    solver = sx.Stochastic(precondition=False)
    left = [
        np.exp(np.mean([np.log(_left(parts(seed), one, solver)) for seed in range(rounds)]))
        for one in families
    ]
    columns = dict(zip(("identity", "constant", "varying"), left, strict=True))
    figures = {name: float(f"{share:.2g}") for name, share in columns.items()}
    gain = float(f"{left[0] / min(left[1:]):.2g}")
    return {"target": target, "family": family} | figures | {"gain by learning": gain}


def _left(parts: Parts, family: sx.families.AbstractFamily, solver: sx.Stochastic) -> np.ndarray:
    """What is left of the variance of each integrand, on the draws past the first N."""
    x, score, f = parts
    named = {f"f{i}": f[None, :N, i] for i in range(f.shape[1])}
    g = sx.fit(named, sx.Sample(x[None, :N], score[None, :N]), family, solver=solver)
    rest = f[N:] - g(x[N:], score[N:])
    return rest.var(axis=0) / f[N:].var(axis=0)


def _of_problem(problem: Problem) -> Callable[[int], Parts]:
    def parts(seed: int) -> Parts:
        x = problem.draw(np.random.default_rng(seed), N + FRESH)
        f = np.stack(list(problem.values(x).values()), axis=-1)
        return x, problem.score(x), f[:, :INTEGRANDS]

    return parts


def _of_posterior(seed: int) -> Parts:
    """The reference draws in another order for each seed."""
    posterior = load(POSTERIOR)
    order = np.random.default_rng(seed).permutation(len(posterior.u))
    return posterior.u[order], posterior.score[order], posterior.f[order, :INTEGRANDS]
