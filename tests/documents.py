"""Run the Python blocks of a Markdown file: `python tests/documents.py README.md`."""

import re
import sys
import textwrap
from pathlib import Path
from types import ModuleType

BLOCK = re.compile(r"^[ \t]*```python[^\n]*\n(.*?)^[ \t]*```[ \t]*$", re.MULTILINE | re.DOTALL)


def has_blocks(path: Path) -> bool:
    return BLOCK.search(path.read_text(encoding="utf-8")) is not None


def run(path: Path) -> None:
    """Execute the blocks in order, in one namespace, as one module would."""
    text = path.read_text(encoding="utf-8")
    module = ModuleType("document")
    sys.modules[module.__name__] = module
    try:
        for block in BLOCK.finditer(text):
            # Blank lines above the block, so that a traceback names the line of the document.
            padding = "\n" * text.count("\n", 0, block.start(1))
            code = compile(padding + textwrap.dedent(block[1]), str(path), "exec")
            exec(code, module.__dict__)
    finally:
        del sys.modules[module.__name__]


if __name__ == "__main__":
    for name in sys.argv[1:]:
        run(Path(name))
