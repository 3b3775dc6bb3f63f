r"""Bent, necked and split targets: the banana, Neal's funnel, and two Gaussians."""

import numpy as np

from ._problem import Array, Integrand, Problem


def banana(bend: float = 1.0) -> Problem:
    r"""A standard Gaussian in two dimensions whose second coordinate is moved by b (x_0^2 - 1).

    $E e^{i x_1} = e^{-1/2 - i b} (1 - 2 i b)^{-1/2}$.
    """

    def draw(rng: np.random.Generator, n: int) -> Array:
        x = rng.normal(size=(n, 2))
        x[:, 1] += bend * (x[:, 0] ** 2 - 1)
        return x

    def score(x: Array) -> Array:
        straight = x[..., 1] - bend * (x[..., 0] ** 2 - 1)
        return np.stack([2 * bend * x[..., 0] * straight - x[..., 0], -straight], -1)

    wave = np.exp(-0.5 - 1j * bend) / np.sqrt(1 - 2j * bend)
    return Problem(
        "banana",
        2,
        draw,
        score,
        (
            Integrand("x0", lambda x: x[..., 0], 0.0),
            Integrand("x1", lambda x: x[..., 1], 0.0),
            Integrand("x1^2", lambda x: x[..., 1] ** 2, 1 + 2 * bend**2),
            Integrand("cos(x1)", lambda x: np.cos(x[..., 1]), float(wave.real)),
        ),
    )


def funnel(width: float = 3.0) -> Problem:
    r"""Neal's: $v \sim N(0, 9)$ and two coordinates $x_i \sim N(0, e^v)$.

    $E \cos x_1 = E e^{-e^v / 2}$, integrated over $v$ by the trapezoid rule.
    """

    def draw(rng: np.random.Generator, n: int) -> Array:
        x = rng.normal(size=(n, 3))
        x[:, 0] *= width
        x[:, 1:] *= np.exp(x[:, :1] / 2)
        return x

    def score(x: Array) -> Array:
        v, rest = x[..., :1], x[..., 1:]
        first = -v / width**2 + (rest**2).sum(-1, keepdims=True) * np.exp(-v) / 2 - 1
        return np.concatenate([first, -rest * np.exp(-v)], -1)

    z = np.linspace(-12, 12, 20_001)
    weights = np.exp(-(z**2) / 2)
    cosine = float(weights @ np.exp(-np.exp(width * z) / 2) / weights.sum())
    return Problem(
        "funnel",
        3,
        draw,
        score,
        (
            Integrand("v", lambda x: x[..., 0], 0.0),
            Integrand("v^2", lambda x: x[..., 0] ** 2, width**2),
            Integrand("x1", lambda x: x[..., 1], 0.0),
            Integrand("cos(x1)", lambda x: np.cos(x[..., 1]), cosine),
        ),
    )


def mixture(distance: float, weight: float = 0.3) -> Problem:
    """Two standard Gaussians in two dimensions, at -distance and +distance along the first axis."""

    def draw(rng: np.random.Generator, n: int) -> Array:
        x = rng.normal(size=(n, 2))
        x[:, 0] += np.where(rng.random(n) < weight, -distance, distance)
        return x

    def score(x: Array) -> Array:
        odds = np.log((1 - weight) / weight) / 2
        pull = distance * np.tanh(distance * x[..., 0] + odds)
        return np.stack([pull - x[..., 0], -x[..., 1]], -1)

    side = (1 - 2 * weight) * distance
    return Problem(
        f"mixture at {distance:g}",
        2,
        draw,
        score,
        (
            Integrand("x0", lambda x: x[..., 0], side),
            Integrand("x0^2", lambda x: x[..., 0] ** 2, 1 + distance**2),
            Integrand("cos(x0)", lambda x: np.cos(x[..., 0]), np.cos(distance) * np.exp(-0.5)),
            Integrand("x0 x1^2", lambda x: x[..., 0] * x[..., 1] ** 2, side),
        ),
    )
