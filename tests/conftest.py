"""What every test shares: jax on the CPU, one compilation cache, and the data."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Compiled programs outlive the run, the small ones too. The environment says so, and not `jax.config`:
# commands and benchmarks that a test starts share them.
os.environ.setdefault(
    "JAX_COMPILATION_CACHE_DIR",
    str(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "steinax", "jax")),
)
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")

import jax


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow tests go first: one that begins last leaves the other workers idle."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


MAPS = 30_000  # of a process's memory; Linux allows 65,530, and each compiled program takes some


@pytest.fixture(autouse=True, scope="module")
def _forget_compiled_programs() -> Iterator[None]:
    """A process that has compiled thousands of programs dies of its memory maps: start anew."""
    yield
    maps = Path("/proc/self/maps")
    if maps.exists() and len(maps.read_bytes().splitlines()) > MAPS:
        jax.clear_caches()


@pytest.fixture(autouse=True)
def _single_precision_stays() -> Iterator[None]:
    """A test that leaves jax in double precision is named, and the next one starts as users do."""
    yield
    if jax.config.jax_enable_x64:
        jax.config.update("jax_enable_x64", False)
        pytest.fail("this test leaves jax in double precision for the whole process")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder named by STEINAX_DATA. CI must have it; a contributor may do without."""
    name = os.environ.get("STEINAX_DATA")
    if name is None:
        stop = pytest.fail if os.environ.get("CI") else pytest.skip
        stop("STEINAX_DATA is not set: point it at the folder of test data")
    path = Path(name)
    if not path.is_dir():
        pytest.fail(f"STEINAX_DATA is {name!r}, which is no folder: point it at the test data")
    return path
