"""Measure lattices: `python -m benchmarks.physics.lattice` writes `lattice.json` and `lattice.md`.

`--only` takes some of the theories, and `--quick` three replicates against a shorter run. Rows that are there
and of the same source are not measured again.
"""

import argparse
import resource
import time
from pathlib import Path

import numpy as np

import steinax as sx
from steinax.families import Lattice
from steinax.lattices import effective_mass, from_pyerrors, observables, to_pyerrors

from .._markdown import about, figure, known, origin, table, write
from .._pinned import ROOT, run
from ._phi4 import THEORIES, sample

SHAPE, LARGE = (16, 16), (64, 64)
LENGTHS = {400: 100, 100: 25}  # of each of four chains
KINDS = {
    "phi^2": ["phi^2"],
    "phi^4": ["phi^4"],
    "C": [f"C[{t}]" for t in range(9)],
    "G": [f"G[{t}]" for t in range(1, 9)],
    "m_eff": ["m_eff[1]", "m_eff[2]"],
}
NAMES = ["phi^2", "phi^4", "C", "G"]

HEAD = """# Lattice fields

What `steinax.estimate(observables(shape), sample, Lattice())` gains for a real scalar field in two dimensions
with the action

$$ S = \\sum_x \\Big[ \\tfrac12 \\sum_\\mu (\\phi_{x + \\mu} - \\phi_x)^2 + \\tfrac12 m^2 \\phi_x^2
+ \\lambda \\phi_x^4 \\Big] , $$

in its symmetric phase, on 16 x 16 sites: mean squared errors of plain averages over those of estimates, from
4 x 100 or 4 x 25 configurations. *C* are the zero-momentum correlators at all distances, *G* those along an
axis: geometric mean, and the least in brackets. Effective masses are at the distances 1 and 2.
*Interaction* is $\\lambda \\langle\\phi^4\\rangle$ over $\\frac12 |m^2| \\langle\\phi^2\\rangle$: above 1
the quartic term dominates.
"""
METHOD = """
The gain falls with the distance from a free theory. It is small with a negative bare mass, where the
potential has two wells at every site. Correlators along an axis have no
features beyond the reach, which is 3; there they gain nothing, and fits to few configurations lose some.

## How it is measured

There are {replicates} replicates, each of four chains by BlackJAX's HMC, with every fourth configuration
kept after 200 warm-up ones. The reference is a longer run, {reference:,} configurations with control
variates too, of reach 6; its standard error is at most {worst:.0%} of the root mean square error of an
estimate. *Calibration* is the root mean square of errors over standard errors, of all quantities but
masses. *pyerrors* is the median ratio of the Gamma-method error of the same residuals to ours. *CPU s*
is that of one estimate of all 20 quantities. The theory with a negative mass is the one that Albergo,
Kanwar and Shanahan (2019) write as $m^2 = -4$, $\\lambda = 6.975$, without the halves.

## A larger lattice

{large}

## What the audit sees

Scores with one mistake, on the first ten replicates of the theory with strong coupling: how many were
refused, and in how many the mistake was named (the sign, or a factor and its size). Correct scores were
refused in {alarms} of {checked}.

{audit}

"""


