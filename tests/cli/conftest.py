"""A folder as a user has it: files of each kind, and a module of functions."""

import gzip
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import arviz_base
import numpy as np
import pytest

import steinax as sx

FUNCTIONS = """
import numpy as np

def total(mu, tau):
    return mu + tau


def share(mu, tau):
    return tau**2 / (mu**2 + tau**2)

def both(mu, beta):
    return beta - mu

def first(x):
    return x[0]

def broken(mu):
    raise ValueError("math domain error")

def unknown(mu, nothing):
    return mu

number = 3
"""


def made_sample(sign: int = -1) -> sx.Sample:
    x = np.random.default_rng(0).normal(size=(4, 400, 3))
    tree = arviz_base.from_dict(
        {
            "posterior": {"mu": x[..., 0], "tau": np.exp(0.3 * x[..., 1]), "beta": x[..., 1:]},
            "log_likelihood": {"y": x[..., :2] ** 2},
        }
    )
    names = ["mu", "tau_log__", "beta[1]"]
    u, s = x * [1, 0.3, 1], sign * x / [1, 0.3, 1]
    return sx.Sample(u, s, names, diverging=np.zeros((4, 400), bool), variables=tree)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("user")
    for name in ("draws.nc", "draws.zarr"):
        sx.save(path / name, made_sample())
    sx.save(path / "wrong.nc", made_sample(sign=1))
    (path / "functions.py").write_text(FUNCTIONS, encoding="utf-8")
    (path / "text.nc").write_text("no netCDF", encoding="utf-8")
    (path / "empty.csv").touch()
    (path / "README.md").write_text("# notes\n", encoding="utf-8")
    np.savez(path / "arrays.npz", a=np.zeros(3))
    with zipfile.ZipFile(path / "other.zip", "w") as archive:
        archive.writestr("notes.txt", "# notes")
    (path / "packed").mkdir()
    (path / "packed" / "draws.csv.gz").write_bytes(gzip.compress(b"# a run\n"))
    return path


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder, as the current one; its module of functions is forgotten afterwards."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "100")
    yield folder
    sys.modules.pop("functions", None)


@pytest.fixture
def output(here: Path, data_dir: Path) -> Path:
    """Real CSV files of CmdStan in a folder called output."""
    path = here / "output"
    if not path.exists():
        path.symlink_to(data_dir / "cmdstan_eight_schools")
    return path


@pytest.fixture
def process(here: Path) -> Callable[..., subprocess.CompletedProcess]:
    """Run the command as a shell does."""

    def run(*words: str, **settings: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [sys.executable, "-m", "steinax", *words],
            env=os.environ | settings,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )

    return run
