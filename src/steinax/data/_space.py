import abc
from typing import Any

import equinox as eqx
import numpy as np

from .._types import AnyArray, Chains, Points


class AbstractSpace(eqx.Module):
    r"""Where draws live when that is not all of $\mathbb{R}^d$: a box, a sphere, the counts.

    A space says which draws lie in it, which operators have mean zero there, what right scores are, and which
    family serves it. Its draws are standardised no further than it allows.

    >>> from steinax.data import Sample
    >>> Sample([[1.0]], [[1.0]]).space is None
    True
    """

    @property
    @abc.abstractmethod
    def domain(self) -> str:
        """The word by which the space and its operators know each other."""

    @property
    def is_discrete(self) -> bool:
        """Whether it consists of states, which draws may have in common."""
        return False

    @abc.abstractmethod
    def check(self, draws: Chains) -> None:
        """Refuse draws that do not lie in the space, with what to do next."""

    @property
    @abc.abstractmethod
    def operator(self) -> Any:
        """The Stein operator of the space on vector fields."""

    @property
    @abc.abstractmethod
    def potential_operator(self) -> Any:
        """The Stein operator of the space on potentials."""

    def coordinates(self, x: Points) -> tuple[AnyArray, AnyArray]:
        """The shift and the scale of each dimension in which draws are fitted: none by default.

        Operators that know of places have to follow: see `AbstractOperator.moved`.
        """
        return np.zeros(x.shape[1]), np.ones(x.shape[1])

    def unbounded(self, x: Chains, score: Chains) -> tuple[AnyArray, AnyArray] | None:
        r"""Draws and scores in coordinates that fill $\mathbb{R}^d$, where families are chosen as ever.

        None, the default, where there are no such coordinates.
        """
        return None

    @abc.abstractmethod
    def identities(self, draws: Chains, scores: Chains) -> AnyArray:
        """Functions of each draw whose mean is zero when the scores are right: (chain, draw, count)."""

    @abc.abstractmethod
    def family(self, n: int, dim: int) -> Any:
        """The family that serves all integrands, for so many distinct draws and dimensions."""

    def families(self, n: int, dim: int) -> tuple[Any, ...]:
        """Those from which `estimate` chooses for each integrand: `family` alone by default.

        They are linear in their parameters. A sum with a kernel is tried with each of several penalties, and
        so is the kernel by itself.
        """
        return (self.family(n, dim),)


def space_family(sample: Any) -> Any:
    """The family of the space that the draws live in, or None: on R^d it is chosen from the draws."""
    return sample.space.family(*_sizes(sample)) if has_families(sample) else None


def space_families(sample: Any) -> tuple[Any, ...]:
    """The families of that space from which one is chosen for each integrand."""
    return sample.space.families(*_sizes(sample))


def has_families(sample: Any) -> bool:
    """Whether the draws live in a space with families of its own, not in coordinates that fill R^d."""
    return sample.space is not None and on_the_reals(sample) is None


def _sizes(sample: Any) -> tuple[int, int]:
    """How many distinct draws there are, as a state that comes twice teaches nothing new; dimensions."""
    return len(np.unique(sample.x, axis=0)), sample.dim


def on_the_reals(sample: Any) -> tuple[AnyArray, AnyArray] | None:
    """Draws and scores in coordinates that fill R^d, as chains, or None where there are none."""
    if sample.space is None:
        return sample.draws, sample.scores
    return sample.space.unbounded(sample.draws, sample.scores)


def refuse_space(sample: Any, what: str) -> None:
    """Refuse draws whose space would be ignored."""
    if getattr(sample, "space", None) is not None:
        raise ValueError(
            f"the draws live on {sample.space!r}, and {what} knows of R^d alone: use estimate, fit or weigh "
            "on a Sample in memory."
        )


def check_draws(space: AbstractSpace | None, draws: np.ndarray) -> AbstractSpace | None:
    """The space, if the draws lie in it."""
    if space is None:
        return None
    if not isinstance(space, AbstractSpace):
        raise TypeError(
            f"the space is {space!r}: give one of steinax.spaces, such as Box(0.0, 1.0)."
        )
    space.check(draws)
    return space
