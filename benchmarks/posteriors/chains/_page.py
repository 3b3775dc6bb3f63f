"""The page of results, in Markdown for MyST."""

from collections.abc import Sequence

import numpy as np

from .._page import both, listed, shown, table
from .._score import pooled
from ._command import earlier

BAND = (0.8, 1.25)  # calibrations that are as good as 1, for twenty replicates
HEAD = """# Real chains

What `steinax.estimate(f, sample)`, with no options, gains on chains as a sampler leaves them:
{count} models of posteriordb, written in NumPyro, {replicates} times 4 chains of 250 draws each by NUTS
after a warm-up of 1,000. The scores are those that the sampler computed anyway (`z_grad`).

Geometric means over the models: a gain of **{means}** for the means of parameters and of
**{squares}** for the means of squares. Calibration, all standardised errors together: **{ours}**, and
**{plain}** for plain averages and their ordinary error bars."""
METHOD = """A gain is the mean squared error of plain averages over that of the estimates: "12" is
what twelve times as many draws would do. It is given for the means of the parameters / for those of
the squares of the standardised parameters, geometric means over parameters. *Calibration* is the root
mean square of errors over their standard errors: 1 is right, 2 says that error bars are half as long
as they should be. *95% held* is the share of 95% intervals that hold the reference. Both are given
for the estimates, then for plain averages. *ESS* is the effective sample size, of 1,000 draws, of the
parameter that mixes worst, in the median replicate. *Diverging* counts transitions, in all replicates
together. *CPU s* are of a call of `estimate` after the first, then of the sampling of its 1,000 draws,
warm-up included.

References are from a run of their own, 4 chains of 5,000 draws: every second draw, in ten stretches,
each estimated by `steinax.estimate`, and averaged. Their own error is counted in calibration and
coverage, and makes gains look smaller by a tenth or so. *z* is how far references are from the plain
averages of posteriordb's own draws, in standard errors: the worst of all integrands. Beyond 4 the
sampler has missed something, and the row says how well `estimate` does on what the sampler saw.

*Model check* is the largest difference of the model as it is written here from posteriordb's: of its
gradient from the scores stored with the draws, and of its constrained parameters from the draws, in
units of their root mean squares. A model beyond 1e-6 is not sampled; the differential equation of
lotka_volterra is allowed what Stan's solver leaves. Chains start where Stan's would, uniformly within
2 of zero, except for two models: those of arma11 within 0.5, as one in ten never came to the posterior
from farther out, and those of lotka_volterra at medians of a few draws of the prior."""
COLUMNS = (
    *("model", "d", "gain", "worst integrand", "calibration", "95% held"),
    *("ESS", "diverging", "z", "CPU s", "model check"),
)


def page(rows: Sequence[dict], about: dict) -> str:
    """All of `chains.md`."""
    gain = {
        sort: shown(float(np.exp(np.mean([np.log(row["gain"][sort]) for row in rows]))))
        for sort in ("means", "squares")
    }
    counts = [row["count"] for row in rows]
    head = HEAD.format(
        count=len(rows),
        replicates=rows[0]["replicates"],
        ours=f"{pooled([row['calibration'] for row in rows], counts):.2f}",
        plain=f"{pooled([row['plain_calibration'] for row in rows], counts):.2f}",
        **gain,
    )
    results = table(COLUMNS, [cells(row) for row in rows])
    return "\n\n".join([head, results, METHOD, lost(rows), origin(rows, about)]) + "\n"


def cells(row: dict) -> list[str]:
    """A row of the table."""
    return [
        row["posterior"],
        str(row["dim"]),
        both([row["gain"]["means"], row["gain"]["squares"]]),
        f"{shown(row['worst_gain'])} ({row['worst']})",
        f"{row['calibration']:.2f}, plain {row['plain_calibration']:.2f}",
        f"{row['coverage']:.1%}, plain {row['plain_coverage']:.1%}",
        f"{row['ess']:.0f}",
        str(row["divergences"]),
        f"{row['z_posteriordb']:.1f}",
        f"{row['seconds']:.2g}, {row['sampling_seconds']:.2g}",
        f"{row['difference']:.0e}",
    ]


def lost(rows: Sequence[dict]) -> str:
    """Where control variates do harm, where error bars do not hold, where the sampler struggles."""
    harmed = [
        f"{name} of {row['posterior']} ({shown(gain)})"
        for row in rows
        for name, gain in row["gains"].items()
        if gain < 1
    ]
    outside = [
        f"{row['posterior']} ({row['calibration']:.2f}, plain {row['plain_calibration']:.2f})"
        for row in rows
        if not BAND[0] <= row["calibration"] <= BAND[1]
    ]
    diverging = [
        f"{row['posterior']} ({row['divergences']} of {1000 * row['replicates']:,}, and "
        f"{row['divergences_long']} of 20,000 in the long run)"
        for row in rows
        if row["divergences"] + row["divergences_long"]
    ]
    missed = [
        f"{row['posterior']} ({row['z_posteriordb']:.1f})"
        for row in rows
        if row["z_posteriordb"] > 4
    ]
    mixing = [mixed(row) for row in rows if row["not_mixed"]]
    items = [
        listed("Integrands worse than plain averages", harmed),
        listed(f"Calibration outside {BAND[0]} to {BAND[1]}", outside),
        listed("Divergent transitions", diverging),
        listed("Replicates with a split R-hat above 1.1, which are counted all the same", mixing),
        listed("References more than 4 standard errors from posteriordb's", missed),
    ]
    return "\n".join(["## Where it loses", "", *items])


def mixed(row: dict) -> str:
    """How many replicates did not mix, and what the others give by themselves."""
    counts = f"{row['not_mixed']} of {row['replicates']}, up to {row['rhat']:.2f}"
    if "mixed" not in row:
        return f"{row['posterior']} ({counts})"
    others = row["mixed"]
    gain = both([others["gain"]["means"], others["gain"]["squares"]])
    return (
        f"{row['posterior']} ({counts}; the others: gain {gain}, calibration "
        f"{others['calibration']:.2f}, plain {others['plain_calibration']:.2f})"
    )


def origin(rows: Sequence[dict], about: dict) -> str:
    """The command, the machine and the date; and whether rows are from different runs."""
    notes = [
        f"`{about['command']}`, on {about['date']}, one core of {about['cores']} ({about['cpu']}), Python "
        f"{about['python']}, steinax {about['steinax']} (source {about['source']}), NumPyro "
        f"{about['numpyro']}, jax {about['jax']}, NumPy {about['numpy']}."
    ]
    notes += earlier(rows, about)
    return "\n\n".join(["## Command, machine and date", *notes])
