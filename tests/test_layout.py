"""The house rules: where files are, who imports whom, a cheap import, an example for every name."""

import ast
import os
import statistics
import subprocess
import sys
from graphlib import TopologicalSorter
from importlib.util import find_spec
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src" / "steinax"
FILES = sorted(SRC.rglob("*.py"))
EXISTS = find_spec("steinax") is not None and (SRC / "__init__.py").exists()
needs_package = pytest.mark.skipif(not EXISTS, reason="the package has no code yet")


def _lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def _body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The lines from `def` to the end, docstring excluded."""
    length = function.end_lineno - function.lineno + 1
    if ast.get_docstring(function) is not None:
        docstring = function.body[0]
        length -= docstring.end_lineno - docstring.lineno + 1
    return length


def _public_names() -> list[str]:
    if not EXISTS:
        return []
    import steinax

    return [name for name in steinax.__all__ if name != "__version__"]


HEAVY = {
    "arviz_base",
    "arviz_stats",
    "dask",
    "matplotlib",
    "optax",
    "pandas",
    "rich",
    "sklearn",
    "xarray",
    "zarr",
}


def _python(code: str) -> str:
    """What a fresh interpreter prints. It may keep bytecode, as a user's does."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True).stdout


def _import_times(*modules: str) -> list[float]:
    """CPU seconds until each has been imported, one after the other in one process.

    Processors change their pace by a third from process to process: a ratio is taken within one. Garbage is
    not collected meanwhile: going through the objects of jax takes as long as importing twenty of our files,
    and would be counted as ours or as that of jax by chance.
    """
    steps = "; ".join(f"import {module}; print(clock() - t)" for module in modules)
    said = _python(
        f"import gc; gc.disable(); from time import process_time as clock; t = clock(); {steps}"
    )
    return [*map(float, said.split())]


