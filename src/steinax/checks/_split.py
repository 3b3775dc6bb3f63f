from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np

from ..data import Sample
from ..estimation import AbstractSplit, estimate
from ..families import Polynomial
from ..objectives import LeastSquares, NoPenalty
from ..solvers import Exact, Problem
from ._check import Law, expect, law
from ._outcome import check_honest, outcome
from ._settings import nothing_changes, same_bits
from ._targets import skewed
from ._use import close, draws, functions

CHAINS, LENGTH = 4, 10


@dataclass(frozen=True)
class SplitCase:
    """A split of draws into those that are fitted to and those that are averaged."""

    split: AbstractSplit

    def control(self, problem: Problem):
        """The controlled series and what is said of it."""
        return self.split.control(problem, CHAINS, Exact(), jax.random.key(0))


def _problem() -> Problem:
    target = skewed(1)
    x = target.draw(np.random.default_rng(4), CHAINS * LENGTH)
    f = jnp.asarray(np.sin(x))
    return Problem(
        Polynomial(1),
        (NoPenalty(),),
        LeastSquares(),
        x,
        np.asarray(target.score(x)),
        f,
    )


@law("return (n, k) residuals, a note, and the reason why there is no standard error, or None.")
def gives_residuals_of_whole_chains(case: SplitCase) -> None:
    """As many of each chain, all finite."""
    made = case.control(_problem())
    shape = made.residual.shape
    expect(len(shape) == 2, f"the residuals have shape {shape}: give (n, k), chain after chain")
    expect(0 < shape[0] <= CHAINS * LENGTH and shape[1] == 1, f"shape {shape}")
    expect(shape[0] % CHAINS == 0, f"{shape[0]} residuals of {CHAINS} chains: take as many of each")
    expect(np.all(np.isfinite(made.residual)), "the residuals are not finite")
    expect(made.reason is None or len(made.reason) > 20, "say why there is no standard error")
    expect(made.note, "say how it was fitted in the note")


@law("a draw that is averaged must not have been fitted to; if it was, say so in `reason`.")
def error_bars_are_for_held_out_draws(case: SplitCase) -> None:
    """Moving f on one averaged draw moves f - g there by just as much."""
    problem = _problem()
    before = case.control(problem)
    if before.reason is not None:
        return
    honest = 0
    for i in range(CHAINS * LENGTH):
        moved = np.array(problem.f)
        moved[i] += 100.0
        after = case.control(replace(problem, f=moved))
        honest += int(np.sum(np.abs(after.residual - before.residual - 100.0) < 1e-8))
    averaged = len(before.residual)
    expect(
        honest == averaged, f"{honest} of {averaged} averaged draws were left out of their own fit"
    )


@law("take random numbers from the key, and set nothing globally.")
def gives_the_same_bits_twice(case: SplitCase) -> None:
    """The same problem and key, the same series."""
    with nothing_changes():
        one, other = case.control(_problem()), case.control(_problem())
    expect(same_bits(one.residual, other.residual), "the same problem and key gave two series")


@law("treat chains alike: split each of them in the same way, or leave out whole chains.")
def order_of_chains_changes_nothing(case: SplitCase) -> None:
    """Chains in another order give the same estimate."""
    sample, order = draws(), [2, 0, 3, 1]
    moved = Sample(sample.draws[order], sample.scores[order])
    made = [estimate(functions(), one, Polynomial(2), split=case.split) for one in (moved, sample)]
    if made[0].reason is None:
        close(made[0], made[1])
    for one in made:
        check_honest(one)


@law("raise a ValueError that says how many draws are needed, or give a series that is honest.")
def few_draws_are_refused_or_honest(case: SplitCase) -> None:
    """From one draw to twelve."""
    for chains, length in ((1, 2), (2, 1), (2, 3), (4, 3), (1, 12)):
        sample = skewed(1).sample(5, chains, length)
        outcome(lambda sample=sample: estimate("x", sample, Polynomial(1), split=case.split))


SPLIT_LAWS: tuple[Law, ...] = (
    gives_residuals_of_whole_chains,
    error_bars_are_for_held_out_draws,
    gives_the_same_bits_twice,
    order_of_chains_changes_nothing,
    few_draws_are_refused_or_honest,
)
