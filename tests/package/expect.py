"""What every extra is held to: the installed wheel, and the known mean of a normal distribution."""

import sys
from pathlib import Path

MEAN, SD = 1.5, 2.0


def installed() -> None:
    """The wheel is tried, not a source tree that happens to be near."""
    import steinax

    where = Path(steinax.__file__)
    assert where.is_relative_to(sys.prefix), f"{where} is not of this environment"


def exact_mean(f: str, sample: object) -> None:
    """A polynomial knows all of a normal distribution, whatever the draws."""
    import numpy as np

    import steinax as sx

    estimate = sx.estimate(f, sample, sx.Polynomial(2))  # pyright: ignore[reportArgumentType]
    assert np.allclose(estimate.value, MEAN, atol=1e-4), estimate
    assert np.all(estimate.mcse < 0.01 * estimate.plain_mcse), estimate
