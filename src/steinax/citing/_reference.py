from dataclasses import dataclass


@dataclass(frozen=True)
class Reference:
    """One row of a list of references.

    Attributes:
        key: of the BibTeX entry.
        reason: what it is cited for.
        kind: of the BibTeX entry, such as `article`.
        authors: first names first, as BibTeX reads them; names that are one unit in braces.
        title: as it was printed.
        year: of print; None for software that has a version instead.
        source: BibTeX's further fields, such as `journal` or `doi`, in order.

    >>> row = Reference("key", "its method", "misc", ("Ada Byron",), "Notes", 1843)
    >>> print(row)
    Ada Byron (1843). Notes.
    >>> print(row.bibtex)
    @misc{key,
      author = {Ada Byron},
      title = {Notes},
      year = {1843},
    }
    """

    key: str
    reason: str
    kind: str
    authors: tuple[str, ...]
    title: str
    year: int | None = None
    source: tuple[tuple[str, str], ...] = ()

    @property
    def bibtex(self) -> str:
        """The entry for a bibliography, in LaTeX's letters."""
        fields = [("author", " and ".join(self.authors)), ("title", self.title), *self.source]
        if self.year is not None:
            fields.insert(2, ("year", str(self.year)))
        lines = [f"  {name} = {{{_latex(value)}}}," for name, value in fields]
        return "\n".join([f"@{self.kind}{{{self.key},", *lines, "}"])

    def __str__(self) -> str:
        *first, last = (name.strip("{}") for name in self.authors)
        names = f"{', '.join(first)} and {last}" if first else last
        year = "" if self.year is None else f" ({self.year})"
        title = self.title.replace("{", "").replace("}", "")
        return ". ".join([f"{names}{year}", title, *self._place()]) + "."

    def _place(self) -> list[str]:
        """Where it was printed and where it is found, as far as is known."""
        source = dict(self.source)
        where = source.get("journal") or source.get("booktitle") or ""
        if "volume" in source:
            number = f"({source['number']})" if "number" in source else ""
            where += f" {source['volume']}{number}"
        if "pages" in source:
            where += f", {source['pages'].replace('--', '-')}"
        found = f"https://doi.org/{source['doi']}" if "doi" in source else source.get("url", "")
        if "eprint" in source:
            found = f"arXiv:{source['eprint']}"
        version = f"Version {source['version']}" if "version" in source else ""
        return [part for part in (where, version, found) if part]


def _latex(text: str) -> str:
    for letter, command in LETTERS.items():
        text = text.replace(letter, command)
    return text


LETTERS = {"ç": r"{\c c}", "ö": r"{\"o}", "ü": r"{\"u}"}
