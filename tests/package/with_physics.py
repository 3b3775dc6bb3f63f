"""The extra `physics`: estimates exported to pyerrors."""


def main() -> None:
    import expect
    import numpy as np

    import steinax as sx

    expect.installed()
    phi = np.random.default_rng(0).normal(size=(4, 100, 4, 4))
    sample = sx.lattices.from_fields(phi, -phi)
    f = sx.lattices.observables((4, 4), ["phi^2"])
    obs = sx.lattices.to_pyerrors(f, sample, sx.families.Lattice())["phi^2"]
    assert np.allclose(obs.value, 1.0), obs


if __name__ == "__main__":
    main()
