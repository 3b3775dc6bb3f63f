from dataclasses import dataclass

import equinox as eqx
import numpy as np

from .._types import AnyArray


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

    >>> import numpy as np
    >>> import steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> sx.audit(sx.Sample(x, -x))
    audit passed: 15 identities hold, score errors that shift a mean by up to 0.27 sd could hide
    """

    problems: tuple[Finding, ...] = eqx.field(static=True)
    checked: int = eqx.field(static=True)
    limit: AnyArray
    limit_squares: AnyArray
    strength: float = 0.0
    divergences: int | None = eqx.field(static=True, default=None)
    compared: bool = eqx.field(static=True, default=False)

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

    def __repr__(self) -> str:
        remarks = [f"remark: {p.message}" for p in self.problems if not p.fatal]
        if self.passed:
            return "\n".join([self._passed(), *(f"  {line}" for line in remarks)])
        lines = [*(p.message for p in self.fatal), *remarks]
        return "\n".join(["audit failed:", *(f"  {line}" for line in lines)])

    def _passed(self) -> str:
        parts = [f"{self.checked} identities hold"] if self.checked else ["no identities tested"]
        if self.compared:
            parts.append("the scores agree with the log density")
        if self.checked and np.isfinite(self.limit).all():  # not known on other spaces than R^d
            hidden = f"{float(self.limit.max()):.2g}"
            parts.append(f"score errors that shift a mean by up to {hidden} sd could hide")
        if self.divergences is not None:
            parts.append(f"{self.divergences or 'no'} divergences")
        return "audit passed: " + ", ".join(parts)


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
