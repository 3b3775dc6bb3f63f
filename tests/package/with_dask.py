"""The extra `dask`: a stream of draws in zarr, on two worker processes."""


def main() -> None:
    import tempfile
    from pathlib import Path

    import expect
    import numpy as np
    from dask.distributed import Client, LocalCluster

    import steinax as sx

    expect.installed()
    x = np.random.default_rng(0).normal(expect.MEAN, expect.SD, size=(4, 500, 2))
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        path = Path(folder, "draws.zarr")
        sx.save(path, sx.Sample(x, (expect.MEAN - x) / expect.SD**2))
        stream = sx.from_zarr(path, block=250)
        estimate = sx.estimate("x", stream, client=client)
        assert np.allclose(estimate.value, expect.MEAN), estimate


if __name__ == "__main__":
    main()
