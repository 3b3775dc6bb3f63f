"""Non-centred eight schools, its exact answers, and the files of CmdStan's run of it, changed at will."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

# Rubin (1981)
EFFECTS = np.array([28.0, 8, -3, 7, -1, 1, 18, 12])
ERRORS = np.array([15.0, 10, 16, 11, 9, 11, 10, 18])

type Change = Callable[[str], str]


class Run:
    """Writes the files of the real run elsewhere, changed on the way.

    Each file gets the one table that CmdStan writes to it: the real files of draws begin with a copy
    of the diagnostics.
    """

    def __init__(self, source: Path, folder: Path):
        self.source, self.folder = source, folder

    def write(
        self, draws: Change = str, diagnostics: Change = str, name: str = "eight{}_{}.csv"
    ) -> Path:
        for chain in (1, 2, 3, 4):
            for kind, change in {"": draws, "-diagnostic": diagnostics}.items():
                text = (self.source / f"eight{kind}_{chain}.csv").read_text()
                table = "# stan_version_major" + text.split("# stan_version_major")[-1]
                (self.folder / name.format(kind, chain)).write_text(change(table))
        return self.folder

    def both(self, change: Change) -> Path:
        return self.write(change, change)


def replace(**settings: str) -> Change:
    """Set what the comments say."""

    def change(text: str) -> str:
        for name, value in settings.items():
            text, found = re.subn(rf"(# *{name} =).*", rf"\1 {value}", text)
            assert found
        return text

    return change


def columns(chosen: dict[str, str]) -> Change:
    """Keep the sampler's columns and some others, under new names."""

    def change(text: str) -> str:
        lines = text.splitlines()
        header = next(line for line in lines if line.startswith("lp__")).split(",")
        places = [i for i, name in enumerate(header) if name.endswith("__") or name in chosen]
        cells = [chosen.get(header[i], header[i]) for i in places]
        rows = [line.split(",") for line in lines if line[0] not in "#l"]
        comments = [line for line in lines if line.startswith("#")]
        body = [",".join(row[i] for i in places) for row in rows]
        return "\n".join([*comments[:-5], ",".join(cells), *body, *comments[-5:]]) + "\n"

    return change


def written(digits: int, shift: float = 0.0) -> Change:
    """As CmdStan writes with fewer digits; mu is moved, which leaves its score as it was."""

    def change(text: str) -> str:
        lines = text.splitlines()
        header = next(line for line in lines if line.startswith("lp__")).split(",")
        moved = np.where(np.array(header) == "mu", shift, 0.0)
        for i, line in enumerate(lines):
            if line[0] not in "#l":
                values = np.array(line.split(","), dtype=float) + moved
                lines[i] = ",".join(f"{value:.{digits}g}" for value in values)
        return "\n".join(lines) + "\n"

    return change


def log_density(x: np.ndarray) -> float:
    mu, tau, scaled = x[0], np.exp(x[1]), x[2:]
    residuals = (EFFECTS - mu - tau * scaled) / ERRORS
    prior = -(mu**2) / 50 - np.log1p((tau / 5) ** 2) + x[1] - np.sum(scaled**2) / 2
    return float(prior - np.sum(residuals**2) / 2)


def score(x: np.ndarray) -> np.ndarray:
    mu, tau, scaled = x[..., :1], np.exp(x[..., 1:2]), x[..., 2:]
    pull = (EFFECTS - mu - tau * scaled) / ERRORS**2
    of_mu = -mu / 25 + pull.sum(-1, keepdims=True)
    of_log_tau = 1 - 2 * tau**2 / (25 + tau**2) + tau * (pull * scaled).sum(-1, keepdims=True)
    return np.concatenate([of_mu, of_log_tau, tau * pull - scaled], axis=-1)


def means() -> np.ndarray:
    """The means of mu and tau: all but tau is Gaussian, and so integrated by hand."""
    tau = np.exp(np.linspace(np.log(1e-6), np.log(1e4), 200_001))
    precision = 1 / (ERRORS**2 + tau[:, None] ** 2)
    of_mu = precision.sum(1) + 1 / 25
    mu = (precision * EFFECTS).sum(1) / of_mu
    fit = np.log(precision).sum(1) - (precision * EFFECTS**2).sum(1) + of_mu * mu**2
    weight = np.exp((fit - np.log(of_mu)) / 2) / (1 + (tau / 5) ** 2) * tau
    return np.array([np.average(mu, weights=weight), np.average(tau, weights=weight)])


def cut(keep: float) -> Change:
    return lambda text: text[: int(keep * len(text))]


def without_rows(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if line[0] in "#l")
