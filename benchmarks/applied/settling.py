"""The picture of a mean that settles: `python -m benchmarks.applied.settling`.

NUTS samples a hierarchical model of 85 groups, each with an intercept and a slope: 4 chains of 500 warm-up
draws and 250 draws. The picture shows the mean of the slopes from the draws so far, plain and controlled,
against the gradients that the sampler has computed since the warm-up. The reference is the controlled mean of
12 other chains. It takes three minutes.
"""

from typing import NamedTuple

import jax
import numpy as np

import steinax as sx

from .._pictures import pyplot
from .._pinned import ROOT
from ..posteriors.landing import THEMES, styled
from ._chains import CHAINS, DRAWS, Replicate, names_of, sampled
from ._measure import Quantities, with_its_warmup
from ._models import TARGETS, dimension

TARGET, SEED = "varying slopes", 100
LOOKS = np.unique(np.geomspace(10, DRAWS, 16).round().astype(int))  # draws of each chain
MEAN = 1
WANTED = f"means[{MEAN}]"  # of the slopes
TICKS = (1000, 2000, 5000, 10_000, 20_000)
CAPTION = """\
The mean of the slopes in a hierarchical model with 85 groups and {dim} parameters, while NUTS samples it. The
warm-up takes {warmup:,.0f} gradients. After {first} draws the interval of steinax is as short as that of the
plain average after {few:,.0f} draws, and after {last:,} draws as after {many:,.0f}.
`python -m benchmarks.applied.settling` makes this picture.
"""


class Course(NamedTuple):
    """Intervals of a mean as draws come in, in posterior standard deviations from the reference.

    Attributes:
        warmup: gradients of the warm-up.
        gradients: computed since then, (look,).
        plain: lower and upper ends, (look, 2).
        controlled: likewise.
    """

    warmup: int
    gradients: np.ndarray
    plain: np.ndarray
    controlled: np.ndarray


def course() -> Course:
    """Sample, and estimate after every look."""
    target = TARGETS[TARGET]()
    with jax.enable_x64(True):
        arrays = sampled(target, SEED)
        fields = Replicate._fields[:-1]
        run, others = (
            Replicate(*(arrays[field][rows] for field in fields), arrays["seconds"])
            for rows in (slice(CHAINS), slice(CHAINS, None))
        )
        quantities = Quantities(target, others.draws.reshape(-1, others.draws.shape[-1]))
        names = names_of(target)
        reference = sx.estimate(WANTED, with_its_warmup(quantities, names, others))
        looks = []
        for n in LOOKS:
            part = run._replace(draws=run.draws[:, :n], scores=run.scores[:, :n])
            looks.append(sx.estimate(WANTED, with_its_warmup(quantities, names, part)))
    scale = quantities.scale["means"][MEAN]
    plain, controlled = (
        (np.array(ends) - reference.value[0]) / scale
        for ends in zip(
            *((each.plain_interval()[0], each.interval()[0]) for each in looks), strict=True
        )
    )
    steps, early = (arrays[field][:CHAINS] for field in ("steps", "warmup_steps"))
    gradients = np.array([steps[:, :n].sum() for n in LOOKS])
    return Course(int(early.sum()), gradients, plain, controlled)


def draw(found: Course, theme: str) -> None:
    """One picture in the colours of one theme of the site."""
    plt = pyplot()
    colours = THEMES[theme]
    with plt.rc_context(styled(theme)):
        figure, ax = plt.subplots(figsize=(7.2, 3.6), layout="constrained")
        for ends, key, label in (
            (found.plain, "plain", "plain average"),
            (found.controlled, "controlled", "steinax, the same draws"),
        ):
            style = {"color": colours[key], "linewidth": 0}
            ax.fill_between(
                found.gradients, *ends.T, alpha=0.4, label=f"{label}, 95% interval", **style
            )
            ax.plot(found.gradients, ends.mean(axis=1), color=colours[key], linewidth=2)
        ax.axhline(0, color=colours["ink"], linewidth=0.8, linestyle=":")
        ax.set(xscale="log", xlabel="gradients computed by NUTS after the warm-up")
        ax.set_xticks(TICKS, [f"{tick:,}" for tick in TICKS])
        ax.set_ylabel("error, in posterior sd")
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(loc="upper right", frameon=False)
        path = ROOT / "docs" / "pictures" / f"settling_{theme}.svg"
        figure.savefig(path, transparent=True, metadata={"Date": None})
        plt.close(figure)


def caption(found: Course) -> str:
    """What the picture shows, in figures."""
    plain, controlled = (np.ptp(ends, axis=1) for ends in (found.plain, found.controlled))
    draws = CHAINS * LOOKS[:: len(LOOKS) - 1]
    equal = draws[1] * (plain[-1] / controlled) ** 2
    return CAPTION.format(
        dim=dimension(TARGETS[TARGET]()),
        warmup=round(found.warmup, -3),
        first=draws[0],
        last=draws[1],
        few=round(equal[0], -2),
        many=round(equal[-1], -3),
    )


def main() -> None:
    """Write the pictures of both themes and their caption."""
    found = course()
    (ROOT / "docs" / "pictures" / "settling.md").write_text(caption(found), encoding="utf-8")
    for theme in THEMES:
        draw(found, theme)
    for row in zip(CHAINS * LOOKS, found.gradients, found.plain, found.controlled, strict=True):
        print(*row)


if __name__ == "__main__":
    main()
