"""What the two logistic regressions have in common: chains, subsets of them, and methods."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

import steinax as sx

from ._chains import kept
from ._experiment import Cell, Result
from ._logistic_posterior import Regression, sampled
from ._logistic_truth import truth
from ._methods import AUTOMATIC, NETWORK, PILOTS, PLAIN, WHOLE, Draws, Setting, measure_method

CHAINS, TAKEN = 8, 4  # chains that are run, and those that a repetition takes
EXACT = ("polynomial, exact", "kernel, exact", "polynomial + kernel, exact")
STOCHASTIC = (
    "polynomial, SGD",
    "kernel, SGD",
    "polynomial + kernel, SGD",
    "polynomial + two kernels, SGD",
    "polynomial + two kernels, Point-SAGA",
)
METHODS = (PLAIN, *EXACT, *STOCHASTIC, NETWORK, AUTOMATIC)


@dataclass(frozen=True)
class Study:
    """A regression, the sizes of samples, and the lengths of chains; each in full and quick.

    Attributes:
        name: of the experiment.
        regression: reads the data.
        sizes: numbers of draws m.
        length: of each chain.
        warm_up: of each chain.
        left_out: whether a method is not run at a size.
        pilots: the most draws that the hyper-parameters of a method are chosen on.
        repetitions: the most of a cell.
        expensive: whether a method is tuned in short (see `Setting`).
    """

    name: str
    regression: Callable[[], Regression]
    sizes: tuple[tuple[int, ...], tuple[int, ...]]
    length: tuple[int, int]
    warm_up: tuple[int, int]
    left_out: Callable[[str, int, bool], bool] = lambda method, m, quick: False
    pilots: Callable[[str], int] = lambda method: 1000
    repetitions: int = 20
    expensive: Callable[[str], bool] = lambda method: False

    def cells(self, quick: bool) -> list[Cell]:
        """Every method at every size, the expensive ones last, beginning with the largest."""
        most = {"repetitions": self.repetitions} if self.repetitions < 20 else {}
        found = [
            {"m": m, "method": method, "length": self.length[quick]} | most
            for m in self.sizes[quick]
            for method in METHODS
            if not self.left_out(method, m, quick)
        ]
        return sorted(found, key=lambda cell: self.expensive(cell["method"]) * (1 / cell["m"]))

    def prepare(self, quick: bool) -> None:
        """Run the sampler and find the truth."""
        self.chain(self.length[quick])

    def chain(self, length: int) -> dict[str, np.ndarray]:
        """All draws, scores, values, and the truth."""
        warm_up = self.warm_up[self.length.index(length)]

        def make() -> dict[str, np.ndarray]:
            regression = self.regression()
            found = sampled(regression, CHAINS, length, warm_up)
            parts = (found["draws"], found["scores"], found["values"])
            value, error = truth(*parts, regression.points)
            return found | {"truth": value, "truth_error": error}

        return kept(f"{self.name}_{CHAINS}x{length}", make)

    def draws(self, cell: Cell, repetition: int) -> Draws:
        """Half of the chains, a stretch of each; no two repetitions share a draw."""
        found, each = self.chain(cell["length"]), cell["m"] // TAKEN
        halves = CHAINS // TAKEN
        subsets = halves * (cell["length"] // each)
        if repetition in PILOTS:
            which = subsets - 1 - PILOTS.index(repetition)
        elif repetition in WHOLE:  # they contain the pilots' draws
            which = subsets - 1 - WHOLE.index(repetition)
        elif repetition < subsets - len(PILOTS):
            which = repetition
        else:
            raise ValueError(f"the chains hold {subsets - len(PILOTS)} repetitions of {cell['m']}.")
        stretch, half = divmod(which, halves)
        part = np.s_[half * TAKEN : (half + 1) * TAKEN, stretch * each : (stretch + 1) * each]
        sample = sx.Sample(found["draws"][part], found["scores"][part])
        return Draws(found["values"][part], sample, found["truth"])

    def measure(self, cell: Cell, repetition: int) -> Result:
        """One repetition, fitted to all its draws and averaged over them."""
        pilots = min(cell["m"], self.pilots(cell["method"]))
        tuned_by = cell | {"m": pilots}
        result = measure_method(
            tuned_by,
            repetition,
            lambda given, number: self.draws(given if number in PILOTS else cell, number),
            Setting(
                independent=False,
                reduced=cell["m"] if cell["m"] > pilots else 0,
                expensive=self.expensive(cell["method"]),
            ),
        )
        found = self.chain(cell["length"])
        known = {
            "truth_error": float(found["truth_error"].mean()),
            "truth_shift": float(np.abs(found["values"].mean(axis=(0, 1)) - found["truth"]).mean()),
        }
        return replace(result, extra=(result.extra or {}) | known)
