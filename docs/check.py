"""Is the built site whole? `python docs/check.py SITE_FOLDER`, after `sphinx-build docs SITE_FOLDER`.

Every internal link, anchor and image must exist. Then a headless Chromium opens pages: nothing may be wider
than the window of a phone or of a desktop, no script of the site may fail, and the search must find what
people look for. Requests to other hosts are refused, so that the outcome does not depend on them.
"""

import argparse
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatch
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlsplit

from bs4 import BeautifulSoup

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page, Route

SEARCHES = {  # what is looked for, and the page that must be found first
    "PyMC": "guides/from_your_sampler.html",
    "warm-up": "guides/from_your_sampler.html",
    "few draws": "guides/expensive_models.html",
    "probability": "guides/weights.html",
    "hierarchical": "examples/hierarchical.html",
    "wrong score": "guides/audit.html",
    "how long": "guides/what_to_expect.html",
}
SEEN = ("index.html", "tour.html", "faq.html", "peers.html", "examples/*.html", "guides/*.html")
PICTURES = ("index.html", "tour.html", "examples/*.html")
WIDTHS = (390, 1280)
FINISHED = "document.querySelector('#search-results h2')?.textContent === 'Search Results'"
SOURCES = {"a": "href", "img": "src", "link": "href", "script": "src"}


def read(site: Path) -> dict[str, BeautifulSoup]:
    """Every page of the site, parsed, by its path."""
    return {
        path.relative_to(site).as_posix(): BeautifulSoup(path.read_bytes(), "html.parser")
        for path in sorted(site.rglob("*.html"))
        if "_static" not in path.relative_to(site).parts
    }


def links(page: BeautifulSoup) -> Iterator[str]:
    """Where the links, images, scripts and styles of a page lead."""
    for tag, key in SOURCES.items():
        for found in page.find_all(tag):
            if target := found.get(key):
                yield str(target)


def broken_links(site: Path, pages: dict[str, BeautifulSoup]) -> list[str]:
    """A line for every internal link whose file or anchor is missing."""
    anchors = {
        name: {str(found["id"]) for found in page.find_all(id=True)} for name, page in pages.items()
    }
    root, wrong = site.resolve(), list[str]()
    for name, page in pages.items():
        for link in dict.fromkeys(links(page)):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            path = (site / name).parent / unquote(parts.path) if parts.path else site / name
            target = path.resolve()
            if not target.is_file() or not target.is_relative_to(root):
                wrong.append(f"{name}: there is no {link}")
                continue
            known = anchors.get(target.relative_to(root).as_posix())
            if known is not None and parts.fragment and unquote(parts.fragment) not in known:
                wrong.append(f"{name}: {link} names an anchor that is not there")
    return wrong


def external_links(pages: dict[str, BeautifulSoup]) -> list[str]:
    """Links to other hosts, each once."""
    found = (link for page in pages.values() for link in links(page))
    return sorted({link for link in found if urlsplit(link).scheme in {"http", "https"}})


class Quiet(SimpleHTTPRequestHandler):
    """Serves files, and says nothing of it."""

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def handle(self) -> None:
        """A window that goes on to the next page does not wait for the files of the last."""
        with suppress(ConnectionError):
            super().handle()


@contextmanager
def served(site: Path) -> Iterator[str]:
    """The address of the site, while it is served."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=site)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def open_window(browser: "Browser", address: str, width: int, wrong: list[str]) -> "Page":
    """A window that reaches the site alone, and writes down what its scripts complain of."""

    def route(request: "Route") -> None:
        inside = request.request.url.startswith(address)
        request.continue_() if inside else request.abort()

    def complain(message: "ConsoleMessage") -> None:
        if message.type == "error" and message.location["url"].startswith(address):
            wrong.append(f"{window.url}: {message.text}")

    window = browser.new_page(viewport={"width": width, "height": 900})
    window.route("**/*", route)
    window.on("console", complain)
    window.on("pageerror", lambda error: wrong.append(f"{window.url}: {error}"))
    return window


def look(window: "Page", address: str, name: str, wrong: list[str]) -> None:
    """Open a page, which must not be wider than its window."""
    window.goto(f"{address}/{name}", wait_until="load")
    wide = window.evaluate("document.documentElement.scrollWidth")
    size = window.viewport_size
    if size is not None and wide > size["width"]:
        wrong.append(f"{name}: {wide} pixels wide in a window of {size['width']}")


def search(window: "Page", address: str, words: str, expected: str, wrong: list[str]) -> None:
    """Use the site's own search, as a reader would."""
    window.goto(f"{address}/search.html?q={quote(words)}")
    window.wait_for_function(FINISHED, timeout=60_000)
    found = window.eval_on_selector_all(
        "#search-results ul.search > li > a", "links => links.map(link => link.pathname.slice(1))"
    )
    first = list(dict.fromkeys(found))[:5]
    print(f"search {words!r}: {', '.join(first)}")
    if first[:1] != [expected]:
        wrong.append(f"search {words!r}: {expected} is not the first of {first}")


def named(pages: dict[str, BeautifulSoup], patterns: tuple[str, ...]) -> list[str]:
    """The pages that match one of the patterns."""
    return [name for name in pages if any(fnmatch(name, one) for one in patterns)]


def browse(site: Path, pages: dict[str, BeautifulSoup], pictures: Path | None) -> list[str]:
    """Everything that takes a browser."""
    from playwright.sync_api import sync_playwright

    wrong: list[str] = []
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with served(site) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for width in WIDTHS:
            window = open_window(browser, address, width, wrong)
            for name in named(pages, SEEN):
                look(window, address, name, wrong)
                if pictures and name in named(pages, PICTURES):
                    file = pictures / f"{name.removesuffix('.html').replace('/', '_')}_{width}.png"
                    window.screenshot(path=file, full_page=True)
        window = open_window(browser, address, WIDTHS[-1], wrong)
        for words, expected in SEARCHES.items():
            search(window, address, words, expected, wrong)
        browser.close()
    return wrong


def main() -> None:
    """Check a site, and fail with a list of what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("site", type=Path)
    parser.add_argument("--external", action="store_true", help="list links to other hosts")
    parser.add_argument("--pictures", type=Path, help="where to keep pictures of pages")
    given = parser.parse_args()
    if not (given.site / "index.html").is_file():
        parser.error(f"{given.site} has no index.html: run `sphinx-build docs {given.site}` first.")
    if given.pictures:
        given.pictures.mkdir(parents=True, exist_ok=True)
    pages = read(given.site)
    if given.external:
        print(*external_links(pages), sep="\n")
    wrong = broken_links(given.site, pages) + browse(given.site, pages, given.pictures)
    if wrong:
        raise SystemExit("\n".join([f"{len(wrong)} things are wrong:", *wrong]))
    print(f"{len(pages)} pages: links, widths, scripts and searches are in order")


if __name__ == "__main__":
    main()
