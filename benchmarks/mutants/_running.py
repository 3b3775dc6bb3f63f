"""A mutant is a copy of the package with one line changed; its tests run in a process of their own."""

import contextlib
import io
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

import pytest

from ._table import Mutant

ROOT = Path(__file__).parents[2]
PACKAGE = "steinax"
KILLED, SURVIVED, CRASHED = "killed", "SURVIVED", "CRASHED"
# What tests import and a mutant does not change. Each process starts with it: seconds are saved.
PRELOADED = [
    "jax.numpy",
    "jax.scipy",
    "equinox",
    "optax",
    "xarray",
    "pandas",
    "hypothesis",
    "scipy.stats",
    "arviz_stats",
    "zarr",
    "pytest",
]
# As pyproject.toml has it, but for jaxtyping's hook: it takes seconds, and an error of types kills no mutant.
OPTIONS = ["-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
OPTIONS += ["-o", "addopts=--import-mode=importlib --strict-markers -pno:benchmark"]
SETTINGS = {  # what tests/conftest.py sets before jax is imported
    "JAX_PLATFORMS": "cpu",
    "JAX_COMPILATION_CACHE_DIR": str(
        Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", PACKAGE, "jax")
    ),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}


@dataclass
class Outcome:
    """What the tests made of a copy of the package.

    Attributes:
        tests: that were asked for, each of which must notice a mutant.
        failed: tests of which an assertion failed.
        crashed: tests that ended in another error, or tests that could not be collected.
        passed: how many tests passed.
        seconds: of a CPU that it took.
        text: what pytest printed.
    """

    tests: Sequence[str]
    failed: list[str] = field(default_factory=list)
    crashed: list[str] = field(default_factory=list)
    passed: int = 0
    seconds: float = 0.0
    text: str = ""

    @property
    def verdict(self) -> str:
        """Killed by assertions alone; a crash says nothing of what a test asserts."""
        if self.crashed:
            return CRASHED
        return SURVIVED if self.blind else KILLED

    @property
    def blind(self) -> list[str]:
        """The tests that noticed nothing; of a parametrised one, not a single case did."""
        return [test for test in self.tests if not any(one.startswith(test) for one in self.failed)]

    @property
    def told(self) -> str:
        """What there is to say: what crashed, what noticed nothing, or what noticed."""
        return ", ".join(one.partition("::")[2] for one in self.crashed or self.blind or self.tests)


class _Watching:
    """A plugin of pytest that tells failed assertions from other errors."""

    def __init__(self, outcome: Outcome):
        self._outcome = outcome

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo):
        report = yield
        if call.excinfo is None:
            self._outcome.passed += report.when == "call"
        elif call.when == "call" and call.excinfo.errisinstance(
            (AssertionError, pytest.fail.Exception)
        ):
            self._outcome.failed.append(item.nodeid)
        else:
            self._outcome.crashed.append(f"{item.nodeid} ({call.excinfo.exconly(tryshort=True)})")
        return report


def judged(mutants: Sequence[Mutant], workers: int = 1) -> Iterator[tuple[Mutant, Outcome]]:
    """Each mutant and what its tests made of it, in order. They must pass without it first.

    Args:
        mutants: to be run.
        workers: how many of them side by side.
    """
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    for mutant in mutants:  # a table that no longer fits the source is an error before any work
        mutant.changed(ROOT / "src" / PACKAGE)
    server = get_context("forkserver")
    server.set_forkserver_preload(PRELOADED)
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(workers, server, max_tasks_per_child=1) as pool,
    ):
        right = Path(folder, "right")
        shutil.copytree(
            ROOT / "src" / PACKAGE,
            right / PACKAGE,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
        tests = sorted({test for mutant in mutants for test in mutant.tests})
        found = pool.submit(_tested, right, tests).result()
        if found.failed or found.crashed or found.passed < len(tests):
            raise SystemExit(f"{found.text}\nthe tests must pass without a mutant: fix them first.")
        running = [
            pool.submit(_mutated, right, Path(folder, str(i)), mutants[i])
            for i in range(len(mutants))
        ]
        for mutant, result in zip(mutants, running, strict=True):
            yield mutant, result.result()


def _mutated(right: Path, copy: Path, mutant: Mutant) -> Outcome:
    """Test a copy of the package with the mutant in it."""
    shutil.copytree(right, copy)  # with its bytecode
    path = copy / PACKAGE / mutant.path
    path.write_text(mutant.changed(right / PACKAGE), encoding="utf-8")
    for stale in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
        stale.unlink()
    found = _tested(copy, mutant.tests)
    shutil.rmtree(copy)
    return found


def _tested(package: Path, tests: Sequence[str]) -> Outcome:
    """Run tests, in this process, on the package in a folder."""
    start, outcome, text = time.process_time(), Outcome(tests), io.StringIO()
    os.chdir(ROOT)
    sys.path.insert(0, str(package))
    sys.dont_write_bytecode, sys.pycache_prefix = False, None
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        code = pytest.main([*OPTIONS, *tests], plugins=[_Watching(outcome)])
    used = Path(str(sys.modules[PACKAGE].__file__)) if PACKAGE in sys.modules else None
    if used is not None and package not in used.parents:
        raise RuntimeError(f"the tests imported {used} and not the copy in {package}.")
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        outcome.crashed.append(f"pytest: {pytest.ExitCode(code).name}")
    outcome.seconds, outcome.text = time.process_time() - start, text.getvalue()
    return outcome