def _with_masses(estimate: sx.Estimate, shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    """The values by name, effective masses as well, of estimates and of plain averages: (2,)."""
    masses = {name: f for name, f in effective_mass(shape).items() if name in KINDS["m_eff"]}
    found = {}
    for part in (estimate, estimate.derived(masses)):
        for name, *values in zip(part.names, part.value, part.plain_value, strict=True):
            found[name] = np.array(values)
    return found


def _row(replicates: list[sx.Sample], truth: sx.Estimate) -> dict:
    """Gains and calibration for some replicates."""
    f, family = observables(SHAPE, NAMES), Lattice()
    exact = _with_masses(truth, SHAPE)
    errors, z, seconds, ratios = [], [], [], []
    for i, one in enumerate(replicates):
        start = time.process_time()
        estimate = sx.estimate(f, one, family)
        if i:  # the first compiles
            seconds.append(time.process_time() - start)
        values = _with_masses(estimate, SHAPE)
        errors.append({name: values[name] - exact[name][0] for name in values})
        z.append((estimate.value - truth.value) / estimate.mcse)
        exported = to_pyerrors(f, one, family, audit="off")
        for name, obs in exported.items():
            obs.gamma_method()
            ratios.append(obs.dvalue / estimate[name].mcse)
    square = {n: np.nanmean([e[n] ** 2 for e in errors], axis=0) for n in errors[0]}
    gains = {
        kind: [float(square[n][1] / square[n][0]) for n in names] for kind, names in KINDS.items()
    }
    unknown = max(float(truth[n].mcse / np.sqrt(square[n][0])) for n in truth.names)
    return {
        "gain": {kind: float(np.exp(np.log(each).mean())) for kind, each in gains.items()},
        "least": {kind: min(each) for kind, each in gains.items()},
        "calibration": float(np.sqrt(np.mean(np.square(z)))),
        "pyerrors": float(np.median(ratios)),
        "reference": unknown,
        "seconds": float(np.median(seconds)),
    }


def _audited(replicates: list[sx.Sample]) -> dict[str, list[int]]:
    """How many samples with a mistake are refused, and by its name."""
    wrong = {
        "none": (1.0, ""),
        "sign": (-1.0, "sign"),
        "factor 1/2": (0.5, "tempered"),
        "factor 2": (2.0, "tempered"),
        "factor 0.1": (0.1, "tempered"),
    }
    found = {}
    for name, (factor, kind) in wrong.items():
        reports = [sx.audit(sx.Sample(one.draws, factor * one.scores)) for one in replicates]
        kinds = [{each.kind for each in report.problems if each.fatal} for report in reports]
        found[name] = [sum(map(bool, kinds)), sum(kind in each for each in kinds)]
    return found


def measure(name: str, replicates: int, draws: int) -> list[dict]:
    """Measure one theory; with a name of `large` the memory that a larger lattice takes."""
    import jax

    jax.config.update("jax_enable_x64", True)
    if name == "large":
        return [_large()]
    theory = THEORIES[name]
    long = sample(theory, SHAPE, 40, draws, seed=1, every=2)
    truth = sx.estimate(observables(SHAPE, NAMES), long, Lattice(reach=6), audit="off")
    chains = sample(theory, SHAPE, 4 * replicates, 100, seed=2)
    found = []
    for n, length in LENGTHS.items():
        parts = [chains[4 * i : 4 * i + 4, :length] for i in range(replicates)]
        about = {"theory": name, "m2": theory.mass_squared, "lambda": theory.coupling, "n": n}
        phi = {kind: float(truth[kind].value) for kind in NAMES[:2]}
        share = 2 * theory.coupling * phi["phi^4"] / abs(theory.mass_squared) / phi["phi^2"]
        mass = float(_with_masses(truth, SHAPE)["m_eff[2]"][0])
        about |= {"interaction": share, "mass": mass, "replicates": replicates}
        history = to_pyerrors(observables(SHAPE, ["phi^2"]), parts[0])["phi^2"]
        assert from_pyerrors(history).shape == (4, length)
        found.append(about | _row(parts, truth) | {"reference n": long.size})
        if name == "strong":
            found[-1]["audit"] = _audited(parts[:10])
    return found


def _large() -> dict:
    """Estimate on 64 x 64 sites, and take the memory that this needs."""
    chains = sample(THEORIES["strong"], LARGE, 4, 100, seed=3, every=3, step=0.08, leaps=14)
    before, start = _peak(), time.process_time()
    estimate = sx.estimate(observables(LARGE, NAMES), chains, Lattice())
    worth = {
        kind: [float(estimate[n].worth) for n in estimate.names if n.partition("[")[0] == kind]
        for kind in NAMES
    }
    return {
        "theory": "large",
        "seconds": time.process_time() - start,
        "gigabytes": _peak(),
        "before": before,
        "coefficients": Lattice(LARGE).size(None, chains.dim),
        "worth": {kind: float(np.exp(np.log(each).mean())) for kind, each in worth.items()},
    }


def _peak() -> float:
    """The most memory that this process has had, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def _gain(row: dict, kind: str) -> str:
    least = "" if len(KINDS[kind]) == 1 else f" ({figure(row['least'][kind])})"
    return figure(row["gain"][kind]) + least


def page(rows: list[dict], told: dict) -> str:
    """All of `lattice.md`."""
    small = [row for row in rows if row["theory"] != "large"]
    lines = [
        [
            *(row["theory"], f"{row['m2']:g}", f"{row['lambda']:g}", f"{row['mass']:.2f}"),
            *(f"{row['interaction']:.2g}", str(row["n"])),
            *(_gain(row, kind) for kind in KINDS),
            *(f"{row['calibration']:.2f}", f"{row['pyerrors']:.2f}", f"{row['seconds']:.2f}"),
        ]
        for row in small
    ]
    head = (
        *("coupling", "m²", "λ", "mass", "interaction", "n", "phi²", "phi⁴", "C", "G"),
        *("effective mass", "calibration", "pyerrors", "CPU s"),
    )
    large = [row for row in rows if row["theory"] == "large"]
    told_large = [
        f"On 64 x 64 sites, 4 x 100 configurations at the strong coupling, {row['coefficients']} "
        f"coefficients: {row['seconds']:.1f} CPU s with the audit, and at most {row['gigabytes']:.2f} GB "
        f"in the whole process, {row['before']:.2f} GB of it before, by jax and the sampler. Gains in "
        f"efficiency by the standard errors: "
        + ", ".join(f"{figure(value)} for {kind}" for kind, value in row["worth"].items())
        + "."
        for row in large
    ]
    audits = [row for row in small if "audit" in row]
    wrong = [name for name in audits[0]["audit"] if name != "none"] if audits else []
    audit = table(
        ("mistake", *(f"n = {row['n']}: refused, named" for row in audits)),
        [[name, *(" / ".join(map(str, row["audit"][name])) for row in audits)] for name in wrong],
    )
    method = METHOD.format(
        replicates=small[0]["replicates"],
        reference=small[0]["reference n"],
        worst=max(row["reference"] for row in small),
        large="".join(told_large),
        alarms=sum(row["audit"]["none"][0] for row in audits),
        checked=10 * len(audits),
        audit=audit if audits else "",
    )
    return f"{HEAD}\n{table(head, lines)}\n{method}{origin(told)}\n"


def main() -> None:
    """Measure every theory, each in a process of its own, and write all that is known."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.physics.lattice", description=__doc__
    )
    parser.add_argument(
        "--only",
        nargs="+",
        default=[*THEORIES, "large"],
        choices=[*THEORIES, "large"],
        metavar="NAME",
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "benchmarks")
    given = parser.parse_args()
    told = about("benchmarks.physics.lattice")
    settings = {"replicates": 3, "draws": 100} if given.quick else {"replicates": 20, "draws": 500}
    rows = {(row["theory"], row.get("n")): row for row in known(given.out, "lattice")}
    for name in given.only:
        if any(row["theory"] == name and row["source"] == told["source"] for row in rows.values()):
            continue
        for row in run("physics.lattice", {"name": name} | settings, core=1):
            rows[name, row.get("n")] = row | {"source": told["source"]}
        order = [*((theory, n) for theory in THEORIES for n in LENGTHS), ("large", None)]
        ordered = [rows[key] for key in order if key in rows]
        print(name, [row.get("gain", row.get("worth")) for row in ordered][-2:], flush=True)
        write(given.out, "lattice", page(ordered, told), told, ordered)


if __name__ == "__main__":
    main()
