"""The extra `files`: draws go to netCDF and to zarr, and come back."""


def main() -> None:
    import tempfile
    from pathlib import Path

    import expect
    import numpy as np

    import steinax as sx

    expect.installed()
    x = np.random.default_rng(0).normal(expect.MEAN, expect.SD, size=(4, 100, 2))
    sample = sx.Sample(x, (expect.MEAN - x) / expect.SD**2)
    with tempfile.TemporaryDirectory() as folder:
        for name in ("draws.nc", "draws.zarr"):
            sx.save(Path(folder, name), sample)
            expect.exact_mean("x", sx.from_arviz(Path(folder, name)))
        expect.exact_mean("x", sx.from_zarr(Path(folder, "draws.zarr")))


if __name__ == "__main__":
    main()
