"""The words of the page of results, and how numbers are shown in it."""

from collections.abc import Sequence

HEAD = """\
# Posteriors of posteriordb

What `steinax.estimate(f, sample)`, with no options, gains on {count} of {all} posteriors with reference
draws, for the mean of every parameter and the mean of its square (standardised). **Gain** is how many
times smaller the mean squared error is than that of the plain average of the same draws; "a / b" is
the geometric mean over the means / over the squares."""

METHOD = """\
- *Median*, *lowest quartile*: over the posteriors. *Worst integrand*: the least gain anywhere; below 1,
  the plain average was better.
- *ZVCV gains more in*: the number of posteriors in which the best of ZVCV's three methods, chosen
  with hindsight for each posterior, gains more: means / squares.
- *Calibration*: the root mean square of errors divided by their standard errors, of all estimates
  together, and the range of those of single posteriors. It should be 1; above 1 error bars are too short.
- *CPU s*: processor seconds of one call for all integrands of a posterior, on one core, once
  compiled; median over blocks, then over posteriors.

```{image} posteriors_gain.png
:alt: Gain of every posterior, next to those of ZVCV and the prototype
```

```{image} posteriors_calibration.png
:alt: Calibration of every posterior, with the band from 0.8 to 1.25
```

## How it is measured

- The 10,000 reference draws of a posterior are nearly independent. They are cut into disjoint blocks
  of $n$ consecutive draws, each given to `estimate` as one chain: all ten of 1,000, and 20 (or
  `--blocks`) of any other size, spread evenly.
- The truth is not known. A block's reference is the average of our estimates from those blocks of 1,000
  draws that share no draw with it, mostly nine. Its standard error, $\\sqrt{\\sum_j s_j^2} / 9$, is
  added to that of the estimate in the calibration.
- **The gain is measured against differences that contain the reference's error, so it is, if anything,
  understated**: at 1,000 draws by a tenth or so.
- A bias that all our estimates share would not be seen so. *Reference off plain* in the table of 1,000 draws
  looks for one: the average of our ten estimates less the plain average of all 10,000 draws, divided
  by the standard error of the latter, root mean square over integrands. About 1 is chance. It finds
  biases that matter to 10,000 plain draws, not smaller ones.
- An average of few squared errors is uncertain: with ten blocks the gain of one integrand is
  known to a factor of about two, and differences between methods below that say little.
- ZVCV (R, CRAN 2.1.3) and the prototype were measured once, in November 2026, on the same blocks, with
  references of the prototype's; their times are from that machine. ZVCV gives no error bars. Medians
  and quartiles of theirs are of the rounded figures below; ZVCV's worst integrands and times are
  of all 22."""

WITHOUT = """\
**{count} estimates came without a standard error**; they count in gains, not in calibrations."""


def shown(value: float) -> str:
    """A gain in about three digits."""
    if 100 <= value < 99_999.5:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value < 100 else f"{value:.1e}".replace("e+0", "e").replace("e+", "e")


def both(gain: Sequence[float]) -> str:
    """Gains of the means and of the squares."""
    return " / ".join(map(shown, gain))


def listed(title: str, found: Sequence[str]) -> str:
    """An item of a list: how many were found, and which."""
    return f"- **{title}** ({len(found)}): {', '.join(found) or 'none'}."


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