MODULES = {
    ".".join(path.relative_to(SRC.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in FILES
}


def _package_of(module: str) -> str:
    """The package that a module is in; a package is in itself."""
    return module if MODULES[module].name == "__init__.py" else module.rpartition(".")[0]


def _imports(module: str) -> set[str]:
    """The modules of steinax that a module imports, wherever in its code."""
    package, found = _package_of(module).split("."), set()
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            names = {f"{base}.{alias.name}" for alias in node.names}
            found |= {name if name in MODULES else base for name in names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found & set(MODULES) - {module}


IMPORTS = {module: _imports(module) for module in MODULES}
PRIVATE = [
    module
    for module, path in MODULES.items()
    if path.stem.startswith("_") and not path.stem.startswith("__")
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(SRC).as_posix())
def test_a_file_has_at_most_700_lines_and_a_function_fewer_than_60(path: Path) -> None:
    assert _lines(path) <= 700, "a file is a noun of the textbook: split it"
    functions = [
        node
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    long = {node.name: _body_lines(node) for node in functions if _body_lines(node) >= 60}
    assert not long, f"one step a function: split {long}"


@needs_package
def test_there_are_few_files_and_none_is_a_stub() -> None:
    assert 110 <= len(FILES) <= 140, "a new file needs a noun of its own"
    assert statistics.median(map(_lines, FILES)) >= 120


@pytest.mark.parametrize("module", PRIVATE)
def test_a_private_file_has_several_importers_or_its_package(module: str) -> None:
    importers = {other for other, imported in IMPORTS.items() if module in imported}
    alone = len(importers) == 1 and importers != {_package_of(module)}
    assert importers and not alone, f"only {importers} imports it: make them one file"


@pytest.mark.parametrize("module", MODULES)
def test_no_module_imports_a_private_file_of_another_package(module: str) -> None:
    """What two folders share is exported by the lower one; the files of the root are everyone's."""
    inside = f"{module}."
    reached = {
        other
        for other in IMPORTS[module]
        if other in PRIVATE and not inside.startswith(f"{_package_of(other)}.")
    }
    assert not reached, f"let the package of {reached} export the name, or move it"


@needs_package
def test_imports_make_no_cycle() -> None:
    """A package's `__init__` stands for its exports, so what is inside a package is looked at alone."""
    inside = {
        module: {
            other
            for other in imported
            if other in PRIVATE and _package_of(other) == _package_of(module) != module
        }
        for module, imported in IMPORTS.items()
    }
    between: dict[str, set[str]] = {}
    for module, imported in IMPORTS.items():
        above = _folder(module)
        between.setdefault(above, set()).update({*map(_folder, imported)} - {above})
    for graph in (inside, between):
        TopologicalSorter(graph).prepare()  # raises CycleError


def _folder(module: str) -> str:
    """The folder or the file right under the package's root."""
    return module.split(".")[1] if "." in module else module


DECORATORS = [
    "@law*",
    "@*.def_jvp",
    "@*.defjvp",
    "@*.def_vmap",
]  # of functions that jax or laws call
LOOKED_UP = [  # by other packages, or only named in the text of an annotation
    *("test_*", "pytest_*", "__getattr__", "__dir__", "_repr_html_", "_constructor"),
    "describeNextReport",  # by OpenMM
    *("showwarning", "_action_max_length", "caption_*", "rich", "RenderableType"),
]


@needs_package
def test_nothing_in_the_package_is_unused() -> None:
    """By the package, its tests or its benchmarks."""
    vulture = pytest.importorskip("vulture", reason="of the dev group")
    scan = vulture.Vulture(ignore_names=LOOKED_UP, ignore_decorators=DECORATORS)
    scan.scavenge([SRC, SRC.parents[1] / "tests", SRC.parents[1] / "benchmarks"])
    unused = scan.get_unused_code(min_confidence=60)
    assert not [item.get_report() for item in unused if SRC in Path(item.filename).parents]


@needs_package
def test_nothing_is_imported_before_it_is_asked_for() -> None:
    heavy = "('jax', 'numpy', 'xarray', 'pandas', 'matplotlib')"
    code = f"import sys, steinax, steinax.cli; print([m for m in {heavy} if m in sys.modules])"
    assert _python(code).strip() == "[]"
    code = f"import sys; from steinax import *; print([m for m in {heavy} if m in sys.modules])"
    assert _python(code).strip() == "['jax', 'numpy']"


@needs_package
def test_the_stub_offers_what_the_package_offers() -> None:
    import steinax

    tree = ast.parse((SRC / "__init__.pyi").read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    offered = [(node.module, name.asname) for node in imports for name in node.names]
    names = [(home, name) for home, name in offered if home is not None]
    assert names == [(home, name) for name, home in steinax._HOME.items()]
    assert {name for home, name in offered if home is None} == set(steinax._HOMES)


@needs_package
def test_the_public_surface_is_small() -> None:
    import steinax

    assert len(steinax.__all__) < 70


@needs_package
@pytest.mark.slow
@pytest.mark.alone
def test_import_costs_little_more_than_what_the_library_stands_on() -> None:
    """Single rounds lie between 1.18 and 1.33 on a shared machine: it is the least that is too much."""
    engine = "jax, equinox, scipy.linalg"
    rounds = [_import_times("steinax", engine, "steinax.estimation") for _ in range(7)]
    lazy, everything = (min(row[i] / row[1] for row in rounds) for i in (0, 2))
    assert lazy < 0.05, "import what is exported when it is asked for"
    assert everything < 1.25, "import fewer modules, and others when they are used"


@needs_package
def test_names_are_listed_before_they_are_imported() -> None:
    code = "import steinax as package; print(*set(package.__all__) - set(dir(package)))"
    assert not _python(code).strip()


@needs_package
def test_heavy_packages_are_imported_where_they_are_used() -> None:
    loaded = _python("import sys, steinax.estimation; print(*sys.modules)").split()
    assert not HEAVY & set(loaded)


@needs_package
def test_import_changes_no_jax_setting() -> None:
    settings = "dict(jax.config.values)"
    changed = "{name for name in before if before[name] != after[name]}"
    code = f"import jax; before = {settings}; import steinax; after = {settings}; print({changed})"
    assert _python(code).strip() == "set()"


@pytest.mark.parametrize("name", _public_names())
def test_public_name_shows_an_example(name: str) -> None:
    import steinax

    docstring = getattr(steinax, name).__doc__ or ""
    assert ">>>" in docstring or "Example::" in docstring, f"show how {name} is used"
