import shutil

import equinox as eqx
import numpy as np

from .._show import bare_table, beside_plain, html_table, plain_text
from .._types import AnyArray
from ..chains import t_quantile
from ..estimation import Estimate
from ..estimation._result import HEADINGS


class Evidence(eqx.Module):
    """The log evidence with control variates, beside the plain one.

    Attributes:
        value: the log evidence.
        mcse: its Monte Carlo standard error.
        plain_value: without control variates.
        plain_mcse: its Monte Carlo standard error.
        worth: how many times as many plain draws would be as accurate, (plain_mcse / mcse)^2.
        freedom: degrees of freedom of `mcse`, for intervals.
        plain_freedom: those of `plain_mcse`.
        quadrature_error: how far the sum over temperatures may be from the integral: more draws do not
            lessen it, more temperatures do. Zero where the method has no quadrature.
        temperatures: the inverse temperatures.
        shares: what each temperature adds to the log evidence, an `Estimate` with a row for each.
        log_likelihood: the mean log likelihood at each temperature, likewise.
        method: how the log evidence was made of expectations.
        reason: why there is no standard error, or None.

    >>> import numpy as np, steinax as sx
    >>> t = np.linspace(0, 1, 9)
    >>> x = np.random.default_rng(0).normal(size=(9, 200, 1)) / np.sqrt(1 + t)[:, None, None]
    >>> tempered = sx.Tempered(x, -(x[..., 0] ** 2) / 2, -x, -x, t)
    >>> found = sx.evidence(tempered, sx.Polynomial(2))
    >>> bool(found.worth > 100), found.log_likelihood.value.shape
    (True, (9,))
    """

    value: AnyArray
    mcse: AnyArray
    plain_value: AnyArray
    plain_mcse: AnyArray
    worth: AnyArray
    freedom: AnyArray
    plain_freedom: AnyArray
    quadrature_error: AnyArray
    temperatures: AnyArray
    shares: Estimate
    log_likelihood: Estimate
    method: str = eqx.field(static=True)
    reason: str | None = eqx.field(static=True, default=None)

    def interval(self, level: float = 0.95) -> np.ndarray:
        r"""The interval $\text{value} \pm t\,\text{mcse}$, widened by the error of the quadrature.

        >>> import numpy as np, steinax as sx
        >>> t = np.linspace(0, 1, 9)
        >>> x = np.random.default_rng(0).normal(size=(9, 200, 1)) / np.sqrt(1 + t)[:, None, None]
        >>> sx.evidence(sx.Tempered(x, -(x[..., 0] ** 2) / 2, -x, -x, t)).interval().shape
        (2,)
        """
        return self._around(self.value, self.mcse, t_quantile(level, self.freedom))

    def plain_interval(self, level: float = 0.95) -> np.ndarray:
        """The same without control variates."""
        return self._around(
            self.plain_value, self.plain_mcse, t_quantile(level, self.plain_freedom)
        )

    def _around(self, value: AnyArray, error: AnyArray, reach: AnyArray) -> np.ndarray:
        half = reach * error + np.nan_to_num(self.quadrature_error)
        return np.array([value - half, value + half])

    def __repr__(self) -> str:
        head, *rows = self._rows()
        shown = bare_table()
        for place, heading in enumerate(head):
            shown.add_column(heading, justify="left" if place == 0 else "right", no_wrap=True)
        for row in rows:
            shown.add_row(*row)
        text = plain_text(shown, shutil.get_terminal_size().columns)
        return "\n".join([text, *self._below()])

    def _repr_html_(self) -> str:
        head, *rows = self._rows()
        return html_table(head, rows, self._below())

    def _rows(self) -> list[tuple[str, ...]]:
        numbers = (self.value, self.mcse, self.plain_value, self.plain_mcse, self.worth)
        return [HEADINGS[:6], ("log evidence", *beside_plain(*map(float, numbers)))]

    def _below(self) -> list[str]:
        how = f"{self.method}, {len(self.temperatures)} temperatures"
        if self.quadrature_error != 0:
            how += f", quadrature error about {float(self.quadrature_error):.1g}"
        lines = [how, "each temperature: .log_likelihood and .shares"]
        return lines if self.reason is None else [*lines, f"no standard error: {self.reason}"]
