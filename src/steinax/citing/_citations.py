import re
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np

from ..estimation import Estimate, WeightedDraws
from . import _references as rows
from ._beyond_references import RELATED, of_beyond
from ._discrete_references import of_discrete
from ._reference import Reference

_KERNEL = re.compile(
    r"KernelTranslates|SquaredExponential|InverseMultiquadric|ExponentialDotProduct"
    r"|CoordinatePairs|Directional"
)


@dataclass(frozen=True)
class Citations:
    """The software and the papers behind an estimate: print it, or take `bibtex`.

    Attributes:
        references: one for each, in the order in which they should be read.

    >>> import steinax as sx
    >>> "2006.07487" in sx.citations().bibtex
    True
    """

    references: tuple[Reference, ...]

    @property
    def bibtex(self) -> str:
        """All entries, for a file `references.bib`."""
        return "\n\n".join(reference.bibtex for reference in self.references)

    def __len__(self) -> int:
        return len(self.references)

    def __repr__(self) -> str:
        return "\n".join(f"For {one.reason}:\n  {one}" for one in self.references)

    __str__ = __repr__


def citations(estimate: Estimate | WeightedDraws | None = None) -> Citations:
    """What to cite for an estimate: only the papers of what was really used.

    Of an automatic choice these are the candidates that got a weight, not all that were tried.

    Args:
        estimate: what `estimate` or `weigh` gave; without one, the software and its method.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 1))
    >>> found = sx.citations(sx.estimate("x", sx.Sample(x, -x), sx.Polynomial(1)))
    >>> [one.key for one in found.references][2:4]
    ['assaraf1999zero', 'mira2013zero']
    """
    if estimate is None:
        return Citations((_software(), rows.METHOD))
    if not isinstance(estimate, Estimate | WeightedDraws):
        raise TypeError(
            f"a {type(estimate).__name__} does not say what it was made with: give citations what "
            "estimate or weigh returned, or nothing."
        )
    audited = (rows.TAILS,) if estimate.audit is not None else ()
    return Citations(
        (
            _software(),
            rows.METHOD,
            *_of_families(_used(estimate)),
            *_of_fitting(estimate.note),
            rows.CONVERGENCE,
            *audited,
        )
    )


def _software() -> Reference:
    return Reference(
        "steinax",
        "the software",
        "software",
        ("{The steinax developers}",),
        "steinax: Stein Control Variates for {Markov} Chain {Monte Carlo}",
        source=(("version", version("steinax")),),
    )


def _used(estimate: Estimate | WeightedDraws) -> tuple[str, ...]:
    """The control variates that took part, as they print."""
    if isinstance(estimate, WeightedDraws):
        return (estimate.chosen,)
    if estimate.candidates is None:
        return estimate.chosen
    weighty = np.abs(np.asarray(estimate.candidates.mixture)).sum(axis=1) > 0
    return tuple(
        name for name, used in zip(estimate.candidates.names, weighty, strict=True) if used
    )


def _of_families(used: tuple[str, ...]) -> list[Reference]:
    polynomial = [name for name in used if "Polynomial(" in name]
    kernel = [name for name in used if _KERNEL.search(name)]
    found = [rows.ZERO_VARIANCE, rows.POLYNOMIALS] if polynomial else []
    if any(", noise" in name for name in polynomial if name not in kernel):
        found.append(rows.PENALISED)
    if kernel:
        found.append(rows.KERNELS)
    if set(polynomial) & set(kernel):
        found.append(rows.SEMI_EXACT)
    if any("Network(" in name for name in used):
        found.append(rows.NETWORKS)
    if any("RandomFeatures(" in name for name in used):
        found.append(rows.RANDOM_FEATURES)
    return found + of_discrete(used) + of_beyond(used)


def _of_fitting(note: str) -> list[Reference]:
    words = {
        "Nyström": rows.NYSTROM,
        "Point-SAGA": rows.POINT_SAGA,
        "sparse:": rows.PENALISED,
        "windows of": rows.SPECTRAL,
        "folds": rows.CROSS_FITTING,
        "thinned draws": rows.THINNING,
        "related tasks": RELATED,
    }
    return [reference for word, reference in words.items() if word in note]
