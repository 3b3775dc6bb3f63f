"""Draw which part of steinax imports which: `python docs/layers.py` writes docs/_static/layers.svg.

The edges are read from the source by grimp. An import that another path already implies is left out.
Graphviz lays the drawing out: its `dot` has to be installed.
"""

import re
import subprocess
from pathlib import Path

import grimp

DRAWING = Path(__file__).parent / "_static" / "layers.svg"
INK = "#010203"  # stands for the colour of the page's own text, light or dark


def imports() -> dict[str, set[str]]:
    """For each file or folder of src/steinax, those that it imports."""
    graph = grimp.build_graph("steinax")
    found = {part.split(".")[1]: set() for part in graph.find_children("steinax")}
    for module in graph.modules - {"steinax"}:
        part = module.split(".")[1]
        for other in graph.find_modules_directly_imported_by(module) - {"steinax"}:
            found[part] |= {other.split(".")[1]} - {part}
    return found


def reachable(part: str, edges: dict[str, set[str]]) -> set[str]:
    """All that a part imports, at however many removes."""
    return edges[part].union(*(reachable(other, edges) for other in edges[part]))


def reduced(edges: dict[str, set[str]]) -> dict[str, set[str]]:
    """The fewest edges from which the same can be reached."""
    implied = {
        part: set().union(*(reachable(other, edges) for other in others))
        for part, others in edges.items()
    }
    return {part: others - implied[part] for part, others in edges.items()}


def source(edges: dict[str, set[str]]) -> str:
    """The drawing in Graphviz's language: what imports stands above what is imported."""
    lines = [
        "digraph layers { bgcolor=transparent; nodesep=0.22; ranksep=0.38",
        f'edge [arrowsize=0.6, color="{INK}"]',
        f'node [shape=box, style=rounded, height=0.36, margin="0.12,0.04", color="{INK}"]',
        f'node [fontname="sans-serif", fontsize=13, fontcolor="{INK}"]',
    ]
    for part, others in sorted(edges.items()):
        style = ' [style="rounded,dashed", fontsize=11]' if part.startswith("_") else ""
        lines.append(f'"{part}"{style}')
        lines += [f'"{part}" -> "{other}"' for other in sorted(others)]
    return "\n".join([*lines, "}"])


def drawn(svg: str) -> dict[str, set[str]]:
    """The edges of a drawing, from the titles that Graphviz gives its parts."""
    titles = [
        t.replace("&#45;", "-").replace("&gt;", ">") for t in re.findall("<title>(.*?)<", svg)
    ]
    pairs = [title.split("->") for title in titles if "->" in title]
    found = {title: set() for title in titles if "->" not in title and title != "layers"}
    for part, other in pairs:
        found[part].add(other)
    return found


def main() -> None:
    """Write the drawing, in the colours of the page it stands on."""
    command = ["dot", "-Tsvg"]
    text = source(reduced(imports()))
    svg = subprocess.run(command, input=text, check=True, capture_output=True, text=True).stdout
    svg = svg[svg.index("<svg") :].replace(INK, "currentColor")
    DRAWING.write_text(re.sub(r"<!--.*?-->\n", "", svg, flags=re.DOTALL), encoding="utf-8")


if __name__ == "__main__":
    main()
