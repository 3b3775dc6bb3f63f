"""Whether scores are the gradients of the log densities that came with the draws."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from .._types import AnyArray, Chains
from ..data import Sample
from ._errors import effective_sizes
from ._integrity import listed
from ._repairs import Names, Repair, lag, order, sign, swapped
from ._report import Finding
from ._suspects import Suspect, suspect
from ._trapezoid import Misfit, misfit_of

LEAST = 40  # draws; with fewer nothing is compared
PER_DIM = 10  # draws for each dimension, at least
ERRORS = 1.5  # plain standard errors by which an estimate must be moved for a mistake to matter
MATERIAL = 0.02  # a smaller bias is not reported, however sure: in standard deviations
SHARE = 0.3  # of the least bias: a smaller misfit needs no explanation
APART = 1.5  # times the misfit of other chains: one that has more is looked at alone
MENDED = 0.2  # of the misfit: what a repair may leave
OPPOSED = -0.3  # rank correlation of energies and work, below which the energies are potential ones


def energies(sample: Sample) -> Finding | None:
    r"""The error of the scores that the log densities of the draws give away, if there is one.

    For near draws $\log\pi(x_i) - \log\pi(x_j)$ is compared with $\tfrac12 (s_i + s_j) \cdot (x_i - x_j)$.
    The difference is explained by an error of the scores: a constant for each column (a Jacobian), a line
    (a prior), a factor (a temperature), or by scores that belong to other draws. An error is reported if it
    explains the differences at draws it was not fitted to, does not vanish with the distance, and would
    move an estimate by more than the standard error of the plain average.
    """
    whole = _whole(sample)
    misfit = whole.misfit
    if misfit.agreement < OPPOSED:  # a potential energy; the sign of the scores is tested elsewhere
        whole = replace(whole, density=-whole.density)
        misfit = whole.misfit
    found = _examine(whole, misfit)
    if found is None and sample.chains > 1:
        found = _one_chain(whole, misfit)
    return found


def comparable(sample: Sample) -> bool:
    """Whether there are log densities, and draws enough to compare the scores with them."""
    return sample.log_density is not None and _whole(sample).enough


def _whole(sample: Sample) -> "_Part":
    assert sample.log_density is not None
    draws, scores = (np.asarray(one, np.float64) for one in (sample.draws, sample.scores))
    return _Part(draws, scores, sample.log_density, sample.names)


_ELSE = (
    "If `log_density` itself is of another density than the one sampled, leave it out: "
    "Sample(..., log_density=None)."
)


@dataclass(frozen=True)
class _Part:
    """Some draws of a sample with their scores and log densities."""

    draws: Chains
    scores: Chains
    density: AnyArray
    names: Names

    @property
    def enough(self) -> bool:
        chains, length, dim = self.draws.shape
        moves = np.ptp(self.draws, axis=(0, 1)) > 0
        return length >= 8 and chains * length >= max(LEAST, PER_DIM * dim) and bool(moves.all())

    @property
    def misfit(self) -> Misfit:
        dim = self.draws.shape[2]
        x, score = self.draws.reshape(-1, dim), self.scores.reshape(-1, dim)
        return misfit_of(x, score, self.density.ravel())

    @property
    def least(self) -> float:
        """The bias that matters, in standard deviations: somewhat more than a plain standard error."""
        sizes, _ = effective_sizes(np.moveaxis(self.draws, -1, 0))
        most = self.draws.shape[0] * self.draws.shape[1]
        return float(max(ERRORS / np.sqrt(min(np.median(sizes), most)), MATERIAL))

    def repaired(self, repair: Repair) -> "_Part":
        return _Part(repair.draws, repair.scores, self.density[:, repair.kept], self.names)


def _examine(part: _Part, misfit: Misfit, chain: int | None = None) -> Finding | None:
    """The repair or the error that explains the misfit of some draws."""
    least = part.least
    if misfit.share < SHARE * least:
        return None
    error = suspect(misfit, least)
    proposals = [*_other_places(part)]
    if error is not None:
        proposals += _transforms(part, error.size >= 0.5 * error.size.max())
    tried = [(part.repaired(repair).misfit.size, i) for i, repair in enumerate(proposals)]
    if tried and min(tried)[0] < MENDED * misfit.size:
        repair = proposals[min(tried)[1]]
        return Finding(repair.kind, _of(chain, repair.message), columns=repair.columns)
    return None if error is None else _told(error, part, least, chain)


def _one_chain(part: _Part, misfit: Misfit) -> Finding | None:
    """A chain whose scores are wrong where those of all together are not: one of more misfit than others."""
    step = -(-part.density.size // len(misfit.y))
    of_draw = np.arange(0, part.density.size, step) // part.density.shape[1]
    off = np.abs(misfit.left) / misfit.square
    for chain in range(len(part.draws)):
        touches = (of_draw[misfit.first] == chain) | (of_draw[misfit.second] == chain)
        if touches.all() or np.median(off[touches]) < APART * np.median(off[~touches]):
            continue
        rows = slice(chain, chain + 1)
        alone = _Part(part.draws[rows], part.scores[rows], part.density[rows], part.names)
        if alone.enough and (found := _examine(alone, alone.misfit, chain)):
            return found
    return None


def _other_places(part: _Part) -> Iterator[Repair]:
    """Scores that belong to other draws, chains or columns, or have the wrong sign."""
    for propose in (sign, lag, order, swapped):
        yield from propose(part.draws, part.scores, part.names)


def _transforms(part: _Part, which: AnyArray) -> list[Repair]:
    """The columns in doubt with a Jacobian added, or with draws taken to the unconstrained space."""
    x, s = part.draws, part.scores
    columns = tuple(name for name, one in zip(part.names, which, strict=True) if one)
    inside = x[..., which]
    with np.errstate(over="ignore"):
        sigmoid = 1.0 / (1.0 + np.exp(-x))
    terms = {
        "add 1 to the scores (a log transform)": np.ones_like(x),
        "add 1 - 2 sigmoid(draws) to the scores (logit)": 1.0 - 2.0 * sigmoid,
        "subtract 2 tanh(draws) from the scores (a correlation)": -2.0 * np.tanh(x),
    }
    found = [
        Repair(
            "jacobian",
            x,
            np.where(which, s + term, s),
            f"the scores of {listed(columns)} lack the Jacobian of a transformed parameter: with it they are "
            "the gradients of the log density that came with the draws. Differentiate the log density of the "
            f"unconstrained parameters, or {fix}.",
            columns,
        )
        for fix, term in terms.items()
    ]
    for word, allowed in (
        ("log", (inside > 0).all()),
        ("logit", ((inside > 0) & (inside < 1)).all()),
    ):
        if allowed:
            safe = np.where(which, x, 0.5)
            free = np.log(safe) - (np.log1p(-safe) if word == "logit" else 0.0)
            message = (
                f"the draws of {listed(columns)} are constrained and their scores are those of the "
                f"unconstrained parameters: the log densities agree with the {word} of the draws. Give the "
                "unconstrained draws, and transform back inside the integrands."
            )
            found.append(Repair("constrained", np.where(which, free, x), s, message, columns))
    return found


def _told(error: Suspect, part: _Part, least: float, chain: int | None) -> Finding:
    """An error of the scores in words."""
    worst = np.abs(error.bias).max()
    columns = tuple(
        name
        for name, bias in zip(part.names, np.abs(error.bias), strict=True)
        if bias >= max(0.5 * worst, 0.5 * least)
    )
    causes = {
        "constant": "A term that is linear in these columns is missing or too many: the Jacobian of a "
        "transformed parameter, or part of a prior or of the data.",
        "tempered": "All scores are too large or too small by one factor: look for a temperature, a "
        "likelihood counted twice, or a minibatch gradient without its factor N / batch.",
        "clipped": "The largest scores all have the same size: gradients were clipped. Give the gradients "
        "as they are.",
        "smooth": "A term is left out, such as a prior or the Jacobian of a simplex or a correlation; or the "
        "scores are of other data.",
    }
    moved = f", which moves the mean of {listed(columns)} by {worst:.2g} standard deviations"
    message = (
        "the scores are not the gradients of the log density that came with the draws"
        f"{moved if worst >= least else ''}. {causes[error.kind]} {_ELSE}"
    )
    kind = {"constant": "term", "smooth": "term"}.get(error.kind, error.kind)
    return Finding(kind, _of(chain, message), columns=columns if worst >= least else ())


def _of(chain: int | None, message: str) -> str:
    return message if chain is None else f"chain {chain} alone fails: {message}"
