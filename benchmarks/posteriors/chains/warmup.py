"""What warm-up draws add as training points: 4 x 25 draws by NUTS after 4 x 250 of the same chains.

`python -m benchmarks.posteriors.chains.warmup` samples posteriordb's models as `benchmarks.posteriors.chains`
does, but with a warm-up that is kept, estimates from the 25 draws of each chain with and without it, and
writes `warmup.json` and `warmup.md`.
"""

from pathlib import Path

import numpy as np
import xarray

import steinax as sx
from steinax.data import with_warmup

from ..._pinned import run
from ..._warmup import first_finite
from .._data import folder
from .._score import pooled
from .._text import both, shown, table
from ._command import earlier, tabulated
from ._density import check
from ._estimates import Constants, figures, labels, part, reference, tabulate
from ._registry import MODELS
from ._run import CHAINS, Chains, cached, sampled, store, stored

DRAWS, WARMUP, KEY = 25, 250, 3
STUCK = 2.0  # R-hat of 4 x 25 draws whose chains are far apart
HEAD = """# Warm-up draws as training points

What the warm-up of the same chains adds to {draws} draws: {count} models of posteriordb, written in NumPyro,
{replicates} times 4 chains by NUTS, {warmup} warm-up draws and {kept} draws each. *Alone* is
`steinax.estimate(f, sample)` on the draws, *trained* the same call on the same draws with
`steinax.data.with_warmup(sample, warmup)`, which is what the adapters do: the first fifth of the warm-up and
a gap of four autocorrelation times before the first draw are left out.

The median over the models of the ratio of both gains: **{ratio}**. Calibration, all standardised errors
together: **{trained}** trained, **{alone}** alone, **{plain}** for plain averages.
"""
METHOD = """
Gains are those of [real chains](chains.md): mean squared error of plain averages over that of the estimates,
for means / squares, geometric means over parameters; *least* is the integrand that gains least. References
are from the long runs of that page. *Calibration* is the root mean square of errors over their standard
errors, and *95% held* the share of 95% intervals that hold the reference, both trained, then alone. *Left
out* are replicates whose chains are far apart after {warmup} warm-up draws, with an R-hat of the draws above
{limit:g}, of which the audit warns.{stuck}

Command: `{command}`, {date}, {cpu}, source {source}.
"""
COLUMNS = (
    *("model", "d", "gain alone", "gain trained", "ratio", "least alone", "least trained"),
    *("calibration", "95% held", "training points", "left out"),
)


def chains_of(name: str, replicates: int, cache: Path) -> tuple[Chains, Chains]:
    """The warm-up and the draws of all replicates of a model, from the cache or sampled."""
    paths = [cache / f"{name}_{kind}_{replicates}.npz" for kind in ("warmup", "short")]
    if not all(path.exists() for path in paths):
        model = MODELS[name]
        difference = check(model, folder())
        if not difference <= model.tolerance:
            raise ValueError(f"{name} is not posteriordb's: it differs by {difference:.1e}.")
        count = CHAINS * replicates
        found = sampled(model, folder(), KEY, count, DRAWS, WARMUP, keep=True)
        for path, chains in zip(paths, found, strict=True):
            assert chains is not None
            store(path, chains)
    return stored(paths[0]), stored(paths[1])


def sample_of(chains: Chains, constants: Constants) -> sx.Sample:
    """Chains as a sample, with the integrands as its variables."""
    f = constants.integrands(chains.values)
    variables = {name: (("chain", "draw"), f[..., i]) for i, name in enumerate(labels(chains))}
    names = chains.names.tolist()
    return sx.Sample(
        chains.draws, chains.scores, names, variables=xarray.Dataset(variables), verified=True
    )


def finite(warmup: Chains) -> Chains:
    """The warm-up after the last draw of any chain that is not finite."""
    first = first_finite(warmup.draws, warmup.scores, warmup.values)
    return part(warmup, slice(None), slice(first, None))


