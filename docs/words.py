"""Is the text plain English? `python docs/words.py` lists sentences to rewrite, and how easily pages read.

1. No page, message or docstring may contain the house's old words. `OLD` has the replacement of each.
2. The README, the tour and the guides are as easy to read as ArviZ's getting-started page. Flesch's
   reading ease is about 60 to 70 for plain English and 30 to 50 for university texts. The quickstarts
   in `PEERS` were measured by the same lines: `python docs/words.py FILE...` takes any Markdown files
   and notebooks.

textstat is not used: its syllables come from a dictionary that it downloads when it first counts.
"""

import ast
import json
import re
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[1]
OLD = {  # a pattern, in any case, and what to write for it
    r"dear(?:er|est)?": "expensive",
    r"mend(?:s|ed|ing)?": "fix",
    r"recipes?": "candidate, method",
    r"arenas?": "candidates, choice",
    r"reckon(?:s|ed|ing)?": "count, calculate, estimate",
    r"vouch(?:es|ed)?": "verify, guarantee",
    r"by that reckoning": "so",
    r"the rest": "the residual, the others, the remaining ...",
    r"what is left": "the residual, the remainder",
    r"beside(?!:)": "next to",
    r"dealt": "distributed, assigned",
    r"ought": "should",
    r"whence|wherein|whereby|herein|thereof|lest": "so, where, by which, of it",
    r"upon|amongst|whilst|nought|ere|shall": "on, among, while, nothing, before, will",
    r"speak of": "name, use",
    r"tells the version": "prints the version",
    r"unless they serve": "unless they help",
    r"could hide": "could go unnoticed",
    r"(?:is|are) no (?!longer|more|less|\w+er )\w+": "is not a, are not",
    r"but for": "except for",
}
WORDS = re.compile(r"\b(?:" + "|".join(OLD).replace(" ", r"\s+") + r")\b", re.IGNORECASE)
CODE = re.compile(r"(`+).+?\1|\$\$.+?\$\$|\$[^$]+\$|\{[\w:]+\}", re.DOTALL)
FINE = re.compile(r"\b(?:there\s+(?:is|are)\s+no|conda\s+recipes?)\b", re.IGNORECASE)
RATED = ("README.md", "docs/tour.md", "docs/guides/*.md")
PEERS = {  # reading ease, of the newest commits on 2026-11-19
    "ArviZ, getting started": (
        66.4,
        "arviz-devs/arviz dbd191c docs/source/user_guide/getting_started.md",
    ),
    "ArviZ, overview": (
        60.7,
        "arviz-devs/arviz-plots 912ea19 docs/source/tutorials/overview.ipynb",
    ),
    "PyMC, introductory overview": (
        43.3,
        "pymc-devs/pymc a4827f0 docs/source/learn/core_notebooks/pymc_overview.ipynb",
    ),
}
LEAST = PEERS["ArviZ, getting started"][0]


def pages() -> list[Path]:
    """Every page of the project but those that the paper's experiments write."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "paper").glob("*.md")]
    written = {ROOT / "docs" / "_build", ROOT / "docs" / "paper"}
    return sorted(page for page in found if not written & {*page.parents})


def strings(path: Path) -> Iterator[tuple[int, str]]:
    """The messages and docstrings of a module, each with its line."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value


def old_words(text: str) -> Iterator[tuple[int, str]]:
    """Each old word of a text, with the number of lines above it; code and formulas do not count."""
    for allowed in (CODE, FINE):
        text = allowed.sub(lambda found: "\n" * found[0].count("\n") + "x", text)
    for found in WORDS.finditer(text):
        word = " ".join(found[0].split())
        new = next(OLD[old] for old in OLD if re.fullmatch(old, word, re.IGNORECASE))
        yield text[: found.start()].count("\n"), f"{word!r}: write {new}"


def to_rewrite() -> list[str]:
    """A line for every old word in a page, a message or a docstring."""
    wrong = []
    for page in pages():
        text = page.read_text(encoding="utf-8")
        wrong += [
            f"{page.relative_to(ROOT)}:{above + 1}: {what}" for above, what in old_words(text)
        ]
    for module in sorted((ROOT / "src").rglob("*.py")):
        for line, text in strings(module):
            where = module.relative_to(ROOT)
            wrong += [f"{where}:{line + above}: {what}" for above, what in old_words(text)]
    return wrong


def markdown(path: Path) -> str:
    """The Markdown of a page or of a notebook, without front matter and directives."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = [
            cell["source"] for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"
        ]
        text = "\n\n".join("".join(cell) for cell in cells)
    text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)
    text = re.sub(r"\$\$.*?\$\$", "", text, flags=re.DOTALL)
    return re.sub(r"^(?:\s*:::.*|:[\w-]+:.*|\(\w+\)=)$", "", text, flags=re.MULTILINE)


def sentences(text: str) -> Iterator[list[str]]:
    """The words of each sentence of the paragraphs and lists, without code and formulas."""
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    for before, token in pairwise(tokens):
        if token.type != "inline" or before.type != "paragraph_open":
            continue
        parts = ((one.type, one.content) for one in token.children or ())
        plain = "".join("" if kind == "code_inline" else content or " " for kind, content in parts)
        for sentence in re.split(r"(?<=[.!?])\s+", CODE.sub("", plain)):
            if words := re.findall(r"[A-Za-z](?:[\w'\u2019-]*\w)?", sentence):
                yield words


def syllables(word: str) -> int:
    """Groups of vowels, without a silent e: 3% fewer than in the CMU dictionary, on README and tour."""
    count = len(re.findall(r"[aeiouy]+", word.lower()))
    silent = re.search(r"[^aeioul]e$|[^aeiouydt]ed$|[^aeiouyscgxz]es$", word.lower())
    return max(1, count - bool(silent))


def reading_ease(text: str) -> float:
    """Flesch's: 206.835 - 1.015 words / sentence - 84.6 syllables / word."""
    found = [*sentences(text)]
    words = [word for sentence in found for word in sentence]
    if not words:
        raise ValueError("no sentence was found: give Markdown with at least one paragraph.")
    per_word = sum(map(syllables, words)) / len(words)
    return 206.835 - 1.015 * len(words) / len(found) - 84.6 * per_word


def rated() -> list[Path]:
    """The pages whose reading ease is checked."""
    return [path for name in RATED for path in sorted(ROOT.glob(name))]


def hard_to_read(paths: list[Path]) -> list[str]:
    """A line for every page that is harder to read than ArviZ's getting-started page."""
    scores = {path: reading_ease(markdown(path)) for path in paths}
    return [
        f"{path}: its reading ease is {score:.1f}, below {LEAST}: write shorter sentences and words"
        for path, score in scores.items()
        if score < LEAST
    ]


def main(names: list[str]) -> None:
    """Print scores; without names also those of the peers, and fail if there is something to rewrite."""
    for path in map(Path, names) if names else rated():
        print(f"{reading_ease(markdown(path)):5.1f}  {path if names else path.relative_to(ROOT)}")
    if names:
        return
    for name, (score, source) in PEERS.items():
        print(f"{score:5.1f}  {name} ({source})")
    if wrong := to_rewrite() + hard_to_read(rated()):
        raise SystemExit("\n".join([f"{len(wrong)} to rewrite:", *wrong]))
    print("no old words, and no page that is hard to read")


if __name__ == "__main__":
    main(sys.argv[1:])
