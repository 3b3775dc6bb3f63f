r"""Student's t in two dimensions, with $\nu$ degrees of freedom.

$E |x_0|^p = \nu^{p/2}\, \Gamma((p+1)/2)\, \Gamma((\nu-p)/2) / (\sqrt{\pi}\, \Gamma(\nu/2))$
and $E \cos x_0 = \sqrt{\nu}^{\,\nu/2} K_{\nu/2}(\sqrt{\nu})\, 2^{1 - \nu/2} / \Gamma(\nu/2)$.
"""

import numpy as np
from scipy.special import gammaln, kve

from ._problem import Array, Integrand, Problem

BARELY = 0.48  # of the degrees of freedom: twice this power is just integrable


def student(freedom: float) -> Problem:
    """Its variances exist for more than 2 degrees of freedom, those of squares for more than 4."""

    def draw(rng: np.random.Generator, n: int) -> Array:
        return rng.normal(size=(n, 2)) / np.sqrt(rng.chisquare(freedom, size=(n, 1)) / freedom)

    def score(x: Array) -> Array:
        return -(freedom + 2) * x / (freedom + (x**2).sum(-1, keepdims=True))

    power = min(BARELY * freedom, 4.0)
    root, half = np.sqrt(freedom), freedom / 2
    log_cosine = half * np.log(root) + np.log(kve(half, root)) - root
    log_cosine += (1 - half) * np.log(2) - gammaln(half)
    named = [
        Integrand("x0", lambda x: x[..., 0], 0.0),
        Integrand("|x0|", lambda x: np.abs(x[..., 0]), moment(freedom, 1.0)),
        Integrand("cos(x0)", lambda x: np.cos(x[..., 0]), float(np.exp(log_cosine))),
        Integrand(
            f"|x0|^{power:.3g}", lambda x: np.abs(x[..., 0]) ** power, moment(freedom, power)
        ),
    ]
    if freedom > 4:
        named.append(Integrand("x0^2", lambda x: x[..., 0] ** 2, moment(freedom, 2.0)))
    return Problem(f"t({freedom:g})", 2, draw, score, tuple(named))


def moment(freedom: float, power: float) -> float:
    """The expectation of an absolute power."""
    log = power / 2 * np.log(freedom) + gammaln((power + 1) / 2) + gammaln((freedom - power) / 2)
    return float(np.exp(log - gammaln(freedom / 2)) / np.sqrt(np.pi))