def measure(name: str, replicates: int, cache: str) -> list[dict]:
    """The row of one model: every replicate estimated alone and with its warm-up."""
    where = Path(cache)
    early, late = chains_of(name, replicates, where)
    long = cached(MODELS[name], folder(), where, "long", replicates)
    constants = Constants(long.values.mean(axis=(0, 1)), long.values.std(axis=(0, 1)))
    means, errors = reference(long, constants)
    found: dict[str, list[sx.Estimate]] = {"alone": [], "trained": []}
    row: dict = {"model": name, "dim": late.draws.shape[2], "replicates": replicates}
    points = []
    for i in range(replicates):
        rows = slice(CHAINS * i, CHAINS * (i + 1))
        sample = sample_of(part(late, rows, slice(None)), constants)
        if not np.max(sx.chains.split_rhat(sample.draws)) <= STUCK:
            continue
        warmup = sample_of(finite(part(early, rows, slice(None))), constants)
        trained = with_warmup(sample, warmup)
        points.append(sum(each.size for each in trained.training))
        for kind, given in (("alone", sample), ("trained", trained)):
            found[kind].append(sx.estimate(labels(late), given, audit="off"))
    row["left_out"] = replicates - len(points)
    if not points:
        return [row]
    row["training"] = int(np.median(points))
    for kind, estimates in found.items():
        row[kind] = figures(tabulate(estimates), labels(late), means, errors)
    return [row]


def gain(row: dict, kind: str) -> float:
    """The geometric mean of the gains of means and squares."""
    return float(np.sqrt(row[kind]["gain"]["means"] * row[kind]["gain"]["squares"]))


def page(rows: list[dict], about: dict) -> str:
    """All of `warmup.md`."""
    stuck = [row for row in rows if row["left_out"] > row["replicates"] / 2]
    rows = [row for row in rows if row not in stuck]
    calibration = {
        name: f"{pooled([row[kind][field] for row in rows], [row[kind]['count'] for row in rows]):.2f}"
        for name, kind, field in (
            ("trained", "trained", "calibration"),
            ("alone", "alone", "calibration"),
            ("plain", "alone", "plain_calibration"),
        )
    }
    ratios = [gain(row, "trained") / gain(row, "alone") for row in rows]
    head = HEAD.format(
        draws=f"4 x {DRAWS}",
        count=len(rows),
        replicates=rows[0]["replicates"],
        warmup=WARMUP,
        kept=DRAWS,
        ratio=shown(float(np.median(ratios))),
        **calibration,
    )
    lines = [
        [
            row["model"],
            str(row["dim"]),
            both(list(row["alone"]["gain"].values())),
            both(list(row["trained"]["gain"].values())),
            shown(ratio),
            *(shown(row[kind]["worst_gain"]) for kind in ("alone", "trained")),
            *(
                " / ".join(f"{row[kind][field]:.2f}" for kind in ("trained", "alone"))
                for field in ("calibration", "coverage")
            ),
            str(row["training"]),
            str(row["left_out"]),
        ]
        for row, ratio in zip(rows, ratios, strict=True)
    ]
    given = {key: about[key] for key in ("command", "date", "cpu", "source")}
    listed = " and ".join(f"{row['model']} ({row['left_out']})" for row in stuck)
    said = f" Most of them were left out of {listed}, which have no row." if stuck else ""
    method = METHOD.format(warmup=WARMUP, limit=STUCK, stuck=said, **given)
    return "\n".join([head, table(COLUMNS, lines), method, *earlier(rows, about)])


def row_of(settings: dict) -> dict:
    """Measure a model in a process of its own."""
    (row,) = run("posteriors.chains.warmup", settings)
    shown_now = (row[kind]["gain"] for kind in ("alone", "trained") if kind in row)
    print(settings["name"], *shown_now, flush=True)
    return row


if __name__ == "__main__":
    tabulated("benchmarks.posteriors.chains.warmup", __doc__, "warmup", row_of, page)
