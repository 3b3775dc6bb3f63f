"""A target and an integrand that no family here spans, the same for all measurements."""

import numpy as np

import steinax as sx


def skewed_sample(m: int, dim: int, seed: int = 0) -> tuple[sx.Sample, dict[str, np.ndarray]]:
    """Logarithms of gamma variables in four chains, and the values of one integrand."""
    x = np.log(np.random.default_rng(seed).gamma(3.0, size=(4, m // 4, dim)))
    return sx.Sample(x, 3.0 - np.exp(x)), {"sine": np.sin(x[..., 0] + x[..., 1])}
