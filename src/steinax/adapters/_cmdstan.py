import glob
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data import Sample
from ._stan_csv import Table, read_tables, warn_of_rounding
from ._stan_names import as_dataset, model_columns, name_unconstrained

if TYPE_CHECKING:
    from xarray import Dataset

SAVE = """sample again, and let CmdStan write the scores:
  CmdStanPy     model.sample(..., save_latent_dynamics=True, sig_figs=16)
  cmdstanr      model$sample(..., save_latent_dynamics = TRUE, sig_figs = 16)
  command line  ./model sample ... output file=out.csv diagnostic_file=diagnostic.csv sig_figs=16
then give the fit, or the draws and the diagnostic files together."""


def from_cmdstan(source: Any) -> Sample:
    r"""A sample from a run of CmdStan: a fit of CmdStanPy, or files, those of cmdstanr as well.

    Scores cost nothing: the diagnostic files hold, for each draw, the unconstrained parameters $u$ and
    $g = -\nabla_u \log \pi(u)$, the gradient of the potential, so the score is $-g$. CmdStan writes them
    when asked to::

        fit = model.sample(data, save_latent_dynamics=True, sig_figs=16)  # CmdStanPy
        fit <- model$sample(data, save_latent_dynamics = TRUE, sig_figs = 16)  # cmdstanr

    Parameters, transformed parameters and generated quantities are the sample's variables, counted
    from zero: Stan's `theta[1]` is `theta[0]`. Columns on the unconstrained space that differ from the
    parameter they belong to are called `tau_free__`. Warm-up draws are left out. Draws and diagnostics
    belong together where their log densities agree, whatever the files are called.

    Args:
        source: a `CmdStanMCMC`; or the paths of its CSV files, draws and diagnostics in any order: a
            list, a folder, a pattern such as `"output/*.csv"`, or one path. Without the draws there are
            only the unconstrained columns.

    Example::

        sample = sx.from_cmdstan("output")
        sx.estimate(["mu", "tau"], sample)
    """
    tables = [table for path in _paths(source) for table in _tables(path)]
    diagnostics, draws = _classify(_without_copies(tables))
    if not diagnostics:
        raise ValueError(f"none of the {_count(tables)} holds scores: {SAVE}")
    _expect_one_posterior(diagnostics)
    diagnostics = sorted(diagnostics, key=lambda table: (table.chain, table.path))
    values = _stacked(diagnostics)
    first, width, dim = diagnostics[0], diagnostics[0].width, diagnostics[0].dim
    unconstrained, scores = values[..., width : width + dim], -values[..., width + 2 * dim :]
    log_density = values[..., 0]
    posterior = _posterior(diagnostics, log_density, draws)
    names = name_unconstrained(model_columns(first.columns)[:dim], unconstrained, posterior)
    digits = min(table.digits() for table in diagnostics)
    warn_of_rounding(digits, names, np.stack([unconstrained, scores]))
    return Sample(
        unconstrained,
        scores,
        names,
        diverging=_diverging(first, values),
        variables=posterior,
        log_density=log_density,
    )


def _paths(source: Any) -> list[Path]:
    """The files, each once."""
    if hasattr(source, "runset"):
        run = source.runset
        named = [*run.csv_files, *run.diagnostic_files]
        paths = [Path(path) for path in named if path]
    elif isinstance(source, str | os.PathLike):
        paths = _expand(os.fspath(source))
    elif isinstance(source, Iterable):
        paths = [path for one in source for path in _paths(one)]
    else:
        raise TypeError(
            f"a {type(source).__name__} is no run of CmdStan: give a CmdStanMCMC, or the paths of its CSV "
            "files."
        )
    missing = [str(path) for path in paths if not path.is_file()]
    if missing or not paths:
        raise FileNotFoundError(
            f"no CSV file at {', '.join(missing) or source}: check the path. CmdStanPy and cmdstanr delete "
            "temporary files when the session ends; output_dir= keeps them."
        )
    return list({path.resolve(): path for path in paths}.values())


def _expand(name: str) -> list[Path]:
    if os.path.isdir(name):
        return sorted(Path(name).glob("*.csv"))
    if not os.path.exists(name) and glob.has_magic(name):
        return sorted(map(Path, glob.glob(name)))
    return [Path(name)]


