"""Controlled means and standard deviations of many parameters, and their errors."""

from dataclasses import dataclass, replace

import numpy as np

from .._types import Series
from ..auditing import AuditReport
from ..data import Integrands, Sample
from ..estimation import Estimate, estimate
from ..estimation._audited import AuditMode, audited, with_audit
from ..families import AbstractFamily

FLOOR = 4 * np.finfo(np.float64).eps  # of a number: what rounding leaves of it
PLAIN = "plain Monte Carlo"


@dataclass(frozen=True)
class Moments:
    """Means and standard deviations with their errors, all (k,).

    `plain_mean` and `plain_sd` say where the plain numbers were kept.
    """

    mean: np.ndarray
    sd: np.ndarray
    mcse_mean: np.ndarray
    mcse_sd: np.ndarray
    plain_mean: np.ndarray
    plain_sd: np.ndarray
    chosen: tuple[str, ...] = ()
    note: str = ""
    audit: AuditReport | None = None


def controlled(
    values: Series,
    names: tuple[str, ...],
    plain: Moments,
    sample: Sample,
    family: AbstractFamily | None,
    quick: bool,
    mode: AuditMode,
) -> Moments:
    """The plain moments, and better ones wherever control variates give them.

    Args:
        values: of the parameters, (chain, draw, k).
        names: of the parameters.
        plain: their plain moments.
        sample: the draws and scores.
        family: of control variates; None to have them chosen.
        quick: whether only polynomials are to be chosen from.
        mode: of the audit.
    """
    report = audited(sample, mode)
    with np.errstate(invalid="ignore"):
        usable = np.isfinite(values).all(axis=(0, 1)) & (np.ptp(values, axis=(0, 1)) > 0)
    if not usable.any():
        return replace(plain, audit=report)
    centre, scale = plain.mean[usable], plain.sd[usable]
    unit = (values[..., usable] - centre) / scale
    both = np.concatenate([unit, unit**2], axis=-1)
    shown = [f"{name}, standardised" for name, one in zip(names, usable, strict=True) if one]
    wanted = Integrands(both, (*shown, *(f"the square of {name}" for name in shown)))
    found = estimate(wanted, sample, family, quick=quick and family is None, audit="off")
    found = with_audit(found, report, mode)
    better = _moments(found, centre, scale)
    better = _best(better, _take(plain, usable))
    return replace(
        _put(plain, usable, better),
        chosen=better.chosen,
        note=found.note,
        audit=found.audit,
    )


def _moments(found: Estimate, centre: np.ndarray, scale: np.ndarray) -> Moments:
    r"""From the expectations $m_1$ and $m_2$ of $(f - c) / s$ and its square.

    The mean is $c + s\, m_1$ and the standard deviation $\sigma = s \sqrt{m_2 - m_1^2}$. With $e_1, e_2$ the
    errors and $\rho$ their correlation, the delta method gives

    $$ \frac{s^2}{2 \sigma} \sqrt{e_2^2 + 4 m_1^2 e_1^2 - 4 m_1 \rho\, e_1 e_2} . $$
    """
    k = len(centre)
    first, second = found.value[:k], found.value[k:]
    error, error_second = found.mcse[:k], found.mcse[k:]
    left, right = found.batches[:, :k], found.batches[:, k:]
    sizes = np.sqrt((left**2).sum(axis=0) * (right**2).sum(axis=0))
    correlation = (left * right).sum(axis=0) / np.where(sizes > 0, sizes, 1.0)
    variance = second - first**2
    square = error_second**2 + 4 * first * error * (first * error - correlation * error_second)
    with np.errstate(invalid="ignore", divide="ignore"):
        root = np.sqrt(variance)
        error_sd = np.sqrt(np.maximum(square, 0.0)) / (2 * root)
    alone = np.array([name == PLAIN for name in found.chosen])
    return Moments(
        centre + scale * first,
        scale * root,
        np.maximum(scale * error, FLOOR * np.abs(centre)),
        scale * np.maximum(error_sd, FLOOR),
        alone[:k],
        alone[k:],
        found.chosen[:k],
    )


def _best(better: Moments, plain: Moments) -> Moments:
    """The plain numbers, where a control variate was used and made the error larger.

    Where none was, the mean keeps the estimate's error: it is no smaller, and knows when chains disagree.
    """
    worse = ~better.plain_mean & (better.mcse_mean > plain.mcse_mean)
    kept = better.plain_mean | worse
    with np.errstate(invalid="ignore"):
        sure = (better.sd > 0) & ~(better.mcse_sd > plain.mcse_sd)
    wide = better.plain_sd | ~sure
    return Moments(
        np.where(kept, plain.mean, better.mean),
        np.where(wide, plain.sd, better.sd),
        np.where(worse, plain.mcse_mean, better.mcse_mean),
        np.where(wide, plain.mcse_sd, better.mcse_sd),
        kept,
        wide,
        tuple(PLAIN if one else name for one, name in zip(kept, better.chosen, strict=True)),
    )


ARRAYS = ("mean", "sd", "mcse_mean", "mcse_sd", "plain_mean", "plain_sd")


def _take(whole: Moments, which: np.ndarray) -> Moments:
    return Moments(*(getattr(whole, field)[which] for field in ARRAYS))


def _put(whole: Moments, which: np.ndarray, part: Moments) -> Moments:
    arrays = []
    for field in ARRAYS:
        array = getattr(whole, field).copy()
        array[which] = getattr(part, field)
        arrays.append(array)
    return Moments(*arrays)
