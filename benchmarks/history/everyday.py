"""What a user waits for, and what it buys: 4 chains of 250 draws in ten dimensions."""

import math
import os
import time
from pathlib import Path

import numpy as np

import steinax as sx


def _sample() -> sx.Sample:
    """A posterior of ten log rates: gamma draws, with their scores."""
    shape = np.arange(2, 12)
    x = np.log(np.random.default_rng(0).gamma(shape, size=(4, 250, 10)))
    return sx.Sample(x, shape - np.exp(x), [f"rate{i}" for i in range(10)])


class Everyday:
    """Two runs after one that is not counted, in processor seconds: other work does not count."""

    timer = time.process_time
    number, repeat, rounds, warmup_time, timeout = 1, 2, 1, 0.0, 300

    def setup(self) -> None:
        """Make the sample, and load what is imported lazily."""
        measured = os.environ.get("MEASURED", "")
        if not str(Path(sx.__file__)).startswith(measured):
            raise RuntimeError(
                f"{sx.__file__} is not of the commit that is measured, in {measured}"
            )
        self.sample = _sample()
        sx.estimate("rate0", self.sample)

    def time_estimate_of_all_means(self) -> None:
        """`estimate` without options."""
        sx.estimate(list(self.sample.names), self.sample)

    def time_estimate_with_a_family(self) -> None:
        """`estimate` by polynomials of degree two."""
        sx.estimate(list(self.sample.names), self.sample, sx.Polynomial(2))

    def time_summary(self) -> None:
        """`summary`, with standard deviations and intervals."""
        sx.summary(self.sample)

    def peakmem_estimate_of_all_means(self) -> None:
        """Megabytes of the process."""
        sx.estimate(list(self.sample.names), self.sample)

    def track_gain_of_means(self) -> float:
        """log10 of the median gain in efficiency: higher is better."""
        return float(np.median(np.log10(sx.estimate(list(self.sample.names), self.sample).worth)))

    def track_errors_in_standard_errors(self) -> float:
        """Root mean square of (estimate - truth) / error: about 1."""
        from scipy.special import digamma

        est = sx.estimate(list(self.sample.names), self.sample)
        return math.sqrt(np.mean(((est.value - digamma(np.arange(2, 12))) / est.mcse) ** 2))

    track_gain_of_means.unit = "log10"
    track_errors_in_standard_errors.unit = "standard errors"
