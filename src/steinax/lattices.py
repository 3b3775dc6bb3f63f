"""Real scalar fields on a lattice: samples, observables by name, derived quantities, and pyerrors."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from ._numerics import namespace, precision
from ._require import require
from ._show import some_of
from ._types import AnyArray, Series
from .auditing import AuditMode, audited
from .chains import linearised
from .data import Integrands, IntegrandSpec, Sample, as_reals, element, integrands
from .estimation import CrossFit
from .families import AbstractFamily, correlate
from .solvers import Auto, prepare

__all__ = [
    "connected",
    "effective_mass",
    "from_fields",
    "from_pyerrors",
    "observables",
    "to_pyerrors",
]

type Shape = Sequence[int]
type Derived = Callable[[Mapping[str, Any]], Any]


def from_fields(
    fields: ArrayLike, scores: ArrayLike, name: str = "phi", *, log_density: ArrayLike | None = None
) -> Sample:
    r"""Create a sample from configurations of a field, with its sites as further axes.

    The columns are called `phi[0, 0]`, `phi[0, 1]`, ..., by which `steinax.families.Lattice` knows the shape.

    Args:
        fields: $\phi$, (chain, draw, ...), with the axes of the lattice last.
        scores: $-\partial S / \partial \phi$, of the same shape: the force on every site, in units of the
            field itself, without the step size or the mass of a molecular-dynamics momentum.
        name: of the field.
        log_density: $-S$ up to a constant, (chain, draw), for the audit.

    >>> phi = np.random.default_rng(0).normal(size=(4, 50, 4, 4))
    >>> from_fields(phi, -phi)
    Sample(4 chains x 50 draws, 16 dimensions: phi[0, 0], phi[0, 1], phi[0, 2], ...)
    """
    draws, forces = as_reals(fields, "fields"), as_reals(scores, "scores")
    if draws.ndim < 3 or draws.shape != forces.shape:
        raise ValueError(
            f"fields have shape {draws.shape} and scores {forces.shape}: give both as (chain, draw, *shape), "
            "with an axis of length 1 for a single chain."
        )
    names = [element(name, index) for index in np.ndindex(*draws.shape[2:])]
    flat = (*draws.shape[:2], -1)
    return Sample(draws.reshape(flat), forces.reshape(flat), names, log_density=log_density)


def observables(shape: Shape, names: Sequence[str] | None = None) -> dict[str, Callable]:
    r"""Return observables of a periodic lattice with V sites, as functions of one configuration.

    All are averaged over translations, by FFT, and over reflections:

    - `phi`, `phi^2`, `phi^4`: averages over the sites;
    - `chi`: $\frac1V (\sum_x \phi_x)^2$, the susceptibility of a field with mean zero;
    - `C`: zero-momentum correlators $C_t = \frac1V \sum_{x, y} \phi_x \phi_y$, over all $x$ and $y$ whose
      time slices are at distance $t$, for $t = 0, 1, ..., T/2$;
    - `G`: correlators along the time axis, $G_t = \langle \phi_x \phi_{x + t e} \rangle$, for the same $t$.

    Time runs along the longest axis; if several have its length, correlators are averaged over them.

    Args:
        shape: the number of sites along each axis.
        names: the observables to return; all by default.

    >>> import steinax as sx
    >>> phi = np.random.default_rng(0).normal(size=(4, 100, 4, 4))
    >>> est = sx.estimate(observables((4, 4)), from_fields(phi, -phi), sx.families.Lattice())
    >>> bool(np.allclose(est["C"].value, [1, 0, 0]))
    True
    """
    shape = tuple(shape)
    if not shape or min(shape) < 1:
        raise ValueError(
            f"observables: the shape is {shape}: give the number of sites along each axis."
        )
    known = {
        "phi": lambda x, /: x.mean(),
        "phi^2": lambda x, /: (x**2).mean(),
        "phi^4": lambda x, /: (x**4).mean(),
        "chi": lambda x, /: x.sum() ** 2 / x.shape[0],
        "C": lambda x, /: _correlators(x, shape)[0],
        "G": lambda x, /: _correlators(x, shape)[1],
    }
    unknown = sorted(set(names or ()) - set(known))
    if unknown:
        raise ValueError(f"no observable is called {unknown[0]!r}: there are {', '.join(known)}.")
    return {name: known[name] for name in names or known}


def _correlators(x: AnyArray, shape: tuple[int, ...]) -> tuple[AnyArray, AnyArray]:
    """Compute the correlators of one configuration, (dim,): at zero momentum and along the time axis."""
    if prod(shape) != x.shape[0]:
        raise ValueError(
            f"observables({shape}) are of {prod(shape)} sites and a configuration has {x.shape[0]}: give the "
            "shape of the sample's lattice."
        )
    xp, time = namespace(x), max(shape)
    phi = xp.reshape(x, (1, *shape))
    sums = correlate(phi, phi)[0] / prod(shape)
    distances = np.arange(time // 2 + 1)
    slices, along = [], []
    for axis in (axis for axis, n in enumerate(shape) if n == time):
        lines = xp.reshape(xp.moveaxis(sums, axis, 0), (time, -1))
        slices.append(xp.sum(lines, axis=1)[distances])
        along.append(lines[distances, 0])
    return sum(slices) / len(slices), sum(along) / len(along)


def effective_mass(shape: Shape, of: str = "C") -> dict[str, Derived]:
    r"""Return effective masses of a correlator, as functions of expectations for `Estimate.derived`.

    The correlator of one state on a periodic lattice is a hyperbolic cosine, for which
    $m_t = \operatorname{arcosh} \frac{C_{t-1} + C_{t+1}}{2 C_t}$ is its mass at every $t$. Where no such
    mass exists because of noise, the value is NaN; where the correlator is too noisy for error
    propagation, the error is NaN.

    Args:
        shape: the number of sites along each axis.
        of: the name of the correlator, as `"C"` or `"C_c"`.

    >>> import steinax as sx
    >>> phi = np.random.default_rng(0).normal(size=(4, 100, 8))
    >>> est = sx.estimate(observables((8,), ["C"]), from_fields(phi, -phi), sx.families.Lattice())
    >>> est.derived(effective_mass((8,))).names
    ('m_eff[1]', 'm_eff[2]', 'm_eff[3]')
    """

    def mass(t: int) -> Derived:
        def at(mean: Mapping[str, Any]) -> jax.Array:
            before, here, after = (mean[f"{of}[{i}]"] for i in (t - 1, t, t + 1))
            return jnp.arccosh((before + after) / (2 * here))

        return at

    return {f"m_eff[{t}]": mass(t) for t in range(1, max(shape) // 2)}


def connected(shape: Shape) -> dict[str, Derived]:
    r"""Return connected correlators and susceptibility, as functions of expectations for `Estimate.derived`.

    From `phi`, `chi` and `C` of `observables`: $\chi_c = \chi - V \langle\phi\rangle^2$ and $C_{c, t} = C_t -
    \frac VT \langle\phi\rangle^2$, called `chi_c` and `C_c[0]`, `C_c[1]`, .... Use them with a source, or
    in a phase in which the field has a mean and does not tunnel; `Lattice(symmetric=False)` then has the
    features for `phi`.

    Args:
        shape: the number of sites along each axis.

    >>> list(connected((2, 4)))
    ['chi_c', 'C_c[0]', 'C_c[1]', 'C_c[2]']
    """
    sites, time = prod(shape), max(shape)

    def correlator(t: int) -> Derived:
        return lambda mean: mean[f"C[{t}]"] - sites / time * mean["phi"] ** 2

    whole: dict[str, Derived] = {"chi_c": lambda mean: mean["chi"] - sites * mean["phi"] ** 2}
    return whole | {f"C_c[{t}]": correlator(t) for t in range(time // 2 + 1)}


def to_pyerrors(
    f: IntegrandSpec | Integrands,
    sample: Sample,
    family: AbstractFamily | None = None,
    *,
    ensemble: str = "steinax",
    audit: AuditMode = "raise",
) -> dict[str, Any]:
    r"""Export expectations to pyerrors, each an `Obs` with a replicum for every chain.

    With a family the history of an `Obs` is that of the residuals $f - g$, with $g$ fitted to other draws
    as by `estimate`, so that its mean is the estimate and `gamma_method()` gives its error with pyerrors'
    own autocorrelation analysis. The variance between the fits of different folds is not in the history:
    it is added as a covariance observable named after the ensemble and the integrand. Without a family
    the history is that of f.

    Observables of one ensemble are correlated, and pyerrors propagates their errors as it does those of any
    others: fits, ratios and extrapolations work as usual.

    Args:
        f: the integrands, as for `estimate`.
        sample: the draws and scores.
        family: the family of control variates; None for plain averages.
        ensemble: the name of the ensemble; the replica are `"name|r0"`, `"name|r1"`, ....
        audit: as for `estimate`.

    Example::

        obs = to_pyerrors(observables((16, 16)), sample, sx.families.Lattice(), ensemble="A1")
        obs["phi^2"].gamma_method()
    """
    pyerrors = _pyerrors()
    wanted = integrands(f, sample)
    replica = [f"{ensemble}|r{chain}" for chain in range(sample.chains)]
    if family is None:
        histories, unseen = linearised(np.asarray(wanted.values), sample.weights), None
    else:
        audited(sample, audit)
        histories, unseen = _controlled(wanted, sample, family)
    found = {}
    for i, name in enumerate(wanted.names):
        obs = pyerrors.Obs([*np.ascontiguousarray(histories[..., i])], replica)
        if unseen is not None and unseen[i] > 0:
            obs = obs + pyerrors.cov_Obs(0.0, float(unseen[i]), f"{ensemble} fits {name}")
        found[name] = obs
    return found


def _controlled(
    wanted: Integrands, sample: Sample, family: AbstractFamily
) -> tuple[Series, np.ndarray | None]:
    """Compute the residuals on held-out draws, (chain, draw, k), and the variance they do not show, (k,)."""
    with precision(sample.dtype):
        problem, _ = prepare(wanted, sample, family, None, None)
        held = CrossFit().control(problem, sample.chains, Auto())
        residual = np.asarray(held.residual, np.float64)
    shape = (sample.chains, sample.length, len(wanted.names))
    return residual.reshape(shape), None if held.unseen is None else np.asarray(held.unseen)


def from_pyerrors(obs: Any) -> np.ndarray:
    """Read the history of a pyerrors `Obs` of one ensemble, to be an integrand: (chain, draw).

    Its replica are the chains, in the order of their names, and must be of equal length, without gaps.

    Args:
        obs: a primary observable, as it was measured.

    Example::

        sx.estimate({"plaquette": from_pyerrors(obs)}, sample, family)
    """
    names = list(getattr(obs, "mc_names", ()))
    if not names or getattr(obs, "cov_names", None):
        raise ValueError(
            f"{type(obs).__name__} has no history of its own: give a primary Obs of pyerrors, with one value "
            "for each configuration and no external errors."
        )
    ensembles = sorted({name.partition("|")[0] for name in obs.names})
    if len(ensembles) > 1:
        raise ValueError(
            f"the Obs is of {len(ensembles)} ensembles ({some_of(ensembles)}): give one of a single "
            "ensemble, as expectations are estimated for each by itself."
        )
    steps = {name: np.diff(np.asarray(obs.idl[name])) for name in obs.names}
    gaps = [name for name, step in steps.items() if np.any(step != step[:1])]
    lengths = {name: len(obs.deltas[name]) for name in obs.names}
    if gaps or len(set(lengths.values())) > 1:
        why = f"{gaps[0]} has gaps" if gaps else f"the replica have lengths {lengths}"
        raise ValueError(
            f"{why}: give the same number of consecutive configurations of each replicum."
        )
    return np.stack([obs.deltas[name] + obs.r_values[name] for name in obs.names])


def _pyerrors() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # it imports what SciPy is to remove
        return require("pyerrors", extra="physics")
