"""Convert a run of NumPyro, or a NumPyro model and its draws, to a sample."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import numpy as np

from .._numerics import widest
from .._require import require
from .._types import PyTree
from ..data import Sample
from ._arrays import density_and_score
from ._pytrees import column_names, dataset, flat_columns, from_columns, leaves, over_draws
from ._training import as_sample, with_more


@dataclass(frozen=True)
class Site:
    """A site of a model: its kind, the shape of one draw of it, and the names of its axes."""

    kind: str
    shape: tuple[int, ...]
    dims: list[str]


def sites_of(
    model: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Site]:
    """List the sites of a model from a trace of shapes, without evaluating it."""
    from numpyro.handlers import seed, substitute, trace
    from numpyro.infer import init_to_sample

    sites = {}

    def record() -> None:
        started = substitute(seed(model, 0), substitute_fn=init_to_sample)
        for name, site in trace(started).get_trace(*args, **kwargs).items():
            kind = site["type"]
            if kind == "sample":
                discrete = site["fn"].support is not None and site["fn"].support.is_discrete
                kind = "observed" if site["is_observed"] else "discrete" if discrete else "latent"
            plates = sorted(site.get("cond_indep_stack", ()), key=lambda frame: frame.dim)
            events = (site.get("infer") or {}).get("event_dims", ())
            dims = [*(frame.name for frame in plates), *events]
            sites[name] = Site(kind, np.shape(site["value"]), dims)

    try:  # outside of this scope, data in float64 would be narrowed with a warning
        widest(lambda: jax.eval_shape(record), np.float64)
    except TypeError as error:
        if "missing" in str(error) and "argument" in str(error):
            raise TypeError(
                f"the model needs arguments ({error}): give those it was run with as model_args=(...) and "
                "model_kwargs={...}."
            ) from error
        raise
    return sites


def latent_sites(sites: Mapping[str, Site], samples: Mapping[str, np.ndarray]) -> list[str]:
    """List the latent sites, and check that all of them have draws by chain."""
    discrete = [name for name, site in sites.items() if site.kind == "discrete"]
    if discrete:
        raise ValueError(
            f"the sites {', '.join(discrete)} are discrete, and so have no score, which is a gradient. If "
            "they are data, give them as model_args or model_kwargs. If they are unknown, sum them out of "
            "the model by hand; or let NUTS sum them out, with "
            'extra_fields=("z_grad",), and give from_numpyro(mcmc).'
        )
    latent = sorted(name for name, site in sites.items() if site.kind == "latent")
    missing = [name for name in latent if name not in samples]
    if missing:
        raise ValueError(
            f"there are no draws of {', '.join(missing)}: give those of every latent site of the model, "
            "and the arguments it was run with as model_args and model_kwargs."
        )
    for name in latent:
        shape, event = samples[name].shape, sites[name].shape
        if len(shape) != len(event) + 2 or shape[2:] != event:
            raise ValueError(
                f"the draws of {name} have shape {shape}, not (chain, draw, {', '.join(map(str, event))}): "
                "take mcmc.get_samples(group_by_chain=True); for one chain add an axis, value[None]."
            )
    return latent


type Dims = Mapping[str, Sequence[str]]


def from_numpyro(
    source: Any,
    samples: Mapping[str, Any] | None = None,
    *,
    model_args: tuple[Any, ...] = (),
    model_kwargs: Mapping[str, Any] | None = None,
    dims: Dims | None = None,
    coords: Mapping[str, Any] | None = None,
    log_likelihood: bool = False,
    rescore: bool = False,
    warmup: Any = None,
    more: int = 0,
) -> Sample:
    r"""Create a sample from NumPyro: a run of `MCMC`, or a model and stored draws.

    **Free.** After `mcmc.run(key, ..., extra_fields=("z_grad",))` the scores are stored: `z_grad` is the
    gradient of the potential energy $-\log \pi$, so the score is $-$`z_grad`. Unconstrained draws are
    computed from the constrained ones by the transforms that the kernel keeps, and the model is not
    called. With `extra_fields=("z_grad", "z.beta", "z.tau")`, one `z.` for each latent site, they are
    exactly those of the sampler, even where a constrained value was rounded to the edge of its support.
    With `"potential_energy"` among the fields the audit compares the scores with it. The model is traced,
    once, only if the `z.` fields were not stored and a support depends on other sites, as that of
    `Uniform(0, tau)` does. Its density is never evaluated.

    **Recomputed.** Without `z_grad`, or from stored draws, scores are the gradients of
    `-numpyro.infer.util.potential_energy` at all draws at once, in float64.

    Args:
        source: a `numpyro.infer.MCMC` that was run, or a model.
        samples: for a model, the draws of its latent sites, each (chain, draw, ...), as
            `mcmc.get_samples(group_by_chain=True)` gives them. Other entries, such as deterministic
            sites, are kept; deterministic sites that are missing are computed.
        model_args: for a model, its positional arguments.
        model_kwargs: for a model, its keyword arguments.
        dims: the names of the axes of a site, after (chain, draw): `{"theta": ["school"]}`. Those of
            other sites are their plates; for stored scores only together with `coords`, because the model
            has to be traced for its plates (shapes only, without numbers).
        coords: the labels along such an axis: `{"school": ["Choate", ...]}`.
        log_likelihood: whether to compute the log likelihood of each observation, to request as
            `"log_likelihood/y"`.
        rescore: whether to compute stored scores again, in float64: those of a sampler that ran in
            float32 have about six digits.
        warmup: the warm-up draws, to use as training points: control variates are fitted to them, and they
            are not averaged. `mcmc.run` drops them, so take them before it, as in the second example: the
            result of `mcmc.get_samples(group_by_chain=True)`, whose scores are computed; or a pair of it and
            `mcmc.get_extra_fields(group_by_chain=True)`, with stored scores. For a model, draws like
            `samples`.
        more: the number of fresh points, from a Gaussian around the draws, at which scores and sites are
            computed too. Control variates are also fitted to them, for those integrands whose standard
            errors that lowers. It pays where the target is close to a Gaussian.

    Columns are in the order of `ravel_pytree`, which sorts the names of sites. A site that was not
    transformed keeps its name; a transformed one is called `tau_free__`, `w_free__[0]`.

    Example::

        mcmc = MCMC(NUTS(model), num_warmup=1000, num_samples=1000, num_chains=4)
        mcmc.run(jax.random.key(0), y=y, extra_fields=("z_grad",))
        sample = sx.from_numpyro(mcmc)
        sx.estimate("tau", sample)

        # the same draws, with the warm-up as training points
        fields = ("z_grad",)
        mcmc.warmup(jax.random.key(0), y=y, extra_fields=fields, collect_warmup=True)
        warmup = mcmc.get_samples(group_by_chain=True), mcmc.get_extra_fields(group_by_chain=True)
        mcmc.run(mcmc.post_warmup_state.rng_key, y=y, extra_fields=fields)
        sample = sx.from_numpyro(mcmc, warmup=warmup)
    """
    numpyro = require("numpyro", extra="numpyro")
    if isinstance(source, numpyro.infer.MCMC):
        if samples is not None or model_args or model_kwargs:
            raise ValueError(
                "an MCMC run contains its draws and the arguments of its model: give it alone, or give the "
                "model, from_numpyro(model, samples, model_args=...)."
            )
        read = partial(_from_run, source, rescore)
        taken = _taken(source)
    elif callable(source) and samples is not None:
        read = partial(_from_draws, source, tuple(model_args), dict(model_kwargs or {}))
        taken = samples, {}
    else:
        raise ValueError(
            f"{type(source).__name__} is neither an MCMC run nor a model with draws: give "
            "from_numpyro(mcmc), or from_numpyro(model, samples) with draws (chain, draw, ...) of each site."
        )
    parts = partial(_parts, dims=dims, coords=coords, log_likelihood=log_likelihood)
    scored = read(*taken)
    before = None
    if warmup is not None and warmup is not False:
        before = parts(read(*_given(warmup, taken[0]), refuse=False))
    sample = as_sample(parts(scored), before, asked=True)
    return with_more(sample, more, lambda x: parts(_at_points(x, scored), log_likelihood=False))


def _given(warmup: Any, samples: PyTree) -> tuple[PyTree, Mapping[str, Any]]:
    """Separate the draws and extra fields of a warm-up; the draws must have the shapes of `samples`."""
    if warmup is True:
        raise ValueError(
            "NumPyro does not keep its warm-up: call mcmc.warmup(key, ..., collect_warmup=True), then "
            "warmup = mcmc.get_samples(group_by_chain=True), then mcmc.run(...), and give warmup=warmup."
        )
    pair = isinstance(warmup, tuple) and len(warmup) == 2 and isinstance(warmup[1], Mapping)
    draws, fields = warmup if pair and "diverging" in warmup[1] else (warmup, {})
    draws = jax.tree.map(np.asarray, draws)
    wanted, found = (
        {
            jax.tree_util.keystr(path): (np.shape(leaf)[:1], np.shape(leaf)[2:])
            for path, leaf in pairs
        }
        for pairs in (jax.tree.leaves_with_path(tree) for tree in (samples, draws))
    )
    wrong = [name for name, shape in wanted.items() if found.get(name) != shape]
    if wrong:
        raise ValueError(
            f"the warm-up does not have the chains and shapes of the draws in {', '.join(wrong)}: give what "
            "mcmc.get_samples(group_by_chain=True) returns after mcmc.warmup(key, ..., collect_warmup=True), "
            "and before mcmc.run."
        )
    return draws, fields


@dataclass(frozen=True)
class _ScoredDraws:
    """Unconstrained draws of a model with their scores; `model` is None for a bare potential."""

    position: PyTree
    scores: np.ndarray
    log_density: np.ndarray | None
    variables: Mapping[str, np.ndarray]
    diverging: Any
    free: bool
    potential: Callable[[], Callable[[PyTree], Any]]
    model: Callable[..., Any] | None
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def _parts(
    scored: _ScoredDraws, dims: Dims | None, coords: Mapping[str, Any] | None, log_likelihood: bool
) -> dict[str, Any]:
    """Collect the arguments of `Sample`."""
    groups = {"posterior": scored.variables}
    if log_likelihood:
        groups["log_likelihood"] = _log_likelihood(scored)
    if scored.model is not None and (coords or not scored.free):
        sites = sites_of(scored.model, scored.args, scored.kwargs)
        known = {name for arrays in groups.values() for name in arrays}
        plates = {n: site.dims for n, site in sites.items() if site.dims and n in known}
        dims = {**plates, **(dims or {})}
    position = leaves(scored.position, "draws")
    return {
        "draws": flat_columns(position),
        "scores": scored.scores,
        "names": column_names(position, scored.variables, known=scored.model is None),
        "diverging": scored.diverging,
        "variables": dataset(groups, dims, coords) if scored.variables else None,
        "log_density": scored.log_density,
        "verified": True,
    }


def _taken(mcmc: Any) -> tuple[PyTree, Mapping[str, Any]]:
    """Take the draws and the extra fields of a run."""
    kernel, last = mcmc.sampler, mcmc.last_state
    if last is None:
        raise ValueError("this MCMC has not been run: call mcmc.run(key, ...) first.")
    if hasattr(kernel, "inner_kernel") or not hasattr(last, "z"):
        raise ValueError(
            f"{type(kernel).__name__} does not move all sites by the gradient of one log density "
            "(discrete sites, a subsample of the data), so its draws have no score: sample with NUTS, "
            "summing discrete sites out; if all sites are continuous and all data are used, give "
            "from_numpyro(model, samples)."
        )
    samples = jax.tree.map(np.asarray, mcmc.get_samples(group_by_chain=True))
    return samples, mcmc.get_extra_fields(group_by_chain=True)


def _from_run(
    mcmc: Any, rescore: bool, samples: PyTree, fields: Mapping[str, Any], refuse: bool = True
) -> _ScoredDraws:
    position = _unconstrained(mcmc, samples, fields)
    if refuse:
        _check_edges(position)
    free = "z_grad" in fields and not rescore
    if free:
        scores = -flat_columns(leaves(fields["z_grad"], "scores"))
        energy = fields.get("potential_energy")
        log_density = None if energy is None else -np.asarray(energy, np.float64)
    else:
        potential = _potential(mcmc)
        log_density, scores = density_and_score(lambda z: -potential(z), position, refuse)
    variables = samples if isinstance(samples, Mapping) else {}
    known = (fields.get("diverging"), free, partial(_potential, mcmc))
    run = (mcmc.sampler.model, mcmc._args, mcmc._kwargs)
    return _ScoredDraws(position, scores, log_density, variables, *known, *run)


def _at_points(x: np.ndarray, scored: _ScoredDraws) -> _ScoredDraws:
    """Evaluate the model of a run at other unconstrained points, (chain, draw, dim)."""
    position, potential = from_columns(x, scored.position), scored.potential()
    log_density, scores = density_and_score(lambda z: -potential(z), position, refuse=False)
    variables = {}
    if scored.model is not None:
        variables = _every_site(scored.model, scored.args, scored.kwargs, position)
    elif scored.variables:  # a bare potential, whose draws are the variables
        variables = position
    return replace(
        scored, position=position, scores=scores, log_density=log_density, variables=variables
    )


def _unconstrained(mcmc: Any, samples: PyTree, fields: Mapping[str, Any]) -> PyTree:
    """Compute the unconstrained draws of the sampler in the cheapest way available."""
    kernel, sites = mcmc.sampler, mcmc.last_state.z
    if isinstance(sites, Mapping) and all(f"z.{name}" in fields for name in sites):
        return {name: np.asarray(fields[f"z.{name}"]) for name in sorted(sites)}
    if mcmc.postprocess_fn is None and kernel.model is None:
        return samples
    missing = sorted(set(sites) - set(samples)) if isinstance(samples, Mapping) else list(sites)
    if mcmc.postprocess_fn is not None or missing:
        fields_needed = ", ".join(f'"z.{name}"' for name in sites)
        raise ValueError(
            "the draws of some sites were dropped or changed by a postprocess_fn, so the unconstrained "
            f'ones cannot be computed: keep them by mcmc.run(..., extra_fields=("z_grad", {fields_needed})).'
        )
    latent = {name: samples[name] for name in sorted(sites)}
    transforms = _kept_transforms(kernel)
    if transforms is not None:
        return over_draws(
            lambda draw: {name: transforms[name].inv(x) for name, x in draw.items()}, latent
        )
    return _traced(kernel.model, mcmc._args, mcmc._kwargs, latent)


def _kept_transforms(kernel: Any) -> Mapping[str, Any] | None:
    """Return the kernel's transforms to the constrained space if they are the same for all draws."""
    transforms = getattr(kernel, "_inv_transforms", None)
    if transforms is None or getattr(kernel, "_dynamic_support", True):
        return None
    arrays = [a for a in jax.tree.leaves(transforms) if isinstance(a, jax.Array | np.ndarray)]
    return None if arrays else transforms  # an array may be the value of a site at the first draw


