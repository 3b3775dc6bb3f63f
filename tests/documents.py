"""Run what a reader can copy from a Markdown file: `python tests/documents.py README.md`.

Blocks run in order, in the current folder: `python` in one namespace, as one module would, and `bash` by
a shell. A Python block whose first line is the comment of a file's name, `# functions.py`, is written to
that file. A `text` block that begins with `$ ` is a command with what it prints; `...` stands for lines. One
that follows a Python block is what that block prints, but numbers may differ by 5% from machine to machine.
"""

import contextlib
import doctest
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from markdown_it import MarkdownIt

NAMED = re.compile(r"# ([\w/]+\.\w+)\n")
SAME = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """A block of code, its language as the fence has it, and the number of lines above it."""

    language: str
    code: str
    line: int

    @property
    def runs(self) -> bool:
        return self.language in {"python", "bash"} or self.is_session

    @property
    def is_session(self) -> bool:
        return self.language == "text" and self.code.startswith("$ ")


def blocks(path: Path) -> Iterator[Block]:
    """Every block of code of a page, those that are only indented too, with language ''."""
    return _blocks(path.read_text(encoding="utf-8"), 0)


def _blocks(text: str, above: int) -> Iterator[Block]:
    for token in MarkdownIt("commonmark").parse(text):
        if token.type in {"fence", "code_block"} and token.map is not None:
            block = Block(token.info.strip(), token.content, above + token.map[0] + 1)
            if block.language.startswith(("{tab", "{grid", "{card", "{dropdown", "{admonition")):
                yield from _blocks(block.code, block.line)
            else:
                yield block


def run(path: Path) -> None:
    """Execute the blocks in order."""
    module = ModuleType("document")
    sys.modules[module.__name__] = module
    printed = None  # by the block before, if it is one of Python
    try:
        for block in blocks(path):
            if block.language == "text" and not block.is_session and printed is not None:
                _compare(block.code, printed, f"{path}:{block.line}")
            printed = None
            if block.language == "python":
                printed = _run_python(block, module, path)
            elif block.language == "bash":
                _shell(block.code, f"{path}:{block.line + 1}")
            elif block.is_session:
                _run_session(block, path)
    finally:
        del sys.modules[module.__name__]


def _run_python(block: Block, module: ModuleType, path: Path) -> str | None:
    """What the block prints; nothing is run of a block that is a file."""
    if named := NAMED.match(block.code):
        Path(named[1]).write_text(block.code, encoding="utf-8")
        return None
    # Blank lines above the block, so that a traceback names the line of the document.
    code, printed = compile("\n" * block.line + block.code, str(path), "exec"), io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, module.__dict__)
    print(printed.getvalue(), end="")
    return printed.getvalue()


def _compare(expected: str, printed: str, where: str) -> None:
    """Word by word; a line of three dots stands for all that follows."""
    shown, ends, _ = expected.partition("\n...\n")
    pairs = list(zip(shown.split(), printed.split(), strict=False))
    if ends:
        complete = len(printed.split()) >= len(shown.split())
    else:
        complete = len(printed.split()) == len(shown.split())
    if not complete or not all(_alike(*pair) for pair in pairs):
        raise AssertionError(f"{where} says\n{expected}\nand the block prints\n{printed}")


def _alike(shown: str, printed: str) -> bool:
    try:
        first, second = float(shown), float(printed)
    except ValueError:
        return shown == printed
    return abs(first - second) <= 0.05 * abs(second)


def _run_session(block: Block, path: Path) -> None:
    for part in re.split(r"^\$ ", block.code, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        printed = _shell(command, f"{path}:{block.line + 1}")
        if not doctest.OutputChecker().check_output(expected, printed, SAME):
            raise AssertionError(f"{path}: `{command}` prints\n{printed}\nand not\n{expected}")


def _shell(code: str, where: str) -> str:
    """What the commands print, with the programs of this environment found first."""
    folders = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", code],
        env=os.environ | {"PATH": folders},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode:
        raise AssertionError(f"{where}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    for name in sys.argv[1:]:
        run(Path(name))
