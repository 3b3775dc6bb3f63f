"""The extra `sparse`: a lasso path over polynomials of degree 3."""


def main() -> None:
    import expect
    import numpy as np

    import steinax as sx

    expect.installed()
    x = np.random.default_rng(0).normal(expect.MEAN, expect.SD, size=(4, 100, 2))
    sample = sx.Sample(x, (expect.MEAN - x) / expect.SD**2)
    estimate = sx.estimate("x", sample, sx.Polynomial(3), solver=sx.Sparse())
    assert np.allclose(estimate.value, expect.MEAN), estimate


if __name__ == "__main__":
    main()
