"""A step of `Stochastic` with 1,000 coefficients against two matrix-vector products of NumPy."""

from functools import partial

import numpy as np

import steinax as sx

from .._pinned import best
from ._problems import skewed_sample

COUNT, BATCH, SIZE = 125, 8, 1000  # batches, draws in each, coefficients
BOUND = 1.0


def measure(epochs: int = 2000, rounds: int = 5) -> list[dict]:
    """The marginal step: the time of many epochs less the time of few, over the steps between."""
    sample, f = skewed_sample(COUNT * BATCH, 10)
    family = sx.KernelTranslates()  # one coefficient per draw

    def fit(epochs: int) -> object:
        return sx.fit(f, sample, family, solver=sx.Stochastic(epochs=epochs))

    rng = np.random.default_rng(0)
    blocks = rng.normal(size=(COUNT, BATCH, SIZE))
    w, r = rng.normal(size=SIZE), rng.normal(size=BATCH)
    visits = [int(i) for _ in range(500) for i in rng.permutation(COUNT)]

    def one_block() -> None:
        z = blocks[0]
        for _ in visits:
            z @ w
            z.T @ r

    def in_order() -> None:
        for i in visits:
            z = blocks[i]
            z @ w
            z.T @ r

    few, many = partial(fit, 25), partial(fit, 25 + epochs)
    times = best(rounds, few=few, many=many, one_block=one_block, in_order=in_order)
    ours = 1e6 * (times["many"] - times["few"]) / (epochs * COUNT)
    bare = {name: 1e6 * times[name] / len(visits) for name in ("in_order", "one_block")}
    # the step goes through all blocks, so the bound is for NumPy going through them too
    rows = (("in_order", "blocks in the order of visits", BOUND), ("one_block", "one block", None))
    return [
        {
            "NumPy on": what,
            "step (us)": ours,
            "NumPy (us)": bare[name],
            "ratio": ours / bare[name],
            "at most": bound,
        }
        for name, what, bound in rows
    ]