def _tables(path: Path) -> Iterator[Table]:
    """The tables of a file, all of them from a sampler that had a gradient; none of other CSV files."""
    for table in read_tables(path):
        method, algorithm = (table.settings.get(one, "") for one in ("method", "algorithm"))
        if method != "sample" or algorithm == "fixed_param":
            made = f"method {method}" if method != "sample" else "fixed_param"
            raise ValueError(
                f"{path} was written by {made}, which has no draws of a Markov chain with scores: give "
                "the output of CmdStan's `sample` with NUTS or HMC."
            )
        if not table.columns[0].startswith("lp__"):
            raise ValueError(
                f"{path} has no table: the run stopped before its first draw. Run it again, or name "
                "the files of the other chains."
            )
        yield table


def _without_copies(tables: Iterable[Table]) -> list[Table]:
    """A file of draws may begin with a copy of the diagnostics."""
    return list({(table.columns, table.rows): table for table in tables}.values())


def _classify(tables: Sequence[Table]) -> tuple[list[Table], list[Table]]:
    """Diagnostics and draws. Parameters called x, p_x and g_x make draws look like diagnostics."""
    inner = {tuple(t.columns[: t.width + t.dim]) for t in tables if t.dim}
    parted: tuple[list[Table], list[Table]] = ([], [])
    for table in tables:
        parted[0 if table.dim and table.columns not in inner else 1].append(table)
    return parted


def _expect_one_posterior(tables: Sequence[Table]) -> None:
    """Chains of one run: same model, data and columns; each with a stream of random numbers its own."""
    seen: dict[tuple[str, ...], Path] = {}
    first = tables[0]
    for table in tables:
        for what in ("model", "data file"):
            if table.settings.get(what) != first.settings.get(what):
                raise ValueError(
                    f"{first.path} and {table.path} are of different runs, by their {what}: name the "
                    "files of one run."
                )
        if table.columns != first.columns:
            raise ValueError(
                f"{first.path} and {table.path} have different columns: name the files of one run."
            )
        stream = (str(table.chain), table.settings.get("seed", ""))
        if stream in seen and table.settings.get("num_chains", "1") == "1":
            raise ValueError(
                f"{seen[stream]} and {table.path} are both of chain id = {stream[0]}, seed = {stream[1]}, "
                "and differ: they are of different runs. Name the files of one run."
            )
        seen[stream] = table.path


def _stacked(tables: Sequence[Table]) -> np.ndarray:
    """(chain, draw, column), if chains are of one length."""
    chains = [table.values() for table in tables]
    lengths = {len(chain): table.path for chain, table in zip(chains, tables, strict=True)}
    if len(lengths) > 1:
        told = ", ".join(f"{length} draws in {path}" for length, path in lengths.items())
        raise ValueError(
            f"chains differ in length: {told}. Name the files of chains of one length."
        )
    return np.stack(chains)


def _posterior(
    diagnostics: Sequence[Table], densities: np.ndarray, draws: Sequence[Table]
) -> "Dataset | None":
    """The draws of each chain, found by their log densities: ids repeat when one process runs all."""
    if not draws:
        warnings.warn(
            "only diagnostic files were given, so there are unconstrained columns and no variables of the "
            "model: give the files of draws as well.",
            UserWarning,
            stacklevel=3,
        )
        return None
    if len({table.columns for table in draws}) > 1:
        raise ValueError("the files of draws have different columns: name the files of one run.")
    left = {table.path: table.values() for table in draws}
    chains = []
    for table, density in zip(diagnostics, densities, strict=True):
        path = next(
            (p for p, values in left.items() if np.array_equal(values[:, 0], density)), None
        )
        if path is None:
            raise ValueError(
                f"no file of draws belongs to {table.path} (chain id = {table.chain}): lp__ agrees with "
                "none. Give the draws and the diagnostic files of one run."
            )
        chains.append(left.pop(path))
    for path in left:
        raise ValueError(f"{path} has no diagnostic file, and so no scores: {SAVE}")
    first = draws[0]
    return as_dataset(model_columns(first.columns), np.stack(chains)[..., first.width :])


def _diverging(table: Table, values: np.ndarray) -> np.ndarray | None:
    if "divergent__" not in table.columns:  # static HMC
        return None
    return values[..., table.columns.index("divergent__")] > 0


def _count(tables: Sequence[Table]) -> str:
    files = len({table.path for table in tables})
    return "1 file" if files == 1 else f"{files} files"
