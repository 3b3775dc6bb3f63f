"""The page on polynomial integrands: pictures and tables."""

from collections.abc import Callable, Sequence
from pathlib import Path

from .._markdown import figure, table
from ._experiment import Row
from ._polynomials_picture import picture
from ._polynomials_problem import Problem, problems
from ._statistics import mae, seconds

INTRODUCTION = """The integrand is the sum of d coordinates, of n independent draws from a standard
Gaussian: x_1 + ... + x_d with n = 1000, as in the main text, and the sum of 1 - x_j with n = 4000 and
10,000, as in the supplement. Control variates are fitted to half of the draws, m, and averaged over the
other half; plain Monte Carlo and the automatic estimate have all n. The supplement speaks of a 90/10
split of 10,000 draws and the main text of m = 5000 for the same experiment: both are here, m = 9000 and
m = 5000, and m = 2000 for kernels.

The polynomial is of degree two. It has d (d + 3) / 2 coefficients. Where these are more than the draws that
are fitted to (d of 100 or more, but not with m = 9000), it cannot find the integrand, although it spans it.
The exact solve has as many unknowns as there are draws or coefficients, whichever are fewer. SGD is Adam on
the coefficients in batches of 8, on all m draws, and keeps the last iterate; errors and times are recorded
on the way of one run, whose learning rate decays to zero at its end. Hyper-parameters are chosen
beforehand, on two sets of at most 1000 other draws (for polynomials with n = 10,000, in fewer dimensions, so
that the ratio of coefficients to draws is the same): for the exact solve by leaving out one draw after the
other, for SGD by SGD. Where those draws are fewer than are fitted to, SGD's learning rate is then chosen on
two sets of as many, in as many dimensions. Their time is not counted. Times are of CPU, on one core, and
include the average over the other draws.

Point-SAGA is no test of a stochastic solver here. It whitens the coefficients by up to 1000 draws and starts
from the solution in those coordinates: where m is at most 1000 that start is the exact solution before any
step is taken, and so it agrees with the exact solve by construction, at any number of epochs. Where m is 2000
or 5000 most of its accuracy may come from the start too. What is said below of stochastic solvers is said
of SGD alone."""


def page(rows: Sequence[Row], folder: Path) -> str:
    """Pictures in the layout of the paper, written to `folder`, and two tables."""
    found = problems(rows)
    parts = [INTRODUCTION]
    groups = {
        "main": ("n = 1000", [one for one in found if one.n == 1000]),
        "supplement": (
            "more draws, half of them fitted to",
            [one for one in found if one.n != 1000 and one.train == 0.5],
        ),
    }
    for name, (what, mine) in groups.items():
        if not mine:
            continue
        dims = sorted({one.dim for one in mine})
        families = dict.fromkeys(one.family for one in mine)
        panels = [
            [next((p for p in mine if (p.family, p.dim) == (family, dim)), None) for dim in dims]
            for family in families
        ]
        for quantity in ("error", "time"):
            file = f"polynomials_{name}_{quantity}.png"
            picture(folder / file, panels, quantity == "time")
            against = "epochs" if quantity == "error" else "CPU seconds"
            parts.append(f"![error against {against}, {what}]({file})")
    parts += ["### Mean absolute error", _table(found, _error, plain=True)]
    parts += ["### CPU seconds", _table(found, _seconds, plain=False)]
    return "\n\n".join(parts)


def _error(rows: Sequence[Row]) -> str:
    return f"{mae(rows)[0]:.1e}" if rows else ""


def _seconds(rows: Sequence[Row]) -> str:
    return figure(seconds(rows)) if rows else ""


def _table(found: list[Problem], text: Callable[[Sequence[Row]], str], plain: bool) -> str:
    """A row for each problem, a column for each method and number of epochs."""
    columns = [
        (solver, epochs)
        for solver in ("SGD", "Point-SAGA")
        for epochs in sorted({e for one in found for e in one.stochastic(solver)})
    ]
    body = [
        [
            one.family,
            str(one.fitted),
            str(one.dim),
            str(one.unknowns),
            *([text(one.plain)] if plain else []),
            text(one.exact),
            *(text(one.stochastic(solver).get(epochs, [])) for solver, epochs in columns),
            text(one.automatic),
        ]
        for one in found
    ]
    head = (
        *("family", "m", "d", "coefficients"),
        *(["plain Monte Carlo"] if plain else []),
        "exact",
        *(f"{solver}, {epochs}" for solver, epochs in columns),
        "automatic",
    )
    return table(head, body)
