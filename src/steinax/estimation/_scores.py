"""How large the held-out errors of a control variate are, and how large they should be feared."""

from .._types import AnyArray

BELIEVED = 3.0


def held_out_variance(rest: AnyArray, variance: AnyArray) -> AnyArray:
    r"""The variance of held-out errors, (..., k), as seen or as expected, whichever is larger.

    A handful of draws far from the others makes most of the variance, and among many candidates
    one hits them by luck. What the fit expects does not know of that luck: with $v_i$ the expected
    variance of draw $i$'s error $e_i$, up to a factor, it is the mean of $e_i^2 / v_i$ times the
    mean of $v_i$. It is believed up to three times of what was seen.

    Args:
        rest: f - g on held-out draws, (..., n, k).
        variance: what the fit expects, up to a factor, (..., n).
    """
    square = (rest - rest.mean(axis=-2, keepdims=True)) ** 2
    expected = (square / variance[..., None]).mean(axis=-2) * variance.mean(axis=-1, keepdims=True)
    seen = square.mean(axis=-2)
    return expected.clip(seen, BELIEVED * seen)
