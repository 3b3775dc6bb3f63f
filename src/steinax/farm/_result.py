"""Results of a farm: one row of numbers for each posterior."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import equinox as eqx
import numpy as np

from .._show import counted, shortened, some_of, worth_text
from .._types import AnyArray
from ..chains import t_quantile
from ._batched import NUMBERS

if TYPE_CHECKING:
    import xarray


OK = "ok"


class ResultRows(NamedTuple):
    """Numbers and statuses of several posteriors, in order."""

    numbers: AnyArray  # (number, posterior, k), in the order of NUMBERS; NaN for failures
    status: list[str]  # "ok", or one word for the problem
    reason: list[str]  # the problem and what to do next; empty for "ok"
    names: tuple[str, ...]  # of the integrands; none where no posterior could be evaluated


def failures(problems: Iterable[tuple[str, str]], names: tuple[str, ...] = ()) -> ResultRows:
    """Build rows without numbers from the status and reason of each posterior."""
    status, reason = [], []
    for word, why in problems:
        status.append(word)
        reason.append(why)
    numbers = np.full((len(NUMBERS), len(status), len(names)), np.nan)
    return ResultRows(numbers, status, reason, names)


def merged(tables: Iterable[ResultRows]) -> ResultRows:
    """Concatenate rows; rows whose integrands differ from the first ones become failures."""
    tables = list(tables)
    names = next((table.names for table in tables if table.names), ())
    tables = [_with_names(table, names) for table in tables]
    return ResultRows(
        np.concatenate([np.empty((len(NUMBERS), 0, len(names))), *(t.numbers for t in tables)], 1),
        [word for table in tables for word in table.status],
        [why for table in tables for why in table.reason],
        names,
    )


def ordered(table: ResultRows, order: list[int]) -> ResultRows:
    """Move each row to the position that `order` gives for it."""
    back = np.argsort(order)
    status, reason = ([words[i] for i in back] for words in (table.status, table.reason))
    return ResultRows(table.numbers[:, back], status, reason, table.names)


def _with_names(table: ResultRows, names: tuple[str, ...]) -> ResultRows:
    if table.names == names:
        return table
    mismatch = (
        f"its integrands are {', '.join(table.names[:5])} and those of the others {', '.join(names[:5])}: "
        "give integrands that have the same names for every posterior."
    )
    rows = zip(table.status, table.reason, strict=True)
    return failures(
        ((word, why) if word != OK else ("integrands", mismatch) for word, why in rows), names
    )


SHOWN = 3  # failures whose reasons are printed
WIDTH = 100
AXES = ("posterior", "integrand")


class Estimates(eqx.Module):
    """Expectations under many posteriors: arrays (posterior, k), one row for each, in order.

    A failed row holds NaN, and `status` and `reason` say why. An index or a slice selects rows:
    `estimates[3]`, `estimates[estimates.ok]`.

    Attributes:
        value: the estimates.
        mcse: their Monte Carlo standard errors.
        plain_value: the averages of f over all draws.
        plain_mcse: their Monte Carlo standard errors.
        worth: how many times as many plain draws would be as accurate, (plain_mcse / mcse)^2.
        ess: the number of independent draws whose plain averages would be as accurate.
        rhat: split R-hat of the controlled series.
        freedom: degrees of freedom of `mcse`, for intervals.
        status: `"ok"`, or one word for the problem: a finding of the audit such as `sign` or
            `duplicate`; `not finite`; `integrands`; `unreadable`; `failed`.
        reason: the problem and what to do next; empty for rows that are ok.
        names: of the integrands.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(3, 4, 250, 2))
    >>> scores = -x
    >>> scores[1] = x[1]
    >>> sx.estimate_many("x", sx.Batch(x, scores)).status.tolist()
    ['ok', 'sign', 'ok']
    """

    value: AnyArray
    mcse: AnyArray
    plain_value: AnyArray
    plain_mcse: AnyArray
    worth: AnyArray
    ess: AnyArray
    rhat: AnyArray
    freedom: AnyArray
    status: AnyArray
    reason: AnyArray
    names: tuple[str, ...] = eqx.field(static=True)

    @property
    def ok(self) -> AnyArray:
        """Whether each row is without problems, (posterior,)."""
        return self.status == OK

    def interval(self, level: float = 0.95) -> AnyArray:
        """Compute intervals that cover the expectations with probability `level`, (posterior, k, 2)."""
        reach = t_quantile(level, self.freedom) * self.mcse
        return np.stack([self.value - reach, self.value + reach], axis=-1)

    def to_dataset(self) -> "xarray.Dataset":
        """Convert to a Dataset with dimensions (posterior, integrand), for storage.

        >>> import numpy as np, steinax as sx
        >>> x = np.random.default_rng(0).normal(size=(3, 4, 250, 2))
        >>> dict(sx.estimate_many("x", sx.Batch(x, -x)).to_dataset().sizes)
        {'posterior': 3, 'integrand': 2}
        """
        import xarray

        arrays: dict[str, Any] = {name: (AXES, getattr(self, name)) for name in NUMBERS}
        texts = {name: (AXES[:1], getattr(self, name)) for name in ("status", "reason")}
        return xarray.Dataset(arrays | texts, {AXES[1]: list(self.names)})

    @staticmethod
    def concatenate(parts: "Iterable[Estimates]") -> "Estimates":
        """Concatenate the rows of several results, such as those of workers.

        >>> import numpy as np, steinax as sx
        >>> x = np.random.default_rng(0).normal(size=(3, 4, 250, 2))
        >>> estimates = sx.estimate_many("x", sx.Batch(x, -x))
        >>> len(sx.farm.Estimates.concatenate([estimates, estimates[:2]]))
        5
        """
        return from_table(merged(part._table() for part in parts))

    def _table(self) -> ResultRows:
        numbers = np.stack([getattr(self, name) for name in NUMBERS])
        return ResultRows(numbers, self.status.tolist(), self.reason.tolist(), self.names)

    def __len__(self) -> int:
        return len(self.status)

    def __getitem__(self, index: Any) -> "Estimates":
        rows = slice(index, index + 1 or None) if isinstance(index, int | np.integer) else index
        if isinstance(index, int | np.integer) and not -len(self) <= index < len(self):
            raise IndexError(f"no posterior {index}: there are {len(self)}.")
        arrays = (getattr(self, name)[rows] for name in (*NUMBERS, "status", "reason"))
        return Estimates(*arrays, names=self.names)

    def __iter__(self) -> "Iterator[Estimates]":
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        names = some_of(self.names, 4)
        counts = Counter(self.status.tolist())
        ok = counts.pop(OK, 0)
        head = f"{counted(len(self), 'posterior')}, {counted(len(self.names), 'integrand')}"
        lines = [f"Estimates({head}: {names})" if names else f"Estimates({head})"]
        kinds = ", ".join(f"{count} {kind}" for kind, count in counts.most_common())
        lines.append(f"  {ok} ok" + (f", {len(self) - ok} failed: {kinds}" if kinds else ""))
        if np.isfinite(self.worth[self.ok]).any():
            low, middle, high = map(
                worth_text, np.nanquantile(self.worth[self.ok], [0.05, 0.5, 0.95])
            )
            lines.append(f"  worth {middle} times as many draws ({low} to {high})")
            alike = int(np.isnan(self.mcse[self.ok]).any(axis=1).sum())
            if alike:
                lines.append(
                    f"  {alike} with an event that no draw shows, or every draw: mcse is NaN"
                )
        for i in np.flatnonzero(~self.ok)[:SHOWN]:
            lines.append(
                shortened(f"  {i}: {self.status[i]}: {self.reason[i].splitlines()[0]}", WIDTH)
            )
        return "\n".join(lines)


def from_table(table: ResultRows) -> Estimates:
    """Convert rows to the public result class."""
    reason = np.empty(len(table.reason), dtype=object)
    reason[:] = table.reason
    arrays = dict(zip(NUMBERS, table.numbers, strict=True))
    status = np.array(table.status, dtype=str)
    return Estimates(**arrays, status=status, reason=reason, names=table.names)
