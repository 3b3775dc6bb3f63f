"""Draws of chains with their scores, names, weights and space."""

import abc
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import equinox as eqx
import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import ArrayLike, DTypeLike

from .._require import no_attribute
from .._show import Described, counted, some_of
from .._types import AnyArray, Chains, Points
from ._variables import AXES, Variables, unstacked

ADAPTERS = (
    "Convert the result of a sampler with from_nutpie(trace), from_pymc(model, trace), "
    "from_numpyro(mcmc), from_blackjax(states), from_pystan(fit), from_cmdstan(fit) or from_arviz(path)."
)
LIGHTEST = 1e-30  # smallest weight, relative to the mean: fits divide by it, also in float32
_ELSEWHERE = {
    "sel": "chains and draws are selected by position, sample.isel(chain=0) or sample[:, :500]",
    "mean": "estimate(name, sample) has expectations, and summary(sample) those of all parameters",
}
MISSING = (
    "draws without scores, or scores without draws: give Sample(draws, scores), the score of a draw "
    "being the gradient of the log density there. nutpie, NumPyro and CmdStan can keep scores, and "
    "PyStan always does; from_pymc(model, trace) computes them from the model, and "
    "from_logdensity(log_density, draws) from any log density in jax."
)


def as_chains(values: ArrayLike, what: str, dtype: DTypeLike) -> np.ndarray:
    """Convert draws or scores to a finite array, (chain, draw, dim)."""
    if dtype not in (np.float64, np.float32):  # also as strings: "float32"
        raise ValueError(f"dtype {dtype!r} is not supported: use float64 or float32.")
    if values is None:
        raise ValueError(MISSING)
    if isinstance(values, Mapping):
        raise ValueError(
            f"{what} are a {type(values).__name__}: give one array, (chain, draw, dim). {ADAPTERS} For a "
            "dict of draws use from_logdensity(log_density, draws)."
        )
    array = as_reals(values, what)
    with np.errstate(over="ignore"):  # overflows of float32 are refused below
        array = np.ascontiguousarray(array, dtype=dtype)
    if array.ndim == 2:
        array = array[None]
    if array.ndim != 3 or 0 in array.shape:
        raise ValueError(
            f"{what} have shape {array.shape}: give (chain, draw, dim), or (draw, dim) for one chain. "
            "For a one-dimensional target add an axis: draws[..., None]."
        )
    if not np.isfinite(array).all():
        bad = np.argwhere(~np.isfinite(array))
        chain, draw, column = bad[0]
        raise ValueError(
            f"{what} are not finite at {counted(len(bad), 'place')}, the first at chain {chain}, draw "
            f"{draw}, dimension {column}: drop those draws, or find out why the sampler gave them."
        )
    return array


def as_reals(values: object, what: str) -> np.ndarray:
    """Convert values to an array of real numbers; refuse what would be masked or parsed silently."""
    if isinstance(values, np.ma.MaskedArray):
        if np.any(values.mask):
            raise ValueError(
                f"{what} are partly masked, and an average would ignore the mask: leave out the "
                "masked draws, and give a plain array."
            )
        values = values.data
    try:
        array = np.asarray(values)
    except (TypeError, ValueError):  # rows of different lengths, mostly
        raise ValueError(
            f"{what} of type {type(values).__name__} do not form an array: give an array of numbers, with "
            "rows of equal length."
        ) from None
    if array.dtype.kind not in "fiu":
        raise ValueError(
            f"{what} are of type {array.dtype}: give real numbers, as an array of floats."
        )
    return array


def reals(label: str, values: object) -> np.ndarray:
    """Convert the values of an integrand to an array of real numbers; booleans become 0 or 1."""
    if getattr(getattr(values, "dtype", None), "kind", "") == "b":
        values = np.asarray(values, dtype=np.float64)
    return as_reals(values, f"values of the integrand {label!r}")


