"""Coverage and gain from replicates: functions of arrays (replicate, k), no more."""

import numpy as np

BAND = 0.02
ALLOWED = 2.0  # standard errors of a difference, beyond the band
type Arrays = dict[str, np.ndarray]


def hits(found: Arrays, kind: str = "") -> np.ndarray:
    """Which intervals hold the truth: `kind` is "", "plain_", "insample_" or "independent_"."""
    if kind in {"", "plain_"}:
        low, high = found[f"{kind}low"], found[f"{kind}high"]
    else:
        centre = found["value" if kind == "independent_" else f"{kind}value"]
        low, high = centre - found[f"{kind}reach"], centre + found[f"{kind}reach"]
    return (low <= found["truth"]) & (found["truth"] <= high)


def mean_and_error(values: np.ndarray) -> tuple[float, float]:
    """The mean of independent numbers, and its standard error."""
    if len(values) < 2:
        return float(np.mean(values)) if len(values) else float("nan"), float("nan")
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def difference(found: Arrays, kind: str = "") -> dict[str, float]:
    """Coverage less that of the plain intervals of the same replicates, averaged over integrands."""
    centre = found["value" if kind in {"", "independent_"} else f"{kind}value"]
    known = np.isfinite(centre).all(axis=1)
    ours, plain = hits(found, kind)[known], hits(found, "plain_")[known]
    off, error = mean_and_error((ours * 1.0 - plain).mean(axis=1))
    each = (ours * 1.0 - plain).mean(axis=0) if known.any() else np.array([np.nan])
    return {
        "coverage": float(ours.mean()) if known.any() else float("nan"),
        "coverage_error": mean_and_error(ours.mean(axis=1))[1],
        "difference": off,
        "difference_error": error,
        "worst_difference": float(each[np.argmax(np.abs(each))]),
    }


def passes(off: float, error: float, band: float = BAND) -> bool:
    """Within the band, give or take two standard errors of the difference."""
    return abs(off) <= band + ALLOWED * error


def gains(found: Arrays) -> np.ndarray:
    """Mean squared error of the plain averages over that of the estimates, of each integrand."""
    ours = np.mean((found["value"] - found["truth"]) ** 2, axis=0)
    plain = np.mean((found["plain_value"] - found["truth"]) ** 2, axis=0)
    return plain / np.maximum(ours, np.finfo(float).tiny)


def cell_figures(found: Arrays) -> dict:
    """Everything the table says of a cell."""
    plain = hits(found, "plain_")
    z = (found["value"] - found["truth"]) / found["mcse"]
    ours = difference(found)
    low, high = hits(found).mean(axis=0), plain.mean(axis=0)
    mutants = {kind: difference(found, f"{kind}_") for kind in ("insample", "independent")}
    return {
        "replicates": len(plain),
        **ours,
        "plain": float(plain.mean()),
        "plain_error": mean_and_error(plain.mean(axis=1))[1],
        "passes": passes(ours["difference"], ours["difference_error"]),
        "each": low.tolist(),
        "plain_each": high.tolist(),
        "worth": float(np.median(found["worth"])),
        "gain": float(np.exp(np.mean(np.log(gains(found))))),
        "worst_gain": float(gains(found).min()),
        "z": float(np.sqrt(np.mean(z**2))),
        "seconds": float(np.median(found["seconds"])),
        **{
            kind: one | {"passes": passes(one["difference"], one["difference_error"])}
            for kind, one in mutants.items()
            if np.isfinite(one["difference"])
        },
    }
