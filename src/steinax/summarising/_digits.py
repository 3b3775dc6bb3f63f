"""Numbers to as many digits as their Monte Carlo errors support, by the rules of ArviZ."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas

MOST = 10  # significant digits: who needs more takes the number itself
FINEST = 1e-10  # of a standard deviation: the same, for a mean near zero
LONG, LONGEST = 1e6, 1e9  # counts that are not written out, and that mean "perfect"
PAIRS = {
    "mean": "mcse_mean",
    "sd": "mcse_sd",
    "plain_mean": "plain_mcse_mean",
    "plain_sd": "plain_mcse_sd",
}


def formatted(frame: "pandas.DataFrame") -> dict[str, dict[str, str]]:
    """How each number is shown, by column and row.

    An error has two significant digits, a mean or standard deviation as many places as twice its error;
    ArviZ stops at six significant digits, which is too early for controlled numbers, and here it is ten.
    R-hat has two places, effective sample sizes none, and all else what ArviZ's `stats.round_to` says.

    Args:
        frame: the table, a row for each parameter.
    """
    from arviz_base import rcParams

    digits = rcParams["stats.round_to"]
    shown = {}
    for column in frame.columns:
        numbers = frame[column].to_numpy(float)
        error = PAIRS.get(column)
        if error in frame.columns:
            scale = frame[_scale(column)].to_numpy(float) if _scale(column) in frame else 0.0
            errors = np.maximum(frame[error].to_numpy(float), FINEST * scale)
            cells = list(map(_by_error, numbers, errors))
        elif column == "r_hat":
            cells = [f"{number:.2f}" for number in numbers]
        elif column.startswith("ess"):
            cells = list(map(_count, numbers))
        elif column == "worth":
            cells = list(map(_worth, numbers))
        else:
            cells = [_rounded(number, digits) for number in numbers]
        shown[column] = dict(zip(frame.index, cells, strict=True))
    return shown


def _scale(column: str) -> str:
    return "plain_sd" if column.startswith("plain") else "sd"


def _by_error(number: float, error: float) -> str:
    from arviz_stats.base.stats_utils import get_decimal_places_from_se

    if not np.isfinite(number):
        return str(number)
    if not np.isfinite(error):
        return _rounded(number, "2g")
    places = get_decimal_places_from_se(error)
    if places < 0:
        return f"{number:.2e}"
    return _general(round(number, places))


def _rounded(number: float, digits: int | str) -> str:
    from arviz_stats.base.stats_utils import round_num

    return _general(float(round_num(number, digits)))


def _general(number: float) -> str:
    """Without zeros at its end, or a sign before nothing."""
    return f"{number + 0.0:.{MOST}g}"


def _count(number: float) -> str:
    if not np.isfinite(number) or number < LONG:
        return str(int(number)) if np.isfinite(number) else str(number)
    return (
        f">{LONGEST:.0e}".replace("+0", "")
        if number > LONGEST
        else f"{number:.1e}".replace("+0", "")
    )


def _worth(number: float) -> str:
    return f"{number:.1f}" if number < 9.95 else _count(number)
