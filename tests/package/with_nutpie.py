"""The extra `nutpie`, which brings no modelling language: a log density in NumPy, and its stored scores."""

from typing import Any

import numpy as np


def main() -> None:
    import expect
    import nutpie
    from nutpie.compiled_pyfunc import from_pyfunc

    import steinax as sx

    expect.installed()

    def make_density() -> Any:
        def density(x: np.ndarray) -> tuple[float, np.ndarray]:
            score = (expect.MEAN - x) / expect.SD**2
            return float((x - expect.MEAN) @ score / 2), score

        return density

    def make_expand(*_: object) -> Any:
        return lambda x: {"mu": x}

    model = from_pyfunc(2, make_density, make_expand, [np.dtype(float)], [(2,)], ["mu"])
    trace = nutpie.sample(
        model,
        draws=200,
        tune=200,
        chains=2,
        cores=1,
        seed=1,
        progress_bar=False,
        store_gradient=True,
        store_unconstrained=True,
    )
    expect.exact_mean("mu", sx.from_nutpie(trace))


if __name__ == "__main__":
    main()
