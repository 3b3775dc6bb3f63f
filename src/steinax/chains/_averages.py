"""Averages of many series and how sure they are, each series on consecutive places in memory."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from .._types import AnyArray
from ._effective import correlations, effective_size, rhat_of
from ._floors import between_chain_error, floor_of
from ._quantiles import freedom_of

SHORTEST = 4  # draws of a chain that has an effective sample size

type ManySeries = Float[AnyArray, "series chain draw"]


class Averages(NamedTuple):
    """Arrays over the series."""

    mean: AnyArray
    mcse: AnyArray
    ess: AnyArray
    rhat: AnyArray
    freedom: AnyArray


def averages(rows: ManySeries, scale: AnyArray) -> Averages:
    """Mean, standard error, effective sample size, R-hat and degrees of freedom of each series.

    A series of fewer than four draws a chain has no error, as in ArviZ.

    Args:
        rows: the series.
        scale: the size of the numbers that each was computed from, for the floor of its error.
    """
    floor = floor_of(scale)
    spread = np.ptp(rows, axis=(1, 2))
    constant = spread <= floor
    unit = rows - rows[:, :1, :1]
    unit /= np.where(spread > 0, spread, 1.0)[:, None, None]
    draws = rows.shape[1] * rows.shape[2]
    variance, kurtosis = _moments(unit.reshape(-1, draws))
    ess = rhat = np.full(len(rows), np.nan)
    with np.errstate(all="ignore"):  # 0 / 0 on constant series: floored below
        if rows.shape[2] >= SHORTEST:
            rho = correlations(unit)
            ess, rhat = effective_size(rho), rhat_of(rho, rows.shape[1])
        mcse = spread * np.sqrt(variance / ess)
    ess = np.where(constant, draws, ess)
    return Averages(
        rows.mean(axis=(1, 2)),
        np.where(constant, floor, np.maximum(mcse, floor)),
        ess,
        np.where(constant, 1.0, rhat),
        freedom_of(kurtosis, ess, draws),
    )


def _moments(flat: Float[AnyArray, "series n"]) -> tuple[AnyArray, AnyArray]:
    """Variances and kurtoses."""
    n = flat.shape[1]
    square = flat - flat.mean(axis=1, keepdims=True)
    square *= square
    sums = square.sum(axis=1)
    fourth = np.einsum("kn,kn->k", square, square) / n
    return sums / (n - 1), fourth / np.where(sums > 0, sums / n, 1.0) ** 2


def controlled_averages(rows: ManySeries, scale: AnyArray, unseen: AnyArray) -> Averages:
    """The numbers that `controlled_statistics` gives for each series.

    Args:
        rows: f - g.
        scale: the size of f.
        unseen: the variance of the mean that the series does not show.
    """
    found = averages(rows, scale)
    error = np.maximum(found.mcse, between_chain_error(rows.mean(axis=2).T))
    return found._replace(mcse=np.hypot(error, np.sqrt(unseen)))
