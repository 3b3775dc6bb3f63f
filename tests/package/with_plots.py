"""The extra `plots`: a picture of an estimate, written as PNG."""


def main() -> None:
    import io

    import expect
    import matplotlib as mpl
    import numpy as np

    import steinax as sx

    expect.installed()
    mpl.use("agg")
    x = np.random.default_rng(0).normal(size=(4, 50, 2))
    sample = sx.Sample(x, -x)
    estimate = sx.estimate(lambda x: x**4, sample, sx.Polynomial(2))
    for ax in (sx.plot_estimate(estimate), sx.plot_worth(estimate), sx.plot_audit(sample)):
        file = io.BytesIO()
        ax.figure.savefig(file, format="png")
        assert file.getvalue().startswith(b"\x89PNG") and file.tell() > 5000
    sx.plot_forest(estimate)


if __name__ == "__main__":
    main()