def places(name: str, names: Sequence[str]) -> list[int]:
    """Find the indices of a name among others: its own, or those of all elements of a vector.

    >>> places("beta", ["mu", "beta[0]", "beta[1]"])
    [1, 2]
    """
    if name in names:
        return [names.index(name)]
    return [i for i, candidate in enumerate(names) if candidate.startswith(name + "[")]


def as_log_density(values: ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    """Convert log densities to a finite array, (chain, draw)."""
    density = _per_draw(values, "log_density", shape).astype(np.float64)
    if not np.isfinite(density).all():
        raise ValueError(
            f"{int((~np.isfinite(density)).sum())} of {density.size} values of log_density are not finite: "
            "give the log density that the sampler kept for each draw, or leave log_density out."
        )
    return density


def _per_draw(
    values: ArrayLike, what: str, shape: tuple[int, ...], noun: str = "number"
) -> np.ndarray:
    """Convert values to an array with one real number for each draw, (chain, draw)."""
    array = as_reals(_ordered(values), what)
    array = array[None] if array.ndim == 1 else array
    if array.shape != shape:
        raise ValueError(
            f"{what} has shape {array.shape} and the draws {shape} (chain, draw): give one {noun} for each "
            "draw."
        )
    return array


def as_weights(logs: ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    """Compute weights of mean 1 from their logarithms, (chain, draw)."""
    array = _per_draw(logs, "log_weights", shape, "logarithm")
    if not np.isfinite(array).all():
        raise ValueError(
            f"{int((~np.isfinite(array)).sum())} of {array.size} log_weights are not finite: leave out draws "
            "whose weight is zero, from draws and scores too, and find out why others are NaN or infinite."
        )
    weights = np.exp(array.astype(np.float64) - array.max())
    return np.maximum(weights / weights.mean(), LIGHTEST)


def kish_size(weights: np.ndarray) -> float:
    r"""Compute the equivalent number of unweighted draws, $(\sum_i w_i)^2 / \sum_i w_i^2$ (Kish, 1965).

    >>> round(kish_size(np.array([1.0, 1.0, 2.0])), 2)
    2.67
    """
    return float(np.sum(weights) ** 2 / np.sum(np.square(weights)))


def as_flags(values: ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    """Convert values to one boolean for each draw, (chain, draw)."""
    flags = np.asarray(_ordered(values))
    if flags.ndim == 1:
        flags = flags[None]
    if flags.shape != shape or not np.isin(flags, (0, 1)).all():
        raise ValueError(
            f"diverging has shape {flags.shape} and type {flags.dtype}, but the draws have {shape} "
            "(chain, draw): give true or false for each draw, or leave it out."
        )
    return flags.astype(bool)


def unlabelled(values: Any) -> tuple[Any, tuple[str, ...] | None]:
    """Extract the values, axes in order, and the column names, if any, of a data frame or DataArray.

    >>> import pandas
    >>> unlabelled(pandas.DataFrame({"mu": [0.5], "tau": [2.0]}))
    (array([[0.5, 2. ]]), ('mu', 'tau'))
    """
    if hasattr(values, "columns") and hasattr(values, "to_numpy"):
        return values.to_numpy(), _strings(values.columns)
    ordered = _ordered(values)
    if len(getattr(ordered, "dims", ())) == 3:
        last = ordered.dims[2]
        return ordered.values, _strings(ordered[last].values) if last in ordered.coords else None
    return ordered, None


def _ordered(values: Any) -> Any:
    """Transpose a DataArray to (chain, draw, ...), if it has these axes; return anything else unchanged."""
    array = unstacked(values)
    return array.transpose(*AXES, ...) if set(AXES) <= set(getattr(array, "dims", ())) else array


def common(draws: tuple[str, ...] | None, scores: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return the names of the draws or else the scores; refuse the same names in different orders."""
    if draws and scores and set(draws) == set(scores) and draws != scores:
        raise ValueError(
            f"the columns of the draws are {', '.join(draws[:5])} and those of the scores "
            f"{', '.join(scores[:5])}: give both in one order."
        )
    return draws or scores


def _strings(labels: Iterable[object]) -> tuple[str, ...] | None:
    """Return labels as names if they are distinct strings; None otherwise."""
    names = tuple(labels)
    distinct = len(set(names)) == len(names)
    return tuple(map(str, names)) if distinct and all(isinstance(n, str) for n in names) else None


class AbstractSpace(Described):
    r"""Base class of spaces of draws other than $\mathbb{R}^d$: a box, a sphere, the counts.

    A space defines which draws lie in it, which operators have mean zero there, what correct scores are, and
    which family to use. Its draws are standardised only as far as it allows.

    >>> from steinax.data import Sample
    >>> Sample([[1.0]], [[1.0]]).space is None
    True
    """

    @property
    @abc.abstractmethod
    def domain(self) -> str:
        """The word that identifies the space to its operators."""

    @property
    def is_discrete(self) -> bool:
        """Whether the space is discrete, so that draws may coincide."""
        return False

    @property
    def has_marginals(self) -> bool:
        """Whether coordinates have distributions by themselves, on which chains should agree."""
        return True

    @abc.abstractmethod
    def check(self, draws: Chains) -> None:
        """Raise an error with advice if draws do not lie in the space."""

    @property
    @abc.abstractmethod
    def operator(self) -> Any:
        """The Stein operator of the space on vector fields."""

    @property
    @abc.abstractmethod
    def potential_operator(self) -> Any:
        """The Stein operator of the space on potentials."""

    def coordinates(self, x: Points) -> tuple[AnyArray, AnyArray]:
        """Compute the shift and scale of each dimension for fits: 0 and 1 by default.

        Operators that depend on positions have to be moved too: see `AbstractOperator.moved`.
        """
        return np.zeros(x.shape[1]), np.ones(x.shape[1])

    def unbounded(self, x: Chains, score: Chains) -> tuple[AnyArray, AnyArray] | None:
        r"""Transform draws and scores to coordinates that fill $\mathbb{R}^d$, to choose families as there.

        Returns None, the default, if there are no such coordinates.
        """
        return None

    @abc.abstractmethod
    def identities(self, draws: Chains, scores: Chains) -> AnyArray:
        """Evaluate functions with mean zero for correct scores on each draw: (chain, draw, count)."""

    def repairs(self, draws: Chains, scores: Chains) -> Iterator[Any]:
        """Yield draws and scores with one common mistake undone, each an `auditing.Repair`: none by default.

        The audit names the first with which the identities hold.
        """
        return iter(())

    @abc.abstractmethod
    def family(self, n: int, dim: int) -> Any:
        """Return the default family for all integrands, for `n` distinct draws of dimension `dim`."""

    def families(self, n: int, dim: int) -> tuple[Any, ...]:
        """Return the families from which `estimate` chooses for each integrand: `family` alone by default.

        They are linear in their parameters. A sum with a kernel is tried with each of several penalties, and
        so is the kernel alone.
        """
        return (self.family(n, dim),)


def space_family(sample: Any) -> Any:
    """Return the default family of the sample's space; None on R^d, where it is chosen from the draws."""
    return sample.space.family(*_sizes(sample)) if has_families(sample) else None


def space_families(sample: Any) -> tuple[Any, ...]:
    """Return the families of the sample's space from which one is chosen for each integrand."""
    return sample.space.families(*_sizes(sample))


def has_families(sample: Any) -> bool:
    """Return whether the sample's space has its own families, rather than coordinates that fill R^d."""
    return sample.space is not None and on_the_reals(sample) is None


def _sizes(sample: Any) -> tuple[int, int]:
    """Return the number of distinct draws, as repeated states add no information, and of dimensions."""
    return len(np.unique(sample.x, axis=0)), sample.dim


def on_the_reals(sample: Any) -> tuple[AnyArray, AnyArray] | None:
    """Return draws and scores, as chains, in coordinates that fill R^d; None if there are none."""
    if sample.space is None:
        return sample.draws, sample.scores
    return sample.space.unbounded(sample.draws, sample.scores)


def refuse_space(sample: Any, what: str) -> None:
    """Refuse draws whose space would be ignored."""
    if getattr(sample, "space", None) is not None:
        raise ValueError(
            f"the draws live on {sample.space!r}, and {what} supports R^d only: use estimate, fit or weigh "
            "on a Sample in memory."
        )


def check_draws(space: AbstractSpace | None, draws: np.ndarray) -> AbstractSpace | None:
    """Return the space after checking that the draws lie in it."""
    if space is None:
        return None
    if not isinstance(space, AbstractSpace):
        raise TypeError(
            f"the space is {space!r}: give one of steinax.spaces, such as Box(0.0, 1.0)."
        )
    space.check(draws)
    return space


class Sample(eqx.Module):
    r"""Draws of one or more chains with their scores.

    The score of a draw $x$ is $\nabla \log \pi(x)$, the gradient of the log density, on the
    unconstrained space in which the draws are given. The density need not be normalised.

    Args:
        draws: $x_i$, shape (chain, draw, dim), or (draw, dim) for one chain: an array, a data frame, or
            a DataArray with axes `chain` and `draw` in any order, or as `az.extract` stacks them.
        scores: $\nabla \log \pi(x_i)$, of the same shape.
        names: one name per dimension; by default those of a data frame's columns, or `x[0]`, `x[1]`, ...
        dtype: float64, in which estimates are computed, or float32, which halves the memory and
            leaves about seven digits: variance reductions beyond a factor of 1e10 or so are lost.
        diverging: which draws ended in a divergence, (chain, draw), for the audit to count.
        variables: the model's constrained parameters and derived quantities on every draw, accessed by
            name: a DataTree with a group `posterior`, or a Dataset. Adapters fill it.
        log_weights: logarithms of importance weights, (chain, draw), of draws from another density than
            that of the scores, or of SMC particles; any constant may be added to all. They are not
            smoothed: use `steinax.data.pareto_smoothed` for that.
        space: where the draws live, one of `steinax.spaces`; all of R^d by default.
        log_density: $\log \pi(x_i)$ up to a constant, (chain, draw), as most samplers keep it (`lp__` of
            Stan). The audit compares the scores with its differences. Adapters fill it.
        verified: whether the scores are known to be right: adapters compute them by automatic
            differentiation and set it. Otherwise tables show no more digits than those of plain averages
            until `audit(sample, log_density=...)` has compared the scores with the log density.
        training: further points with scores, as a `Sample` or several, that control variates are fitted
            to and that are never averaged: warm-up draws, leapfrog states, another run. They need not be
            draws of the target. Points far outside the draws are left out.
        tried: further training points, as a `Sample` or several, that `estimate` uses only for those
            integrands whose standard errors they lower, such as points from a Gaussian around the draws.
        assumed: whether the scores are of a function that nothing shows to be the one sampled. The audit
            then says how different the two could be.

    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> Sample(x, -x, names=["mu", "log_tau"])
    Sample(4 chains x 250 draws, 2 dimensions: mu, log_tau)
    """

    draws: Chains
    scores: Chains
    names: tuple[str, ...] = eqx.field(static=True)
    diverging: Bool[AnyArray, "chain draw"] | None
    variables: Variables | None = eqx.field(static=True)
    weights: Float[AnyArray, "chain draw"] | None  # of mean 1
    space: AbstractSpace | None
    log_density: Float[AnyArray, "chain draw"] | None
    verified: bool = eqx.field(static=True)
    training: tuple["Sample", ...]
    tried: tuple["Sample", ...]
    assumed: bool = eqx.field(static=True)

    def __init__(
        self,
        draws: ArrayLike,
        scores: ArrayLike = None,  # pyright: ignore[reportArgumentType]  # refused below
        names: Sequence[str] | None = None,
        dtype: DTypeLike = np.float64,
        diverging: ArrayLike | None = None,
        variables: Any = None,
        log_weights: ArrayLike | None = None,
        space: AbstractSpace | None = None,
        log_density: ArrayLike | None = None,
        verified: bool = False,
        training: "Sample | Sequence[Sample] | None" = None,
        tried: "Sample | Sequence[Sample] | None" = None,
        assumed: bool = False,
    ):
        draws, draw_names = unlabelled(draws)
        scores, score_names = unlabelled(scores)
        self.draws = as_chains(draws, "draws", dtype)
        self.scores = as_chains(scores, "scores", dtype)
        if self.draws.shape != self.scores.shape:
            raise ValueError(
                f"draws have shape {self.draws.shape} and scores {self.scores.shape}: each draw needs "
                "its own score, a gradient with one entry per dimension. Give both as "
                "(chain, draw, dim)."
            )
        self.names = as_names(common(draw_names, score_names) if names is None else names, self.dim)
        self.diverging = None if diverging is None else as_flags(diverging, self.draws.shape[:2])
        self.weights = (
            None if log_weights is None else as_weights(log_weights, self.draws.shape[:2])
        )
        self.space = check_draws(space, self.draws)
        shape = self.draws.shape[:2]
        self.log_density = None if log_density is None else as_log_density(log_density, shape)
        self.verified, self.assumed = bool(verified), bool(assumed)
        self.variables = None if variables is None else Variables(variables)
        if self.variables is not None and self.variables.sizes != self.draws.shape[:2]:
            raise ValueError(
                f"the variables have {self.variables.sizes} chains and draws, and the draws "
                f"{self.draws.shape[:2]}: give those of the same draws, warm-up left out of both."
            )
        self.training, self.tried = (_as_training(each, self) for each in (training, tried))

    @property
    def chains(self) -> int:
        """The number of chains."""
        return self.draws.shape[0]

    @property
    def length(self) -> int:
        """The number of draws in each chain."""
        return self.draws.shape[1]

    @property
    def dim(self) -> int:
        """The dimension of a draw."""
        return self.draws.shape[2]

    @property
    def size(self) -> int:
        """The number of draws in all chains together."""
        return self.chains * self.length

    @property
    def dtype(self) -> np.dtype:
        """The floating-point type in which everything is computed."""
        return np.dtype(self.draws.dtype)

    @property
    def single(self) -> bool:
        """Whether the scores were computed in float32: all of them are float32 numbers."""
        return bool((self.scores == self.scores.astype(np.float32)).all())

    @property
    def x(self) -> Points:
        """All draws, chains one after the other: (n, dim)."""
        return self.draws.reshape(self.size, self.dim)

    @property
    def score(self) -> Points:
        """All scores, in the order of `x`: (n, dim)."""
        return self.scores.reshape(self.size, self.dim)

    def isel(self, chain: Any = slice(None), draw: Any = slice(None)) -> "Sample":
        """Select chains and draws, with everything that belongs to them.

        Names, variables with their coordinates, divergences, weights, log densities and the space are
        kept. So are both axes: a number selects one chain, or one draw of each. Weights are normalised to
        mean 1 again.

        Args:
            chain: a number, a slice, a list of numbers or an array of flags; all chains by default.
            draw: the draws of each chain, in the same forms; all draws by default.

        >>> import numpy as np
        >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
        >>> Sample(x, -x).isel(chain=0, draw=slice(None, 100))
        Sample(1 chain x 100 draws, 2 dimensions: x[0], x[1])
        """
        chain, draw = _places(chain, self.chains, "chain"), _places(draw, self.length, "draw")

        def selected(values: np.ndarray | None) -> np.ndarray | None:
            return None if values is None else values[chain][:, draw]

        return Sample(
            self.draws[chain][:, draw],
            self.scores[chain][:, draw],
            self.names,
            self.dtype,
            selected(self.diverging),
            None if self.variables is None else self.variables.isel(chain, draw),
            None if self.weights is None else np.log(self.weights[chain][:, draw]),
            self.space,
            selected(self.log_density),
            verified=self.verified,
            training=self.training,
            tried=self.tried,
            assumed=self.assumed,
        )

    def extended(self, more: "Sample") -> "Sample":
        """Append further draws of the same chains.

        Training points are those of both. What only one of the two has, such as variables, is left out.

        Args:
            more: as many chains, with the same columns, and no importance weights.

        >>> import numpy as np
        >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
        >>> Sample(x[:, :100], -x[:, :100]).extended(Sample(x[:, 100:], -x[:, 100:]))
        Sample(4 chains x 250 draws, 2 dimensions: x[0], x[1])
        """
        weighted = self.weights is not None or more.weights is not None
        alike = (self.names, self.chains, self.space) == (more.names, more.chains, more.space)
        if weighted or not alike:
            raise ValueError(
                f"{more!r} cannot be appended to {self!r}: give further draws of the same chains, with "
                "the same columns on the same space, without importance weights."
            )
        pair = (self.variables, more.variables)
        return Sample(
            np.concatenate([self.draws, more.draws], axis=1),
            np.concatenate([self.scores, more.scores], axis=1),
            self.names,
            self.dtype,
            _appended(self.diverging, more.diverging),
            None if pair[0] is None or pair[1] is None else pair[0].extended(pair[1]),
            space=self.space,
            log_density=_appended(self.log_density, more.log_density),
            verified=self.verified and more.verified,
            training=(*self.training, *more.training),
            tried=(*self.tried, *more.tried),
            assumed=self.assumed or more.assumed,
        )

    def with_training(
        self, *training: "Sample", tried: "Sample | Sequence[Sample]" = ()
    ) -> "Sample":
        """Replace the training points; without arguments there are none.

        Args:
            training: points with scores that control variates are fitted to and that are never averaged.
            tried: further ones, used where they lower the standard error of an estimate.

        >>> import numpy as np
        >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
        >>> sample = Sample(x[:, 200:], -x[:, 200:]).with_training(Sample(x[:, :190], -x[:, :190]))
        >>> sample
        Sample(4 chains x 50 draws, 2 dimensions: x[0], x[1], 760 training points)
        >>> sample.with_training()
        Sample(4 chains x 50 draws, 2 dimensions: x[0], x[1])
        """
        parts = [_as_training(training, self), _as_training(tried, self)]
        return eqx.tree_at(
            lambda sample: [sample.training, sample.tried], self, parts, is_leaf=_is_tuple
        )

    def __getitem__(self, index: Any) -> "Sample":
        """Select chains and draws: `sample[:, :500]` is the first 500 draws of every chain.

        The first index selects chains and the second draws, as in `isel`.

        >>> import numpy as np
        >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
        >>> Sample(x, -x)[:, ::10]
        Sample(4 chains x 25 draws, 2 dimensions: x[0], x[1])
        """
        pair = index if isinstance(index, tuple) else (index,)
        if len(pair) > 2 or isinstance(index, str):
            raise TypeError(
                f"sample[{index!r}]: give chains and draws, such as sample[:, :500]. Name "
                'dimensions and variables in estimate instead: estimate("mu", sample).'
            )
        return self.isel(*pair)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str):
            raise AttributeError(no_attribute("Sample", name, _ELSEWHERE), name=name, obj=self)

    def blocks(self, size: int) -> Iterator["Sample"]:
        """Yield the draws as one-chain samples of at most `size` draws."""
        for chain in range(self.chains):
            for start in range(0, self.length, size):
                rows = slice(start, start + size)
                block = self.isel(chain, rows)
                if self.weights is not None:  # keep the normalisation over all draws
                    weights = self.weights[chain, rows][None]
                    block = eqx.tree_at(lambda sample: sample.weights, block, weights)
                yield block

    def __repr__(self) -> str:
        names = self.names if self.variables is None else self.variables.names
        shown = some_of(names, 4)
        chains, dims = counted(self.chains, "chain"), counted(self.dim, "dimension")
        worth = (
            "" if self.weights is None else f", weights worth {kish_size(self.weights):.0f} draws"
        )
        points = sum(part.size for part in self.training)
        training = f", {counted(points, 'training point')}" if points else ""
        trial = sum(part.size for part in self.tried)
        training += f", {trial} to be tried" if trial else ""
        return f"Sample({chains} x {self.length} draws, {dims}: {shown}{worth}{training})"


def _appended(first: np.ndarray | None, second: np.ndarray | None) -> np.ndarray | None:
    """Append what is known of further draws; None if one of the two is not known."""
    if first is None or second is None:
        return None
    return np.concatenate([first, second], axis=1)


def _is_tuple(node: object) -> bool:
    return isinstance(node, tuple)


def check_sample(sample: object) -> None:
    """Refuse what is not a sample, such as the trace of a sampler."""
    if not isinstance(sample, Sample):
        raise TypeError(
            f"the sample is of type {type(sample).__name__}: give a Sample(draws, scores). {ADAPTERS}"
        )


def _as_training(training: object, sample: Sample) -> tuple[Sample, ...]:
    """Check that training points are samples with the columns and the space of the draws."""
    several = training if isinstance(training, list | tuple) else [training]
    given = [] if training is None else several
    parts: list[Sample] = []
    for part in given:
        if not isinstance(part, Sample):
            raise TypeError(
                f"the training points are of type {type(part).__name__}: give a Sample(draws, scores), or "
                "several."
            )
        if part.names != sample.names:
            raise ValueError(
                f"the training points have the columns {some_of(part.names, 5)}, and the draws "
                f"{some_of(sample.names, 5)}: give both in the same coordinates, with the same names."
            )
        if part.space != sample.space:
            raise ValueError(
                f"the training points live on {part.space or 'R^d'}, and the draws on "
                f"{sample.space or 'R^d'}: give both on the same space."
            )
        parts += [*part.training, part.with_training() if part.training or part.tried else part]
    return tuple(parts)


def _places(index: Any, size: int, axis: str) -> Any:
    """Convert an index along an axis to a slice or an array of positions."""
    try:
        positions = np.arange(size)[index]
    except IndexError as error:
        raise IndexError(
            f"{axis}={index!r}, and there are {size}: give a number, a slice, a list of numbers from 0 to "
            f"{size - 1}, or {size} flags."
        ) from error
    if positions.ndim > 1 or not positions.size:
        raise ValueError(
            f"{axis}={index!r} leaves an array of shape {positions.shape} of {size}: keep one or more, as a "
            "slice or a list."
        )
    if positions.ndim == 0:
        return slice(int(positions), int(positions) + 1)
    return index if isinstance(index, slice) else positions


def as_names(names: Sequence[str] | None, dim: int) -> tuple[str, ...]:
    """Check that there is one distinct name for each dimension; `x[0]`, `x[1]`, ... by default."""
    if names is None:
        return tuple(f"x[{i}]" for i in range(dim))
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise ValueError(
            f"the names {names!r} are not a list of strings: give one string for each column of the "
            'draws, such as names=["mu", "tau"].'
        )
    twice = [name for name, count in Counter(names).items() if count > 1]
    if len(names) != dim or twice:
        which = f", {twice[0]!r} more than once" if twice else ""
        raise ValueError(
            f"{len(names)} names for {dim} dimensions{which}: give one distinct name for each column of the "
            "draws, or none at all."
        )
    return tuple(names)
