"""The pictures of the gallery: `python docs/thumbnails.py [PAGE...]`, all pages by default.

It runs the cells of a page until they have drawn the figure that is shown, prints what they print, and writes
the figure, without its text, to docs/pictures. A page is named like `examples/farm`.
"""

import io
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from markdown_it import MarkdownIt
from PIL import Image

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DOCS = Path(__file__).parent
INCHES, DOTS, COLOURS = (4.0, 2.4), 120, 64
INK = "#8b949e"


def of_evidence(page: dict[str, Any]) -> None:
    """The integrand of the evidence, a page without a figure."""
    means = page["found"].log_likelihood
    _, axis = plt.subplots()
    axis.errorbar(page["t"], means.value, 1.96 * means.mcse, fmt="o-", color="#0072B2", ms=5)
    axis.fill_between(page["t"], means.value, means.value.min(), color="#0072B2", alpha=0.2)


SHOWN: dict[str, tuple[int, int] | Callable[[dict[str, Any]], None]] = {  # figure, and axes in it
    "examples/pharmacometrics": (0, 0),
    "guides/expensive_models": (0, 0),
    "examples/decision": (0, 0),
    "examples/hierarchical": (0, 0),
    "examples/logistic": (0, 0),
    "examples/farm": (0, 1),
    "examples/item_response": (0, 0),
    "examples/gaussian_process": (0, 0),
    "beyond/evidence": of_evidence,
    "guides/lattices": (0, 1),
    "guides/molecules": (0, 0),
}


def cells(path: Path) -> Iterator[tuple[str, bool]]:
    """The code of each cell, and whether it is there to fail."""
    for token in MarkdownIt("commonmark").parse(path.read_text(encoding="utf-8")):
        if token.type == "fence" and token.info.startswith("{code-cell}"):
            code = re.sub(r"^(?::tags:|%).*\n", "", token.content, flags=re.MULTILINE)
            yield code, ":tags: [raises-exception]" in token.content


def run(path: Path, figures: int) -> dict[str, Any]:
    """Run the cells of a page until there are so many figures; the names that they leave."""
    names: dict[str, Any] = {"__name__": "page"}
    for code, fails in cells(path):
        try:
            exec(compile(code, path.name, "exec"), names)
        except Exception:
            if not fails:
                raise
        if len(plt.get_fignums()) >= figures:
            break
    return names


def bare(axis: "Axes") -> None:
    """Leave nothing on the figure but what these axes draw."""
    figure = axis.figure
    for other in set(figure.axes) - {axis}:
        other.remove()
    for legend in (*figure.legends, axis.get_legend()):
        if legend is not None:
            legend.remove()
    for text in list(axis.texts):
        text.remove()
    axis.set(title="", xlabel="", ylabel="")
    axis.tick_params(which="both", length=0, labelbottom=False, labelleft=False)
    axis.spines[["top", "right"]].set_visible(False)
    axis.spines[["left", "bottom"]].set_color(INK)
    figure.set_layout_engine("none")
    figure.set_size_inches(*INCHES)
    axis.set_position((0.03, 0.05, 0.94, 0.9))


def picture(name: str) -> None:
    """Run a page and write its picture."""
    shown = SHOWN[name]
    which, place = shown if isinstance(shown, tuple) else (0, 0)
    names = run(DOCS / f"{name}.md", which + 1)
    if not isinstance(shown, tuple):
        shown(names)
    figure = plt.figure(plt.get_fignums()[which])
    bare(figure.axes[place])
    stored = io.BytesIO()
    figure.savefig(stored, dpi=DOTS, facecolor="white")
    file = DOCS / "pictures" / f"{Path(name).name}.png"
    Image.open(stored).convert("RGB").quantize(COLOURS).save(file, optimize=True)
    plt.close("all")
    print(f"{file.relative_to(DOCS.parent)}: {file.stat().st_size / 1000:.0f} kB")


def main(pages: list[str]) -> None:
    """Write the picture of each page that is named."""
    if unknown := set(pages) - set(SHOWN):
        raise SystemExit(f"not in the gallery: {', '.join(unknown)}; it has {', '.join(SHOWN)}.")
    warnings.filterwarnings("ignore", "FigureCanvasAgg is non-interactive")
    for page in pages or SHOWN:
        start = time.process_time()
        picture(page)
        print(f"{page}: {time.process_time() - start:.0f} CPU seconds")


if __name__ == "__main__":
    main(sys.argv[1:])
