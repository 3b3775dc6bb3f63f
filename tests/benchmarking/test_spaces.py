"""What the pages of the box and of the sphere claim, on a few replicates."""

import pytest
from benchmarks.beyond import bounded, sphere


def _gains(rows: list[dict]) -> dict[tuple[str, str], float]:
    return {(row["by"], row["estimated"]): row["gain in mean squared error"] for row in rows}


@pytest.mark.slow
def test_the_box_is_exact_on_a_beta_density() -> None:
    gains = _gains(bounded.measure("beta", rounds=2))
    assert gains["family of the box", "x"] > 1e6
    assert gains["family of the box", "exp(x)"] > 100


@pytest.mark.slow
def test_open_coordinates_gain_more_on_a_truncated_normal() -> None:
    gains = _gains(bounded.measure("regression", rounds=3))
    assert gains["nothing given", "x[0]"] > 100
    assert gains["nothing given", "x[0]"] > gains["family of the box", "x[0]"]


@pytest.mark.slow
def test_the_sphere_gains_on_a_wide_density() -> None:
    gains = _gains(sphere.measure("Fisher(2)", rounds=2))
    assert gains["the default", "component"] > 100
    assert gains["the default", "component"] > gains["quadratic", "component"]
