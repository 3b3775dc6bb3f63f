"""A Lennard-Jones liquid by OpenMM: g(r) by counting and from forces.

`python -m benchmarks.physics.molecules` writes `molecules.json` and `molecules.md`. Trajectories are cached.
"""

import argparse
import os
from pathlib import Path

import numpy as np
import openmm

import steinax as sx

from .._markdown import about, origin, table, write
from .._pinned import ROOT
from ._argon import EPSILON, SIGMA, grid, system

KT = 8.31446261815324e-3
COUNT, DENSITY, REDUCED = 108, 0.8, 1.0  # particles, rho sigma^3, kT / epsilon
FRAMES, TIMES, EVERY, SETTLE = 500, 50, 100, 5000
WIDTHS = (0.005, 0.01, 0.02)  # of bins, in sigma
CALIBRATED = 0.01
SEEN = 0.1  # bins in which g is less are left out of medians and shares

HEAD = """\
# Molecular simulation

A Lennard-Jones liquid, {count} particles at $\\rho^* = {density}$ and $T^* = {reduced}$, by OpenMM (Langevin
middle integrator, 10 fs, a frame every {every} steps): $g(r)$ of {frames} frames by
`steinax.molecules.pair_distribution`, next to the histogram of the same frames in the same bins. *Errors
smaller*: the median, over bins with $g > {seen}$, of the ratio of reported standard errors, and its lowest
tenth. *Held*: the share of these bins in which the histogram of an independent run {times} times as long is
within the 95% interval, given its own error; for the plain intervals likewise.
"""

BLOCKS = """
The long run cut into {times} runs of {frames} frames, with bins of {width} $\\sigma$. Errors are distances
from the mean of the other {others} runs.

| | from forces | histogram |
| --- | --- | --- |
| root mean squared error, median over bins | {rmse:.2e} | {plain rmse:.2e} |
| 95% intervals that hold | {held:.1%} | {plain held:.1%} |
| root mean square of errors over standard errors | {z:.2f} | {plain z:.2f} |

The ratio of root mean squared errors is **{ratio:.2f}** in the median bin, and {low:.2f} to {high:.2f} in the
middle 80% of bins. Of the {frames} frames: {audit}.
"""

MISTAKES = """\
The audit of the same {frames} frames with wrong forces:

"""


