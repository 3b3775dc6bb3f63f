from dataclasses import dataclass
from typing import ClassVar

import equinox as eqx
import numpy as np

from .._types import AnyArray

ADVICE = "check them with sx.audit(sample, log_density=...)."


@dataclass(frozen=True)
class Finding:
    """Something that the audit found.

    Args:
        kind: one word, such as `sign`, `jacobian`, `lag` or `divergences`; the guide lists them.
        message: what is wrong and what to do next.
        fatal: whether estimates from the sample would be wrong; otherwise it is a remark.
        columns: the names of the dimensions concerned, where there are some.

    >>> Finding("short", "3 draws are too few: give 20.", fatal=False).kind
    'short'
    """

    kind: str
    message: str
    fatal: bool = True
    columns: tuple[str, ...] = ()


class AuditReport(eqx.Module):
    r"""What an audit found, and what it could not have found.

    Args:
        problems: all findings, fatal ones and remarks.
        checked: how many identities were tested.
        limit: per dimension, the error of its mean, in its standard deviations, that wrong scores could
            cause unseen: critical value plus three standard errors of the mean score. (dim,)
        limit_squares: the same for the mean of its square, in its variances. (dim,)
        strength: the largest deviation of an identity, in units of the allowed one.
        divergences: how many draws diverged; None when the sample does not say.
        compared: whether the scores were compared with a log density, too.
        verified: whether the scores are known to be right: an adapter computed them from the model, or they
            agree with finite differences of the log density. True on spaces other than R^d, where this is
            not asked.

    >>> import numpy as np
    >>> import steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> sx.audit(sx.Sample(x, -x))
    audit passed: 15 identities hold
    The audit would not notice errors in the scores that shift a mean by less than 0.27 sd; check
    them with sx.audit(sample, log_density=...).
    """

    references: ClassVar[tuple[str, ...]] = ("vehtari2024pareto",)
    problems: tuple[Finding, ...] = eqx.field(static=True)
    checked: int = eqx.field(static=True)
    limit: AnyArray
    limit_squares: AnyArray
    strength: float = 0.0
    divergences: int | None = eqx.field(static=True, default=None)
    compared: bool = eqx.field(static=True, default=False)
    verified: bool = eqx.field(static=True, default=False)

    @property
    def passed(self) -> bool:
        """Whether nothing fatal was found."""
        return not any(problem.fatal for problem in self.problems)

    @property
    def fatal(self) -> tuple[Finding, ...]:
        """The findings that forbid an estimate."""
        return tuple(problem for problem in self.problems if problem.fatal)

    def raise_if_failed(self) -> None:
        """Raise an `AuditError` unless the audit passed."""
        if not self.passed:
            raise AuditError(self)

    def merged(self, other: "AuditReport") -> "AuditReport":
        """The report of two samples: the findings and the limits of both, one after the other.

        >>> import numpy as np
        >>> import steinax as sx
        >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
        >>> report = sx.audit(sx.Sample(x, -x))
        >>> report.merged(report).checked
        30
        """
        known = self.divergences is not None and other.divergences is not None
        return AuditReport(
            self.problems + other.problems,
            self.checked + other.checked,
            np.concatenate([self.limit, other.limit]),
            np.concatenate([self.limit_squares, other.limit_squares]),
            max(self.strength, other.strength),
            (self.divergences or 0) + (other.divergences or 0) if known else None,
            self.compared and other.compared,
            self.verified and other.verified,
        )

    def __repr__(self) -> str:
        remarks = [f"remark: {p.message}" for p in self.problems if not p.fatal]
        if self.passed:
            return "\n".join([self._passed(), *self._unseen(), *(f"  {line}" for line in remarks)])
        lines = [*(p.message for p in self.fatal), *remarks]
        return "\n".join(["audit failed:", *(f"  {line}" for line in lines)])

    def _passed(self) -> str:
        parts = [f"{self.checked} identities hold"] if self.checked else ["no identities tested"]
        if self.compared or (self.verified and np.isfinite(self.limit).all()):
            parts.append("the scores agree with the log density")
        if self.divergences is not None:
            parts.append(f"{self.divergences or 'no'} divergences")
        return "audit passed: " + ", ".join(parts)

    def _unseen(self) -> list[str]:
        """What would not be noticed, of scores that were not computed from the model."""
        if self.verified or not self.checked or not np.isfinite(self.limit).all():
            return []
        hidden = f"{float(self.limit.max()):.2g}"
        shift = f"errors in the scores that shift a mean by less than {hidden} sd"
        return [f"The audit would not notice {shift}; {ADVICE}"]


class AuditError(ValueError):
    """Raised where a sample that failed its audit is to be used. `report` holds the findings.

    >>> import numpy as np
    >>> import steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> try:
    ...     sx.audit(sx.Sample(x, x)).raise_if_failed()
    ... except sx.AuditError as error:
    ...     print(error.report.problems[0].kind)
    sign
    """

    def __init__(self, report: AuditReport):
        super().__init__(repr(report))
        self.report = report

    def __reduce__(self) -> tuple[type, tuple[AuditReport]]:
        return type(self), (self.report,)


def named(names: tuple[str, ...], mask: AnyArray) -> tuple[str, ...]:
    """The names where a mask is true."""
    return tuple(name for name, chosen in zip(names, mask, strict=True) if chosen)
