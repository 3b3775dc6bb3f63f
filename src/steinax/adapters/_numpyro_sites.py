"""What a NumPyro model says of its sites without computing: kinds, shapes and plates."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from .._precision import precision


@dataclass(frozen=True)
class Site:
    """A site of a model: its kind, the shape of one draw of it, and the names of its axes."""

    kind: str
    shape: tuple[int, ...]
    dims: list[str]


def sites_of(
    model: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Site]:
    """The sites of a model, from a trace of shapes: nothing is computed."""
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

    with precision(np.float64):  # data in float64 would be narrowed with a warning outside
        jax.eval_shape(record)
    return sites


def latent_sites(sites: Mapping[str, Site], samples: Mapping[str, np.ndarray]) -> list[str]:
    """The latent sites, all of which have draws by chain."""
    discrete = [name for name, site in sites.items() if site.kind == "discrete"]
    if discrete:
        raise ValueError(
            f"the sites {', '.join(discrete)} are discrete, and a score is a gradient, which they have "
            "not: sum them out of the model by hand; or let NUTS sum them out, with "
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
        shape, one = samples[name].shape, sites[name].shape
        if len(shape) != len(one) + 2 or shape[2:] != one:
            raise ValueError(
                f"the draws of {name} have shape {shape}, not (chain, draw, {', '.join(map(str, one))}): "
                "take mcmc.get_samples(group_by_chain=True); for one chain add an axis, value[None]."
            )
    return latent
