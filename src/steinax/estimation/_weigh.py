from collections.abc import Sequence

import numpy as np

from .._precision import precision, to_numpy
from .._progress import progress
from .._show import describe
from ..data import Integrands, Sample, Stream, integrands
from ..data._integrands import IntegrandSpec
from ..data._space import space_family
from ..families import AbstractFamily, AbstractLinearFamily
from ..fitting import prepare
from ..objectives import AbstractPenalty
from ..solvers._linear_map import linear_map
from ._audited import AuditMode, audited, noted, with_audit
from ._automatic import for_all
from ._splits import CrossFit
from ._weights import WeightedDraws

LEVELS = (0.05, 0.5, 0.95)  # of the quantiles that weights should be good for


def weigh(
    sample: Sample,
    family: AbstractFamily | None = None,
    *,
    f: IntegrandSpec | Integrands | None = None,
    penalty: AbstractPenalty | Sequence[AbstractPenalty] | None = None,
    audit: AuditMode = "raise",
) -> WeightedDraws:
    r"""Give each draw a weight, so that weighted averages have far smaller errors than plain ones.

    The weights $w$ are those with which $\sum_i w_i f(x_i)$ is the cross-fitted estimate of $E f$, for
    every $f$ at once: see `WeightedDraws`. With no family given, candidates are tried as in `estimate`,
    and the one that leaves the least variance, in the geometric mean over integrands, serves all.

    Args:
        sample: the draws and scores.
        family: of control variates, linear in its parameters; chosen from the draws by default.
        f: the integrands for which the family is chosen; by default every coordinate, its squared
            distance from its mean, and whether it lies below its 5, 50 and 95% quantiles.
        penalty: on the parameters of a family of your own, one for all terms or one for each.
        audit: what to do if the scores are not those of the draws, as in `estimate`.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 100, 2))
    >>> draws = sx.weigh(sx.Sample(x, -x))
    >>> np.allclose(draws.weights.sum(), 1.0)
    True
    >>> draws.quantile("x[0]", 0.5).names
    ('x[0] 50%',)
    """
    if isinstance(sample, Stream):
        raise TypeError("weigh needs its draws in memory: give a Sample.")
    _check(family, f, penalty)
    report, family = audited(sample, audit), family or space_family(sample)
    dtype = np.float64 if family is None else sample.dtype  # the search is that of estimate
    with precision(dtype), progress("weighing draws"):
        if family is None:
            fitted, chosen, note = for_all(_wanted(f, sample), sample)
            folds = fitted.blocks.folds
        else:
            nothing = Integrands(np.zeros((*sample.draws.shape[:2], 1), sample.dtype), ("f",))
            problem, _ = prepare(nothing, sample, family, penalty, None)
            folds = CrossFit().boundaries(sample.chains, sample.length)
            fitted, how = linear_map(problem, folds)
            chosen, note = describe(problem.family), f"{len(folds)} folds, {how}"
        weights = np.asarray(fitted.weights()).reshape(sample.chains, sample.length)
        note = noted(note, audit)
        found = WeightedDraws(weights, sample, to_numpy(fitted), report, folds, chosen, note)
        with_audit(found.mean(_moments(sample)), report, audit)  # for what it raises or warns of
        return found


def _moments(sample: Sample) -> dict[str, np.ndarray]:
    """The columns and their squares, standardised: what weights must agree with plain averages on."""
    x = np.asarray(sample.draws, np.float64)
    y = (x - x.mean(axis=(0, 1))) / np.maximum(x.std(axis=(0, 1)), np.finfo(np.float64).tiny)
    columns = {name: y[..., i] for i, name in enumerate(sample.names)}
    return columns | {f"the square of {name}": one**2 for name, one in columns.items()}


def _wanted(f: IntegrandSpec | Integrands | None, sample: Sample) -> Integrands:
    if f is not None:
        return integrands(f, sample)
    x = sample.draws
    squares = ((x - x.mean(axis=(0, 1))) / np.ptp(x, axis=(0, 1))) ** 2  # of draws of any unit
    below = {f"below {q}": x <= np.quantile(x, q, axis=(0, 1)) for q in LEVELS}
    return integrands({"x": x, "square": squares, **below}, sample)


def _check(family: AbstractFamily | None, f: object, penalty: object) -> None:
    if family is None and penalty is not None:
        raise ValueError(
            "a penalty goes with a family: give one as the second argument, such as Polynomial(2), or "
            "leave it out and all is chosen from the draws."
        )
    if family is not None and f is not None:
        raise ValueError(
            "f is for choosing a family, and one is given: the weights do not depend on f. Leave it out, "
            "and give f to mean, sd, ratio, probability or quantile of the result."
        )
    if family is not None and not isinstance(family, AbstractLinearFamily):
        raise TypeError(
            f"{type(family).__name__} is not linear in its parameters, so its estimates are no weighted "
            "averages of f: use Polynomial, KernelTranslates or RandomFeatures, or estimate(f, ...)."
        )
