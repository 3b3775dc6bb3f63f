"""Convert a fit of PyStan 3 to a sample."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from ..data import Sample
from ._stan_names import diagnostic_size, model_columns, name_unconstrained, stan_dataset
from ._training import as_sample, with_log_likelihood


def from_pystan(
    fit: Any,
    *,
    warmup: bool = True,
    log_likelihood: str | Sequence[str] = (),
    dims: Mapping[str, Sequence[str]] | None = None,
    coords: Mapping[str, Any] | None = None,
) -> Sample:
    r"""Create a sample from a fit of PyStan 3.

    Scores cost nothing: PyStan stores, for each draw, the unconstrained parameters $u$ and
    $g = -\nabla_u \log \pi(u)$, the gradient of the potential, so the score is $-g$. They are in
    `fit.stan_outputs`, under the topic `diagnostic`, and no model is called.

    Parameters, transformed parameters and generated quantities are the sample's variables, counted
    from zero: Stan's `theta[1]` is `theta[0]`. Columns on the unconstrained space that differ from the
    parameter they belong to are called `tau_free__`.

    Args:
        fit: the result of `sample` or `hmc_nuts_diag_e_adapt` of a PyStan model.
        warmup: whether to use the warm-up draws, which `sample(..., save_warmup=True)` keeps, as training
            points: control variates are fitted to them, and they are not averaged.
        log_likelihood: variables that hold the log likelihood of each observation, such as `"log_lik"`:
            they are moved to the group `log_likelihood`, where ArviZ looks for them.
        dims: the names of the axes of a variable, after (chain, draw): `{"theta": ["school"]}`.
        coords: the labels along such an axis: `{"school": ["Choate", ...]}`.

    Example::

        posterior = stan.build(program, data=data, random_seed=1)
        fit = posterior.sample(num_chains=4, num_samples=1000, save_warmup=True)
        sample = sx.from_pystan(fit)
        sx.estimate(["mu", "tau"], sample)
    """
    if not hasattr(fit, "stan_outputs"):
        raise TypeError(
            f"a {type(fit).__name__} is not a fit of PyStan 3: give the result of posterior.sample(...). For "
            "CmdStanPy use from_cmdstan."
        )
    diagnostics, draws = _read(fit, "diagnostic"), _read(fit, "sample")
    dim = diagnostic_size(diagnostics.columns)
    if not dim or not diagnostics.values.size:
        raise ValueError(
            "this fit has draws and no gradients: it was made by fixed_param, or its model has no "
            "parameters. Use posterior.sample(...), which runs NUTS."
        )
    first = _warmup_rows(fit)
    taken = partial(_parts, diagnostics, draws, dims=dims, coords=coords)
    parts = taken(slice(first, None))
    columns = model_columns(diagnostics.columns)[:dim]
    names = name_unconstrained(columns, parts["draws"], parts["variables"])
    before = taken(slice(first)) if warmup and first else None
    parts = with_log_likelihood({**parts, "names": names}, log_likelihood)
    return as_sample(parts, before and with_log_likelihood(before, log_likelihood))


class _Output(NamedTuple):
    columns: Sequence[str]
    values: np.ndarray  # (chain, warm-up draw or draw, column)


def _parts(
    diagnostics: _Output,
    draws: _Output,
    rows: slice,
    dims: Mapping[str, Sequence[str]] | None,
    coords: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Collect the arguments of `Sample` for these rows of every chain."""
    variables = model_columns(draws.columns)
    values, dim = diagnostics.values[:, rows], diagnostic_size(diagnostics.columns)
    return {
        "draws": values[..., -3 * dim : -2 * dim],
        "scores": -values[..., -dim:],
        "diverging": values[..., diagnostics.columns.index("divergent__")] > 0,
        "variables": stan_dataset(
            variables, draws.values[:, rows, -len(variables) :], dims, coords
        ),
        "log_density": values[..., diagnostics.columns.index("lp__")],
        "verified": True,
    }


def _warmup_rows(fit: Any) -> int:
    return ceil(fit.num_warmup / fit.num_thin) if fit.save_warmup else 0


def _read(fit: Any, topic: str) -> _Output:
    """Read the draws of all chains under one topic, warm-up first."""
    chains = [_parse(output, topic) for output in fit.stan_outputs]
    wanted = _warmup_rows(fit) + ceil(fit.num_samples / fit.num_thin)
    for number, (_, rows) in enumerate(chains):
        if rows and len(rows) != wanted:
            raise ValueError(
                f"chain {number} has {len(rows)} {topic} lines for {wanted} draws: sample again, as the "
                "output of this fit is incomplete."
            )
    return _Output(chains[0][0], np.array([rows for _, rows in chains], dtype=float))


def _parse(output: bytes, topic: str) -> tuple[list[str], list[list[float]]]:
    """Parse the names and rows of one chain: lines of JSON, of which those of other topics are skipped."""
    mark = f'"topic":"{topic}","values":{{'.encode()
    lines = [line for line in output.splitlines() if mark in line]
    if not lines:
        return [], []
    pairs = dict(json.loads(lines[0], object_pairs_hook=list))["values"]
    columns = [name for name, _ in pairs]
    if len(set(columns)) == len(columns):
        return columns, [list(json.loads(line)["values"].values()) for line in lines]
    # With parameters x and p_x, the momentum of the first has the name of the second.
    records = (dict(json.loads(line, object_pairs_hook=list)) for line in lines)
    return columns, [[value for _, value in record["values"]] for record in records]