def simulate(frames: int, seed: int) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Positions and forces, (frame, particle, 3), the side of the box and the temperature."""
    temperature, side = REDUCED * EPSILON / KT, (COUNT / DENSITY) ** (1 / 3) * SIGMA
    reach = min(2.5 * SIGMA, 0.499 * side)
    integrator = openmm.LangevinMiddleIntegrator(temperature, 1.0, 0.010)
    integrator.setRandomNumberSeed(seed)
    platform = openmm.Platform.getPlatformByName("CPU")
    argon = system(COUNT, side, reach, 0.9 * reach)
    context = openmm.Context(argon, integrator, platform, {"Threads": "1"})
    context.setPositions(grid(COUNT, side))
    context.setVelocitiesToTemperature(temperature, seed)
    openmm.LocalEnergyMinimizer.minimize(context, maxIterations=50)
    integrator.step(SETTLE)
    positions, forces = np.empty((2, frames, COUNT, 3), np.float32)
    for i in range(frames):
        integrator.step(EVERY)
        state = context.getState(getPositions=True, getForces=True)
        positions[i] = state.getPositions(asNumpy=True)._value
        forces[i] = state.getForces(asNumpy=True)._value
    return positions, forces, side, temperature


def sample_of(frames: int, seed: int, cache: Path) -> sx.Sample:
    """The sample of a simulation, which is kept in a folder."""
    path = cache / f"argon_{COUNT}_{frames}_{seed}.npz"
    if not path.exists():
        cache.mkdir(parents=True, exist_ok=True)
        positions, forces, side, temperature = simulate(frames, seed)
        np.savez(path, positions=positions, forces=forces, side=side, temperature=temperature)
    with np.load(path) as kept:
        draws = kept["positions"].astype(np.float64).reshape(1, frames, -1)
        scores = kept["forces"].astype(np.float64).reshape(draws.shape)
        side, temperature = float(kept["side"]), float(kept["temperature"])
    space = sx.molecules.Particles((side,) * 3, temperature=temperature)
    return sx.Sample(draws, scores / (KT * temperature), space=space)


def edges_of(width: float) -> np.ndarray:
    """Bins from 0.85 sigma to half the box."""
    reach = (COUNT / DENSITY) ** (1 / 3) / 2
    return np.arange(0.85, reach, width) * SIGMA


def part_of(sample: sx.Sample, index: int) -> sx.Sample:
    """One of the runs that a long one is cut into."""
    rows = slice(index * FRAMES, (index + 1) * FRAMES)
    return sx.Sample(sample.draws[:, rows], sample.scores[:, rows], space=sample.space)


def held(value, error, freedom, truth, truth_error) -> np.ndarray:
    """Which 95% intervals hold a truth that has an error too."""
    reach = sx.chains.t_quantile(0.95, freedom)
    return np.abs(value - truth) <= reach * np.hypot(error, truth_error)


def short_run(sample: sx.Sample, width: float, fine: dict) -> dict:
    """The errors of one run with bins of a width, held to the histogram of the long one."""
    edges = edges_of(width)
    found = sx.molecules.pair_distribution(sample, edges)
    seen = np.asarray(found.plain_value) > SEEN
    ratio = (found.plain_mcse / found.mcse)[seen]
    row = {
        "part": "short",
        "width": width,
        "bins": int(seen.sum()),
        "smaller": float(np.median(ratio)),
        "lowest tenth": float(np.quantile(ratio, 0.1)),
        "error": float(np.median(found.mcse[seen])),
        "plain error": float(np.median(found.plain_mcse[seen])),
    }
    if width in fine:
        truth = fine[width]
        row["held"] = float(held(found.value, found.mcse, found.freedom, *truth)[seen].mean())
        row["plain held"] = float(
            held(found.plain_value, found.plain_mcse, found.plain_freedom, *truth)[seen].mean()
        )
    return row


def blocks(sample: sx.Sample) -> tuple[dict, tuple[np.ndarray, np.ndarray]]:
    """Errors of the parts of the long run, and its histogram with standard errors."""
    edges, count = edges_of(CALIBRATED), sample.length // FRAMES
    found = [
        sx.molecules.pair_distribution(part_of(sample, i), edges, audit="off") for i in range(count)
    ]
    ours, plain = (np.array([getattr(f, name) for f in found]) for name in ("value", "plain_value"))
    seen = plain.mean(axis=0) > SEEN
    others = (ours.sum(axis=0) - ours) / (count - 1)
    spread = ours.std(axis=0, ddof=1) / np.sqrt(count - 1)
    row: dict = {"part": "blocks", "width": CALIBRATED, "count": count}
    rmse = {}
    for name, values in (("", ours), ("plain ", plain)):
        prefix = name.replace(" ", "_")
        mcse, freedom = (
            np.array([getattr(f, prefix + what) for f in found]) for what in ("mcse", "freedom")
        )
        error = (values - others)[:, seen]
        rmse[name] = np.sqrt((error**2).mean(axis=0))
        row[f"{name}rmse"] = float(np.median(rmse[name]))
        row[f"{name}held"] = float(held(values, mcse, freedom, others, spread)[:, seen].mean())
        row[f"{name}z"] = float(np.sqrt(np.mean((error / np.hypot(mcse, spread)[:, seen]) ** 2)))
    ratio = rmse["plain "] / rmse[""]
    low, middle, high = np.quantile(ratio, [0.1, 0.5, 0.9])
    row |= {"low": float(low), "ratio": float(middle), "high": float(high)}
    return row, (plain.mean(axis=0), plain.std(axis=0, ddof=1) / np.sqrt(count))


def mistakes(sample: sx.Sample) -> list[dict]:
    """What the audit says of wrong forces."""
    wrong = {
        "kcal/mol taken for kJ/mol": 1 / 4.184,
        "per Angstrom, positions in nm": 0.1,
        "temperature too high by 5%": 1 / 1.05,
        "temperature too low by 5%": 1 / 0.95,
        "sign": -1.0,
    }
    rows = []
    for name, factor in wrong.items():
        report = sx.audit(sx.Sample(sample.draws, factor * sample.scores, space=sample.space))
        said = report.fatal[0].message if report.fatal else "passed"
        rows.append({"part": "mistake", "mistake": name, "said": said.partition(". Give")[0]})
    return rows


def page(rows: list[dict], told: dict) -> str:
    """All of `molecules.md`."""
    short = [row for row in rows if row["part"] == "short"]
    (whole,) = [row for row in rows if row["part"] == "blocks"]
    settings = {"count": COUNT, "density": DENSITY, "reduced": REDUCED, "every": EVERY}
    settings |= {"frames": FRAMES, "times": TIMES, "seen": SEEN, "others": TIMES - 1}
    columns = ("bins of", "error", "histogram's", "errors smaller", "lowest tenth", "held", "plain")
    lines = [
        [
            f"{row['width']} $\\sigma$",
            *(f"{row[name]:.4f}" for name in ("error", "plain error")),
            *(f"{row[name]:.2f}" for name in ("smaller", "lowest tenth")),
            *(f"{row[name]:.1%}" if name in row else "" for name in ("held", "plain held")),
        ]
        for row in short
    ]
    named = [[row["mistake"], row["said"]] for row in rows if row["part"] == "mistake"]
    return "\n".join(
        [
            HEAD.format(**settings),
            table(columns, lines),
            BLOCKS.format(**{**settings, **whole}),
            MISTAKES.format(**settings),
            table(("mistake", "the audit says"), named),
            "",
            origin(told) + f" OpenMM {openmm.__version__}.",
            "",
        ]
    )


def measure(cache: Path) -> list[dict]:
    """All rows."""
    short, long = sample_of(FRAMES, 3, cache), sample_of(FRAMES * TIMES, 2, cache)
    whole, truth = blocks(long)
    print(whole, flush=True)
    whole["audit"] = repr(sx.audit(short)).split("\n")[0]
    rows = [short_run(short, width, {CALIBRATED: truth}) for width in WIDTHS]
    return [*rows, whole, *mistakes(short)]


def main() -> None:
    """Simulate, or read what was simulated before; estimate; and write the page."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "steinax", "molecules")
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.physics.molecules", description=__doc__
    )
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "benchmarks")
    parser.add_argument("--cache", type=Path, default=home)
    given = parser.parse_args()
    rows, told = measure(given.cache), about("benchmarks.physics.molecules")
    write(given.out, "molecules", page(rows, told), told, rows)


if __name__ == "__main__":
    main()
