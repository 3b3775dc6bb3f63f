"""The commands summary, audit, estimate, watch, convert and completion."""

import argparse
import re
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._require import require
from ._files import (
    as_json,
    check_files,
    deliver,
    format_of,
    is_unwritten,
    is_zarr,
    read_sample,
    write,
)
from ._parser import build_parser

if TYPE_CHECKING:
    import pandas

    from ..auditing import AuditReport
    from ..data import Sample
    from ..estimation import Estimate
    from ..stopping import Look, Stopped


def run_summary(options: Namespace) -> int:
    """Print the summary table of a sample."""
    sample = read_sample(options.files)
    from ..summarising import render, summary as summarise

    table: Any = summarise(
        sample, options.variables or None, ci_prob=options.ci_prob, audit=options.audit
    )
    _tell_of_positions(options)
    deliver(
        options,
        answer=lambda: _summary_as_dict(table, sample, options),
        rows=lambda: _summary_rows(table),
        table=lambda width: render(table, width),
    )
    return 0


def _summary_rows(table: "pandas.DataFrame") -> list[dict[str, Any]]:
    columns = {str(name): table[name].to_numpy(float) for name in table.columns}
    return [
        {"name": str(name), **{key: values[i] for key, values in columns.items()}}
        for i, name in enumerate(table.index)
    ]


def _summary_as_dict(
    table: "pandas.DataFrame", sample: "Sample", options: Namespace
) -> dict[str, Any]:
    return {
        "files": options.files,
        "chains": sample.chains,
        "draws": sample.length,
        "parameters": _summary_rows(table),
        "note": table.attrs.get("steinax", ""),
    }


def run_audit(options: Namespace) -> int:
    """Print the audit report of a sample, and return 1 if the audit failed."""
    from ..auditing import audit as audit_scores

    sample = read_sample(options.files)
    report = audit_scores(sample)
    if format_of(options) == "json":
        write(as_json({"files": options.files, **_report_as_dict(report, sample)}), options)
    else:
        write(repr(report), options)
    return 0 if report.passed else 1


def _report_as_dict(report: "AuditReport", sample: "Sample") -> dict[str, Any]:
    """Convert an audit report to a dict, with limits by the names of the dimensions."""
    return {
        "passed": report.passed,
        "problems": [asdict(problem) for problem in report.problems],
        "checked": report.checked,
        "strength": report.strength,
        "divergences": report.divergences,
        "limit": dict(zip(sample.names, report.limit, strict=True)),
        "limit_squares": dict(zip(sample.names, report.limit_squares, strict=True)),
    }


ELEMENT = re.compile(r"(.+)\[(\d+(?:, ?\d+)*)\]")


def _tell_of_positions(options: Namespace) -> None:
    """Say that elements of Stan's variables count from 0 here, unless an element 0 is asked for."""
    if not options.variables or check_files(options.files, coming=True):
        return
    elements = [match for name in options.variables if (match := ELEMENT.fullmatch(name))]
    places = [[int(place) for place in match[2].split(",")] for match in elements]
    if elements and not any(0 in place for place in places):
        in_stan = ".".join([elements[0][1], *(str(place + 1) for place in places[0])])
        print(
            f"steinax: note: positions count from 0: {elements[0][0]} is Stan's {in_stan}.",
            file=sys.stderr,
        )


COLUMNS = (
    *("value", "mcse", "plain_value", "plain_mcse", "worth"),
    *("ess", "rhat", "plain_ess", "plain_rhat", "freedom", "plain_freedom"),
)


def run_estimate(options: Namespace) -> int:
    """Print the estimated expectations of functions and variables."""
    if not options.functions and not options.variables:
        raise ValueError(
            "nothing to estimate: name a function, as --fn module:function, or a variable, as --var tau. "
            "For every parameter use steinax summary."
        )
    functions: dict[str, Any] = dict(_functions(options.functions))
    sample = read_sample(options.files)
    from ..estimation import estimate as estimate_of, fitted

    wanted = {**{name: name for name in options.variables}, **functions}
    result = estimate_of(wanted, sample, audit=options.audit)
    _tell_of_positions(options)
    deliver(
        options,
        answer=lambda: _estimate_as_dict(result, sample, options),
        rows=lambda: _estimate_rows(result),
        table=lambda width: fitted(result, width, more="--json or --csv"),
    )
    return 0


def _estimate_rows(result: "Estimate") -> list[dict[str, Any]]:
    lower, upper = result.interval().T
    arrays = {column: getattr(result, column) for column in COLUMNS}
    arrays |= {"lower": lower, "upper": upper}
    return [
        {"name": name, **{key: array[i] for key, array in arrays.items()}, "chosen": chosen}
        for i, (name, chosen) in enumerate(zip(result.names, result.chosen, strict=True))
    ]


def _estimate_as_dict(result: "Estimate", sample: "Sample", options: Namespace) -> dict[str, Any]:
    report = result.audit
    return {
        "files": options.files,
        "chains": sample.chains,
        "draws": sample.length,
        "estimates": _estimate_rows(result),
        "note": result.note,
        "reason": result.reason,
        "audit": None if report is None else _report_as_dict(report, sample),
    }


NOT_PRECISE = 3  # the exit code of watch if the run ended before


