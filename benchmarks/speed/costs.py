"""The constants of the cost model that `Auto` goes by, from the times of the solvers themselves."""

import re
from statistics import median

import numpy as np
from scipy.optimize import nnls

import steinax as sx
from steinax._numerics import precision
from steinax.solvers import _auto as costs, prepare

from ._problems import skewed_sample
from .auto import TOLERANCE, take_times

KERNELS = ((1000, 10), (2000, 10), (4000, 10), (1000, 61), (2000, 61), (4000, 61))
POLYNOMIALS = ((1000, 61), (4000, 61), (2000, 200), (1000, 500), (2000, 500))


def measure(rounds: int = 2) -> list[dict]:
    """The constants that fit best, those in use, and the times with those of the model."""
    rows, iterations = [], {}
    for family, cells in ((sx.KernelTranslates(), KERNELS), (sx.Polynomial(2), POLYNOMIALS)):
        found = [row for n, dim in cells for row in _cell(family, n, dim, rounds)]
        iterations[type(family).__name__] = median(r["steps"] for r in found if r["steps"])
        rows += found
    work, seconds = np.array([row["work"] for row in rows]), np.array([r["seconds"] for r in rows])
    scale = nnls(work / seconds[:, None], np.ones(len(seconds)))[0]
    for row, taken in zip(rows, work @ scale, strict=True):
        row |= {"model": float(taken), "model / measured": float(taken) / row["seconds"]}
        del row["work"]
    found = [
        {"what": "MAKE", "found": scale[1] / scale[0], "in use": costs.MAKE},
        {"what": "READ", "found": scale[2] / scale[0], "in use": costs.READ},
        {"what": "CALL", "found": scale[3] / scale[0], "in use": costs.CALL},
        {
            "what": "KERNEL_ITERATIONS",
            "found": iterations["KernelTranslates"],
            "in use": costs.KERNEL_ITERATIONS,
        },
        {
            "what": "POLYNOMIAL_ITERATIONS",
            "found": iterations["Polynomial"],
            "in use": costs.POLYNOMIAL_ITERATIONS,
        },
        *rows,
    ]
    keys = dict.fromkeys(key for row in found for key in row)  # a table has them in every row
    return [keys | row for row in found]


def _cell(family: sx.families.AbstractFamily, n: int, dim: int, rounds: int) -> list[dict]:
    """The time and the work of both solvers, with the iterations that were taken."""
    with precision(np.float64):
        sample, f = skewed_sample(n, dim)
        problem, _ = prepare(sx.data.integrands(f, sample), sample, family, None, None)
        solvers = [sx.Exact(), sx.ConjugateGradient(tolerance=TOLERANCE)]
        (exact, iterative), (_, solution) = take_times(solvers, problem, rounds)
    steps = int(re.findall(r"(\d+) iterations", solution.note)[0])
    kernel = isinstance(family, sx.KernelTranslates)
    p = n if kernel else dim * (dim + 3) // 2
    count = costs.kernel_work if kernel else costs.polynomial_work
    where = f"{type(family).__name__} {n} x {dim}"
    return [
        {"what": f"{where}, {name}", "seconds": taken, "steps": own, "work": tuple(work)}
        for name, taken, own, work in (
            ("exact", exact, 0, costs.exact_work(n, dim, p)),
            ("conjugate gradients", iterative, steps, count(n, dim, 1, steps)),
        )
    ]
