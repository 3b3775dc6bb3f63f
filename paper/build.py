"""Draw the paper as a PDF: `bash .ci/paper paper.pdf`, which installs pandoc and typst from PyPI."""

import sys
from pathlib import Path

import pypandoc
import typst

ROOT = Path(__file__).parents[1]


def main(out: Path) -> None:
    """Convert paper.md with its citations to typst, and that to a PDF."""
    text = pypandoc.convert_file(
        ROOT / "paper" / "paper.md",
        "typst",
        format="markdown",
        extra_args=[
            "--standalone",
            "--citeproc",
            f"--bibliography={ROOT / 'paper' / 'paper.bib'}",
            "--metadata=link-citations:true",
            "--fail-if-warnings",  # such as a citation that paper.bib lacks
        ],
    )
    text = text.replace('"../docs/', '"/docs/')  # paths of typst begin at the root
    out.write_bytes(typst.compile(text.encode(), root=ROOT))
    print(f"{out}: {out.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