def run_watch(options: Namespace) -> int:
    """Follow a running sampler until its expectations are precise enough."""
    alone = check_files(options.files, coming=True)
    if alone and not is_zarr(Path(alone[0])):
        raise ValueError(
            f"{alone[0]}: a netCDF file is written at once, so there is nothing to wait for. Use "
            "steinax summary, or watch the zarr store or the CSV files that a sampler is writing."
        )
    for name in options.files:
        if is_unwritten(Path(name)):
            print(f"steinax: note: {name} is empty: waiting for the sampler.", file=sys.stderr)
    _tell_of_positions(options)
    from ..estimation import fitted
    from ..stopping import until

    def tell(look: "Look") -> None:
        print(look, file=sys.stderr, flush=True)

    stopped = until(
        options.files[0] if len(options.files) == 1 else list(options.files),
        options.variables or None,
        options.tolerance,
        unit=options.unit,
        draws=options.draws,
        seconds=options.seconds,
        audit=options.audit,
        on_look=tell,
    )
    result, sample = stopped.estimate, stopped.sample
    print(stopped.summary, file=sys.stderr)
    deliver(
        options,
        answer=lambda: _estimate_as_dict(result, sample, options) | _stop_as_dict(stopped),
        rows=lambda: _estimate_rows(result),
        table=lambda width: fitted(result, width, more="--json or --csv"),
    )
    return 0 if stopped.precise else NOT_PRECISE


def _stop_as_dict(stopped: "Stopped") -> dict[str, Any]:
    last = stopped.looks[-1]
    return {
        "reason": stopped.reason,
        "tolerance": dict(zip(stopped.estimate.names, last.tolerance, strict=True)),
        "plain_draws": dict(zip(stopped.estimate.names, stopped.plain_draws, strict=True)),
        "looks": [
            {"draws": look.draws, "widest": float(look.ratio.max())} for look in stopped.looks
        ],
    }


def _functions(arguments: Sequence[str]) -> dict[str, Callable]:
    """Import functions, keyed by their names, or by the whole argument where two share a name.

    Args:
        arguments: `"module:function"`, or `"path/to/file.py:function"`.
    """
    sys.path.insert(0, str(Path.cwd()))
    try:
        functions = {argument: _function(argument) for argument in arguments}
    finally:
        sys.path.remove(str(Path.cwd()))
    names = [argument.rpartition(":")[2] for argument in functions]
    return {
        name if names.count(name) == 1 else argument: functions[argument]
        for argument, name in zip(functions, names, strict=True)
    }


def _function(argument: str) -> Callable:
    module_name, colon, name = argument.rpartition(":")
    if not colon or not module_name or not name:
        raise ValueError(
            f"--fn {argument} does not name a function of a module: give both, such as functions:share for "
            "the function share of functions.py."
        )
    module = _import_file(module_name) if module_name.endswith(".py") else _import(module_name)
    function = getattr(module, name, None)
    if not callable(function):
        public = [key for key, value in vars(module).items() if callable(value) and key[0] != "_"]
        what = "is not a function" if function is not None else "does not exist"
        raise ValueError(
            f"--fn {argument}: {name} {what}; {module_name} has {', '.join(public[:8]) or 'no functions'}. "
            "Name one of its functions."
        )
    return function


def _import(name: str) -> object:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # the module exists, but one of its imports does not
        file = f"{name.partition('.')[0]}.py"
        raise ValueError(
            f"there is no module {name!r}: run steinax in the folder of {file}, or name the file, as in "
            f"--fn path/to/{file}:function."
        ) from None


def _import_file(name: str) -> object:
    from importlib.util import module_from_spec, spec_from_file_location

    path = Path(name)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}: check the path after --fn.")
    sys.path.insert(0, str(path.parent.resolve()))  # so that modules next to it can be imported
    try:
        spec = spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent.resolve()))
    return module


def run_convert(options: Namespace) -> int:
    """Write the sample to one netCDF file or zarr store."""
    out = Path(options.out)
    _check_output(out, options.files, options.force)
    from ..saving import save

    sample = read_sample(options.files)
    save(out, sample, overwrite=options.force)
    print(f"{out}: {sample}", file=sys.stderr)
    return 0


def _check_output(out: Path, files: Sequence[str], force: bool) -> None:
    """Raise if the output file cannot be written, before slow reading starts."""
    if out.suffix not in (".nc", ".zarr"):
        raise ValueError(
            f"{out} ends neither in .nc nor in .zarr: name the file to write last, such as draws.nc."
        )
    if not out.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {out.parent}: create it first.")
    if out.resolve() in {Path(name).resolve() for name in files}:
        raise ValueError(f"{out} is both read and written: give the output another name.")
    if out.exists() and not force:
        raise FileExistsError(f"{out} exists: give another name, or --force to replace it.")


PATHS = ("files", "out", "output")


def run_completion(options: argparse.Namespace) -> int:
    """Print the completion script for a shell."""
    shtab = require("shtab", extra="completion")
    parser = build_parser()
    for command in _with_commands(parser):
        for action in command._actions:
            if action.dest in PATHS:
                setattr(action, "complete", shtab.FILE)  # noqa: B010
    print(shtab.complete(parser, shell=options.shell))
    return 0


def _with_commands(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    commands = [
        command
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
        for command in action.choices.values()
    ]
    return [parser, *commands]


COMMANDS = {
    "summary": run_summary,
    "audit": run_audit,
    "estimate": run_estimate,
    "watch": run_watch,
    "convert": run_convert,
    "completion": run_completion,
}
