"""How near `Stochastic()` comes to `Exact()`, on the targets and integrands of the tests."""

import sys

from .._pinned import ROOT

BOUND = 1.05


def measure(seeds: int = 5) -> list[dict]:
    """Held-out variance over that of the exact fit: the worst integrand and seed of every cell."""
    sys.path.insert(0, str(ROOT / "tests"))
    import heldout
    import targets

    rows = []
    for m, dim in heldout.CELLS:
        for make in targets.MAKERS:
            target = make(dim)
            for name, family in heldout.FAMILIES.items():
                found = [
                    (ratio, integrand)
                    for seed in range(seeds)
                    for integrand, ratio in heldout.excess(target, family(), m, seed).items()
                ]
                worst, integrand = max(found)
                rows.append(
                    {
                        "m": m,
                        "d": dim,
                        "target": target.name,
                        "family": name,
                        "seeds": seeds,
                        "worst ratio": worst,
                        "of": integrand,
                        "at most": BOUND,
                    }
                )
                print(rows[-1], file=sys.stderr)
    return rows
