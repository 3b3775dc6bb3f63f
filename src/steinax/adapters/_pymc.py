"""Convert a PyMC model and its trace to a sample."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from weakref import WeakKeyDictionary

import jax
import numpy as np

from .._numerics import precision
from .._require import require
from .._show import counted
from ..data import Sample, element
from ._pytrees import from_columns
from ._stored import (
    STATS,
    has_scores,
    open_tree,
    stored_divergences,
    stored_log_density,
    stored_parts,
    stored_warmup,
    warmup_tree,
)
from ._training import as_sample, with_more

if TYPE_CHECKING:
    import xarray


class ModelFunctions(NamedTuple):
    """Compiled functions of a model; they take arrays (n, ...), one for each variable, in its order."""

    unconstrain: Callable[..., list[np.ndarray]]
    density: Callable[..., list[np.ndarray]]  # log density (n,) and score (n, dim)


_CACHE: WeakKeyDictionary[Any, tuple[tuple[Any, ...], ModelFunctions]] = WeakKeyDictionary()


def compiled_functions(model: Any, backend: str) -> ModelFunctions:
    """Compile the functions of a model, or reuse them if the model has not changed.

    PyTensor's functions read data containers, which are shared variables, at every call; jax compiles
    them as constants.
    """
    identity = (backend, *model.basic_RVs, *model.value_vars, *model.potentials)
    if backend == "jax":
        identity += tuple(data.get_value(borrow=True) for data in model.data_vars)
    cached = _CACHE.get(model)
    if cached is None or list(map(id, cached[0])) != list(map(id, identity)):
        over_draws = BACKENDS[backend]
        _CACHE[model] = cached = (
            identity,
            ModelFunctions(*(over_draws(*graph) for graph in _graphs(model))),
        )
    return cached[1]


def _graphs(model: Any) -> Iterator[tuple[list[Any], list[Any]]]:
    """Yield inputs and outputs, at one point, of the transforms and then of the density."""
    from pytensor.graph.replace import clone_replace

    points = {rv: rv.type(rv.name) for rv in model.free_RVs}
    values = []
    for rv, point in points.items():
        transform = model.rvs_to_transforms[rv]
        values.append(point if transform is None else transform.forward(point, *rv.owner.inputs))
    # Bounds may depend on other variables of the model, which are replaced by their points too.
    yield list(points.values()), clone_replace(values, replace=points, rebuild_strict=False)
    yield model.value_vars, [model.logp(), model.dlogp()]


def _by_numpy(inputs: list[Any], outputs: list[Any]) -> Callable[..., list[np.ndarray]]:
    from pytensor.compile.mode import Mode

    # all rewrites that improve accuracy, and none meant for a compiler
    mode = Mode(linker="py", optimizer="fast_run").excluding("fusion", "inplace")
    return _by_pytensor(inputs, outputs, mode)


def _by_numba(inputs: list[Any], outputs: list[Any]) -> Callable[..., list[np.ndarray]]:
    return _by_pytensor(inputs, outputs, "NUMBA")


def _by_pytensor(
    inputs: list[Any], outputs: list[Any], mode: Any
) -> Callable[..., list[np.ndarray]]:
    from pytensor.graph.replace import vectorize_graph

    pytensor = require("pytensor", extra="pymc")
    many = [  # without names, because PyTensor refuses some, such as "half"
        pytensor.tensor.tensor(dtype=x.dtype, shape=(None, *x.type.shape)) for x in inputs
    ]
    batched = vectorize_graph(outputs, dict(zip(inputs, many, strict=True)))
    return pytensor.function(many, batched, mode=mode, on_unused_input="ignore")


def _by_jax(inputs: list[Any], outputs: list[Any]) -> Callable[..., list[np.ndarray]]:
    jax.devices()  # before PyMC's module, which would request a hundred devices
    from pymc.sampling.jax import get_jaxified_graph

    with precision(np.float64):  # constants of the graph become arrays of jax here
        at_one_draw = get_jaxified_graph(inputs=inputs, outputs=outputs)
    many = jax.jit(jax.vmap(at_one_draw))

    def evaluate(*points: np.ndarray) -> list[np.ndarray]:
        with precision(np.float64):
            return [np.asarray(value) for value in many(*points)]

    return evaluate


BACKENDS = {"numpy": _by_numpy, "numba": _by_numba, "jax": _by_jax}


UNFIT = re.compile(r"shape|broadcast|dimension|mismatch|out of bounds", re.IGNORECASE)
NEAR = 1e-3  # of the range of log densities: other data or another model differ by far more


def from_pymc(
    model: Any,
    idata: Any,
    *,
    backend: Literal["numpy", "numba", "jax"] = "numpy",
    check: bool = True,
    warmup: bool = True,
    more: int = 0,
) -> Sample:
    r"""Create a sample from a PyMC model and any trace of it.

    **Free.** If nutpie stored the scores they are read, and the density is not evaluated. It stores them with
    `pm.sample(nuts_sampler="nutpie", nuts={"store_gradient": True},
    idata_kwargs={"include_transformed": True})`.

    **Recomputed.** From any other trace each variable $\theta$ is mapped to the unconstrained space,
    $x = T(\theta)$ with its transform $T$ in the model, and the scores are those of

    $$\log \pi(x) = \log p(T^{-1}(x), y) + \log |\det \partial T^{-1}(x) / \partial x|,$$

    PyMC's own gradient evaluated at all draws at once. It is compiled on the first call for a model and
    reused by later calls for the same model.

    Args:
        model: the `pm.Model` that was sampled, with the data it had then.
        idata: its trace, by any sampler: the result of `pm.sample`, or the netCDF file or zarr store that it
            was saved to.
        backend: what evaluates the gradient. `"numpy"` compiles nothing, but takes a few seconds even for
            few draws; matrices are factorised draw by draw. `"jax"` compiles in seconds and is the
            fastest on many draws, but not every model can be written in jax, and PyTensor then sets
            `jax_enable_x64` for the whole process, as it does whenever PyMC uses jax. `"numba"` is PyMC's
            own, as fast, and compiles for up to minutes.
        check: whether to compare the model's log density with the one that the sampler stored in the
            trace, which detects data that were changed in between. Turn it off for a trace of several
            step methods, which may hold the density of a point between two of them.
        warmup: whether to use the warm-up draws, which `pm.sample(..., discard_tuned_samples=False)` keeps,
            as training points: control variates are fitted to them, and they are not averaged. To thin the
            draws, thin the sample, `sample[:, ::5]`: a thinned trace has fewer training points too.
        more: the number of fresh points, from a Gaussian around the draws, at which scores and variables
            are computed too. Control variates are also fitted to them, for those integrands whose standard
            errors that lowers. It pays where the target is close to a Gaussian.

    Columns are in the order of `model.value_vars` and have their names: `beta[1]`, `tau_log__`,
    `w_simplex__[0]`. The variables to request by name are those of the trace.

    Example::

        with model:
            idata = pm.sample(discard_tuned_samples=False)  # keeps the warm-up
        sx.estimate("tau", sx.from_pymc(model, idata))
    """
    pymc = require("pymc", extra="pymc")
    if not isinstance(model, pymc.Model):
        raise TypeError(
            f"the first argument is a {type(model).__name__}, not a PyMC model: give "
            "from_pymc(model, idata), the model first."
        )
    if backend not in BACKENDS:
        raise ValueError(f"backend={backend!r}: use one of {', '.join(map(repr, BACKENDS))}.")
    if not model.free_RVs:
        raise ValueError("the model has no variables to sample: give the model of the trace.")
    tree = open_tree(idata)
    if tree.name == "posterior":  # trace.posterior, of which the trace is the parent
        tree = tree.parent or tree
    _refuse_discrete(model)
    sample = _of_trace(model, tree, backend, check, warmup)
    return with_more(sample, more, lambda x: _at_points(model, x, backend))


def _of_trace(
    model: Any, tree: "xarray.DataTree", backend: str, check: bool, warmup: bool
) -> Sample:
    """Create the sample from stored scores, or else from computed ones."""
    if has_scores(tree):
        parts = stored_parts(tree)
        layout = _match(parts["names"], [value.name for value in model.value_vars])
        if layout is not None:
            before = stored_warmup(tree, parts["names"], warmup)
            parts = {**_reordered(parts, *layout), "variables": tree, "verified": True}
            return as_sample(parts, None if before is None else _reordered(before, *layout))
    parts = _recompute(model, tree, backend)
    if check and STATS in tree.children:
        _check_density(tree[STATS].dataset, parts["log_density"].ravel())
    warm = warmup_tree(tree, warmup)
    kept = warm["posterior"].data_vars if "posterior" in warm.children else ()
    complete = all(rv.name in kept for rv in model.free_RVs)
    return as_sample(parts, _recompute(model, warm, backend, refuse=False) if complete else None)


def _reordered(parts: Mapping[str, Any], order: list[int], names: list[str]) -> dict[str, Any]:
    """Put the columns in another order, under other names."""
    return {**parts, "names": names} | {x: parts[x][..., order] for x in ("draws", "scores")}


def _refuse_discrete(model: Any) -> None:
    discrete = [value.name for value in model.discrete_value_vars]
    if discrete:
        raise ValueError(
            f"the model has discrete variables, {', '.join(discrete)}, and a log density has no gradient in "
            "them: sum them out, by pymc_extras.marginalize(model, names) or by a mixture distribution such "
            "as pm.Mixture, and sample the remaining variables."
        )


def _match(columns: tuple[str, ...], values: list[str]) -> tuple[list[int], list[str]] | None:
    """Find the columns of the model's value variables, in the model's order, and their names.

    The order of nutpie differs between its backends, so columns are matched by name; None if the names
    in the trace are not those of the model.
    """
    order, names = [], []
    for value in values:
        positions = {}
        for i, column in enumerate(columns):
            if column == value:
                positions[()] = i
            elif match := re.fullmatch(re.escape(value) + r"(?:_([\d.]+)|\[([\d, ]+)\])", column):
                positions[tuple(int(k) for k in re.findall(r"\d+", match[1] or match[2]))] = i
        order += [positions[index] for index in sorted(positions)]
        names += [element(value, index) for index in sorted(positions)]
    return (order, names) if sorted(order) == list(range(len(columns))) else None


def _recompute(
    model: Any, tree: "xarray.DataTree", backend: str, refuse: bool = True
) -> dict[str, Any]:
    """Compute the arguments of `Sample` by the model.

    Args:
        model: the `pm.Model`.
        tree: with a group `posterior`.
        backend: what evaluates the model.
        refuse: whether draws that are not finite on the unconstrained space are an error; otherwise their
            scores are NaN.
    """
    posterior = tree["posterior"].dataset if "posterior" in tree.children else {}
    missing = [rv.name for rv in model.free_RVs if rv.name not in posterior]
    if missing:
        raise ValueError(
            f"the trace has no {', '.join(missing)}, which the model has: give the model that was sampled, "
            "and a trace that keeps all its free variables."
        )
    series = [_series(posterior[rv.name]) for rv in model.free_RVs]
    for rv, values in zip(model.free_RVs, series, strict=True):
        _check_shape(rv, values.shape[2:])
    shape = series[0].shape[:2]
    points = [values.reshape(-1, *values.shape[2:]) for values in series]
    with np.errstate(all="ignore"), _explained():  # errors of numbers are at the edge of a support
        unconstrain, density = compiled_functions(model, backend)
        unconstrained = unconstrain(*points)
    if refuse:
        _check_finite(model, points, unconstrained, shape[1])
    draws = np.concatenate([x.reshape(len(x), -1) for x in unconstrained], axis=1)
    finite = np.isfinite(draws).all(axis=1)
    log_density, scores = np.full(len(draws), np.nan), np.full(draws.shape, np.nan)
    if finite.any():
        with _explained():
            log_density[finite], scores[finite] = density(*(x[finite] for x in unconstrained))
    names = [
        element(value.name, index)
        for value, x in zip(model.value_vars, unconstrained, strict=True)
        for index in np.ndindex(*x.shape[1:])
    ]
    return {
        "draws": draws.reshape(*shape, -1),
        "scores": scores.reshape(*shape, -1),
        "names": names,
        "diverging": stored_divergences(tree),
        "variables": tree,
        "log_density": log_density.reshape(shape),
        "verified": True,
    }


@contextmanager
def _explained() -> Iterator[None]:
    """Explain the errors of arrays that do not fit together: the model has other data than it had."""
    try:
        yield
    except (ValueError, TypeError, IndexError) as error:
        if not UNFIT.search(str(error)):
            raise
        why = str(error).strip().partition("\n")[0]
        raise ValueError(
            f"the model cannot be evaluated on the trace ({why}): it has other data, or data of another "
            "shape, than when it was sampled. Set the original data again, by pm.set_data, before from_pymc."
        ) from error


def _at_points(model: Any, x: np.ndarray, backend: str) -> dict[str, Any]:
    """Compute the arguments of `Sample` at other unconstrained points, (chain, draw, dim)."""
    from arviz_base import from_dict

    names = [rv.name for rv in model.unobserved_RVs]
    constrained = model.replace_rvs_by_values(model.unobserved_RVs)
    quantities = BACKENDS[backend](model.value_vars, constrained)
    start = model.initial_point(0)
    like = [np.asarray(start[value.name])[None, None] for value in model.value_vars]
    points = [values[0] for values in from_columns(x, like)]
    with np.errstate(all="ignore"):
        log_density, scores = compiled_functions(model, backend).density(*points)
        values = [each.reshape(*x.shape[:2], *each.shape[1:]) for each in quantities(*points)]
    tree = from_dict({"posterior": dict(zip(names, values, strict=True))}, check_conventions=False)
    return {
        "draws": x,
        "scores": np.reshape(scores, x.shape),
        "log_density": np.reshape(log_density, x.shape[:2]),
        "variables": tree,
    }


def _series(array: "xarray.DataArray") -> np.ndarray:
    return np.asarray(array.transpose("chain", "draw", ...).values)


def _check_shape(rv: Any, shape: tuple[int, ...]) -> None:
    wanted = rv.type.shape  # None where the model leaves a length open
    fits = len(shape) == len(wanted) and all(
        w in (None, f) for w, f in zip(wanted, shape, strict=True)
    )
    if not fits:
        raise ValueError(
            f"{rv.name} has shape {shape} in the trace and {wanted} in the model: give the model that was "
            "sampled, with the data it had then."
        )


def _check_finite(
    model: Any, points: list[np.ndarray], unconstrained: list[np.ndarray], length: int
) -> None:
    """Refuse draws that are not finite on the unconstrained space; chains have a length."""
    for rv, given, x in zip(model.free_RVs, points, unconstrained, strict=True):
        bad = ~np.isfinite(x.reshape(len(x), -1)).all(axis=1)
        if bad.any():
            first = int(bad.argmax())
            chain, draw = divmod(first, length)
            missing = np.isnan(given.reshape(len(x), -1)[first]).any()
            why = "NaN" if missing else "outside the support or rounded to its edge"
            raise ValueError(
                f"{counted(int(bad.sum()), 'draw')} of {rv.name} cannot be used, the first of them draw "
                f"{draw} of chain {chain}, which is {why}: give the model that was sampled; or leave out "
                "those draws, or let nutpie keep the unconstrained ones, as from_nutpie describes."
            )


def _check_density(stats: "xarray.Dataset", log_density: np.ndarray) -> None:
    """Refuse a trace whose log densities are not the model's, up to a constant and a sign.

    Some samplers omit constants, and some store the potential energy under that name.
    """
    recorded = stored_log_density(stats)
    if recorded is None:
        return
    difference = min(np.ptp(recorded.ravel() - log_density), np.ptp(recorded.ravel() + log_density))
    if not difference <= NEAR * max(np.ptp(log_density), 1.0):
        raise ValueError(
            "the log densities in the trace differ from those of the model, by up to "
            f"{difference:.3g} beyond a constant: give the model that was sampled, with the data it had "
            "then (pm.set_data). If PyMC used several step methods (it lists them when it samples, such as "
            "NUTS and Metropolis), the trace may hold densities from between two of them: then give "
            "check=False."
        )