def _traced(
    model: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], latent: PyTree
) -> PyTree:
    from numpyro.handlers import seed
    from numpyro.infer.util import unconstrain_fn

    seeded = seed(model, 0)  # for random keys inside the model: every latent site is given
    return over_draws(lambda draw: unconstrain_fn(seeded, args, kwargs, draw), latent)


def _potential(mcmc: Any) -> Callable[[PyTree], Any]:
    if hasattr(mcmc.sampler, "get_potential_fn"):  # it knows which sites are summed out
        return mcmc.sampler.get_potential_fn(mcmc._args, mcmc._kwargs)
    if mcmc.sampler.model is None:
        return mcmc.sampler._potential_fn
    return _model_potential(mcmc.sampler.model, mcmc._args, mcmc._kwargs)


def _model_potential(
    model: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Callable[[PyTree], Any]:
    from numpyro.handlers import seed
    from numpyro.infer.util import potential_energy

    return lambda z: potential_energy(seed(model, 0), args, kwargs, z)


def _from_draws(
    model: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    samples: Mapping[str, Any],
    fields: Mapping[str, Any],
    refuse: bool = True,
) -> _ScoredDraws:
    sites = sites_of(model, args, kwargs)
    samples = {name: np.asarray(value) for name, value in samples.items()}
    latent = {name: samples[name] for name in latent_sites(sites, samples)}
    position = _traced(model, args, kwargs, latent)
    if refuse:
        _check_edges(position)
    potential = _model_potential(model, args, kwargs)
    log_density, scores = density_and_score(lambda z: -potential(z), position, refuse)
    variables = {name: value for name, value in samples.items() if value.ndim >= 2}
    if any(site.kind == "deterministic" and name not in samples for name, site in sites.items()):
        variables = {**_every_site(model, args, kwargs, position), **variables}
    run = (fields.get("diverging"), False, lambda: potential, model, args, kwargs)
    return _ScoredDraws(position, scores, log_density, variables, *run)


def _every_site(
    model: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], position: PyTree
) -> dict[str, np.ndarray]:
    """Compute the constrained and the deterministic sites of unconstrained draws."""
    from numpyro.handlers import seed
    from numpyro.infer.util import constrain_fn

    def at_one_draw(z: PyTree) -> PyTree:
        return constrain_fn(seed(model, 0), args, kwargs, z, return_deterministic=True)

    return over_draws(at_one_draw, position)


def _log_likelihood(scored: _ScoredDraws) -> dict[str, np.ndarray]:
    from numpyro.infer import log_likelihood

    model, args, kwargs = scored.model, scored.args, scored.kwargs
    if model is None:
        raise ValueError(
            "a sampler that was given a potential_fn has no observations: leave out log_likelihood."
        )
    latent = {name: scored.variables[name] for name in scored.position}
    return over_draws(
        lambda draw: log_likelihood(model, draw, *args, batch_ndims=0, **kwargs), latent
    )


def _check_edges(position: PyTree) -> None:
    for site, values in leaves(position, "draws").items():
        bad = np.count_nonzero(~np.isfinite(values))
        if bad:
            raise ValueError(
                f"{bad} unconstrained values of {site} are not finite: its draws were rounded to the edge "
                "of its support. Keep the sampler's own values by mcmc.run(..., "
                f'extra_fields=("z_grad", "z.{site}", ...)) with every latent site, or run in float64.'
            )
