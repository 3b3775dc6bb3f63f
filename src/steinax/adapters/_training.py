"""Create the sample of a run, with its training points: the last step of every adapter."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .._show import listed
from ..data import Sample, Variables, fresh_points, with_warmup

type Parts = Mapping[str, Any]  # the arguments of Sample: draws, scores, variables and so on


class NoDrawsError(ValueError):
    """Error raised when a chain of a running or stopped sampler has no draws after its warm-up."""


class UnfinishedError(ValueError):
    """Error raised when the file of a chain is not complete.

    Args:
        problem: what is wrong, and what helps everywhere.
        hint: what helps in Python; the command line has another.
    """

    def __init__(self, problem: str, hint: str):
        super().__init__(f"{problem}; {hint}")
        self.problem: str = problem


def as_sample(draws: Parts, warmup: Parts | None = None, *, asked: bool = False) -> Sample:
    """Create a sample, with the settled part of the warm-up as training points.

    Args:
        draws: the arguments of `Sample`.
        warmup: those of all warm-up draws, with columns in the same order; its names are those of the draws.
        asked: whether the user passed the warm-up. If it cannot be used, that is an error; otherwise it
            is left out.
    """
    sample = Sample(**draws)
    if warmup is None:
        return sample
    problem = _problem(warmup, sample)
    if problem and asked:
        raise ValueError(
            f"the warm-up {problem}, and the draws have shape {sample.draws.shape}: give the warm-up draws "
            "of the same chains and columns, (chain, draw, ...), or leave `warmup` out."
        )
    if problem:
        return sample
    given = {"names": sample.names, "verified": sample.verified}
    return with_warmup(sample, Sample(**{**_finite_part(warmup), **given}))


def with_log_likelihood(parts: Parts, names: str | Sequence[str]) -> Parts:
    """Move variables of the posterior to the group `log_likelihood`, as ArviZ's own converters do.

    Args:
        parts: the arguments of `Sample`, of which `variables` is a Dataset.
        names: of the variables to move.
    """
    names = [names] if isinstance(names, str) else list(names)
    if not names:
        return parts
    posterior = {} if parts["variables"] is None else parts["variables"]
    held = [str(name) for name in posterior]
    for name in names:
        if name not in held:
            raise ValueError(
                f"log_likelihood={name!r} is not a variable of the draws: there are {listed(held) or 'none'}"
                ". Name the quantity that holds the log likelihood of each observation."
            )
    others = [name for name in held if name not in names]
    groups = {"posterior": posterior[others], "log_likelihood": posterior[names]}
    return {**parts, "variables": groups}


def with_more(sample: Sample, more: int, evaluate: Callable[[np.ndarray], Parts]) -> Sample:
    """Add fresh points, from a Gaussian around the draws, to be tried as training points.

    Args:
        sample: the draws.
        more: the number of points; 0 for none.
        evaluate: takes points (1, more, dim) and gives the arguments of `Sample`. Points without a finite
            log density and score are left out.
    """
    if more < 0:
        raise ValueError(
            f"more={more!r}: give the number of fresh points to compute scores at, such as 500."
        )
    if not more:
        return sample
    parts = evaluate(fresh_points(sample, more)[None])
    finite = np.isfinite(parts["log_density"][0]) & np.isfinite(parts["scores"][0]).all(axis=1)
    if not finite.any():
        return sample
    kept = {name: parts[name][:, finite] for name in ("draws", "scores")}
    if parts["variables"] is not None:
        kept["variables"] = Variables(parts["variables"]).isel(draw=np.flatnonzero(finite))
    fresh = Sample(**kept, names=sample.names, verified=sample.verified)
    return sample.with_training(*sample.training, tried=fresh)


def _problem(warmup: Parts, sample: Sample) -> str:
    """Say why a warm-up cannot be used with the draws; empty if it can."""
    shape, scores = np.shape(warmup["draws"]), np.shape(warmup["scores"])
    if len(shape) != 3 or shape[-1] != sample.dim or scores != shape:
        return f"has draws of shape {shape} and scores of shape {scores}"
    if sample.variables is not None:
        variables = warmup.get("variables")
        if variables is None or Variables(variables).sizes != shape[:2]:
            return f"of shape {shape} does not have the model's variables for each draw"
    return "" if _first_finite(warmup) < shape[1] else "ends in values that are not finite"


def _first_finite(warmup: Parts) -> int:
    """Find the draw from which on all draws of all chains are finite, with their scores and densities."""
    arrays = [np.asarray(warmup[name], float) for name in ("draws", "scores")]
    if warmup.get("log_density") is not None:
        arrays.append(np.asarray(warmup["log_density"], float)[..., None])
    bad = np.flatnonzero(~np.all([np.isfinite(a).all(axis=(0, 2)) for a in arrays], axis=0))
    return int(bad[-1]) + 1 if len(bad) else 0


def _finite_part(warmup: Parts) -> dict[str, Any]:
    """Cut off the warm-up up to the last draw that is not finite in some chain.

    The first steps may be anywhere, and the early part of a warm-up is not used in any case.
    """
    first = _first_finite(warmup)
    kept: dict[str, Any] = {
        name: warmup[name][:, first:]
        for name in ("draws", "scores", "diverging", "log_density")
        if warmup.get(name) is not None
    }
    if warmup.get("variables") is not None:
        kept["variables"] = Variables(warmup["variables"]).isel(draw=slice(first, None))
    return kept
