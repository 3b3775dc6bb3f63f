"""The posterior of the Lotka-Volterra equations: its log density and its score, by diffrax."""

from collections.abc import Callable
from dataclasses import dataclass

import diffrax
import jax
import jax.numpy as jnp
import numpy as np

from .._data import data_folder

STEPS = 400  # of the solver, for 2400 times of observation
NEWTON = 12  # steps to the mode
type Trajectory = Callable[[jax.Array], jax.Array]


@dataclass(frozen=True)
class Data:
    """Noisy observations of both populations.

    Attributes:
        times: when, from 0 on.
        observed: both populations, (time, 2).
        start: both populations at time 0.
        noise: the standard deviation of the Gaussian noise.
        parameters: what the data were made with: alpha, beta, gamma, delta.
    """

    times: np.ndarray
    observed: np.ndarray
    start: np.ndarray
    noise: float
    parameters: np.ndarray


@dataclass(frozen=True)
class Laplace:
    """The mode of the posterior, and a square root of the inverse of the Hessian there."""

    mode: np.ndarray
    root: np.ndarray


def stored(name: str) -> dict[str, np.ndarray]:
    """The arrays of a file of the data."""
    with np.load(data_folder("lotka_volterra") / f"{name}.npz") as arrays:
        return dict(arrays)


def data() -> Data:
    """The observations."""
    read = stored("lv_synthetic_riabiz_setup")
    return Data(read["t"], read["y"], read["u0"], float(read["noise_sd"]), read["theta_true"])


def trajectory(given: Data, tolerance: float | None = None) -> Trajectory:
    """Both populations at the times of observation, of the logarithms of the parameters.

    Args:
        given: the data.
        tolerance: of an adaptive solver of order 8; None for equal steps of one of order 5.
    """
    times = jnp.asarray(given.times)
    last = float(given.times[-1])
    solver, control, first = diffrax.Tsit5(), diffrax.ConstantStepSize(), last / STEPS
    if tolerance is not None:
        solver, control = diffrax.Dopri8(), diffrax.PIDController(tolerance, tolerance)

    def rate(time: object, state: jax.Array, parameters: jax.Array) -> jax.Array:
        prey, predator = state
        alpha, beta, gamma, delta = parameters
        met = prey * predator
        return jnp.stack([alpha * prey - beta * met, delta * met - gamma * predator])

    def solve(x: jax.Array) -> jax.Array:
        found = diffrax.diffeqsolve(
            diffrax.ODETerm(rate),
            solver,
            0.0,
            last,
            first,
            jnp.asarray(given.start),
            jnp.exp(x),
            saveat=diffrax.SaveAt(ts=times),
            stepsize_controller=control,
            adjoint=diffrax.ForwardMode(),
        )
        assert found.ys is not None
        return found.ys

    return solve


def log_density(given: Data, solve: Trajectory) -> Callable[[jax.Array], jax.Array]:
    """The log density of the posterior, up to a constant, of the logarithms of the parameters."""

    def value(x: jax.Array) -> jax.Array:
        return _log_density(given, x, solve(x))

    return value


def value_and_score(
    given: Data, solve: Trajectory
) -> Callable[[jax.Array], tuple[jax.Array, jax.Array]]:
    """The log density and its gradient, by forward sensitivities: one solve for both."""

    def twice(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        value = _log_density(given, x, solve(x))
        return value, value

    def both(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        score, value = jax.jacfwd(twice, has_aux=True)(x)
        return value, score

    return both


def _log_density(given: Data, x: jax.Array, state: jax.Array) -> jax.Array:
    rest = (state - jnp.asarray(given.observed)) / given.noise
    return -0.5 * (rest**2).sum() - 0.5 * x @ x


def laplace(given: Data) -> Laplace:
    """The Gaussian approximation, by Newton's method from the parameters of the data."""
    both = value_and_score(given, trajectory(given))

    def score_twice(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        score = both(x)[1]
        return score, score

    derivative = jax.jit(jax.jacfwd(score_twice, has_aux=True))
    x, hessian = np.log(given.parameters), -np.eye(len(given.parameters))
    for _ in range(NEWTON):
        hessian, score = map(np.asarray, derivative(jnp.asarray(x)))
        x = x - np.linalg.solve(hessian, score)
    return Laplace(x, np.linalg.cholesky(np.linalg.inv(-hessian)))
