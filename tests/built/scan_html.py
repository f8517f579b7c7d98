"""Look at the built pages without a browser: what would they fetch from outside, which links lead nowhere?"""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: Attributes whose address a browser fetches by itself when it shows the page.
_FETCHED = {
    ("script", "src"),
    ("img", "src"),
    ("img", "srcset"),
    ("source", "src"),
    ("source", "srcset"),
    ("iframe", "src"),
    ("embed", "src"),
    ("object", "data"),
    ("audio", "src"),
    ("video", "src"),
    ("video", "poster"),
    ("track", "src"),
    ("input", "src"),
    ("use", "href"),
    ("image", "href"),
}
_LINKS_FETCHED = {
    "stylesheet",
    "icon",
    "preload",
    "modulepreload",
    "prefetch",
    "preconnect",
    "dns-prefetch",
    "manifest",
}
_CSS_ADDRESS = re.compile(r"""(?:url\(\s*['"]?|@import\s+['"])([^'")\s]+)""")


class _Page(HTMLParser):
    """Collects what a page fetches, where its links lead, and which anchors it has."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self._in_style = False

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        for name in ("id", "name"):
            if name in values:
                self.anchors.add(values[name])
        for name, value in values.items():
            if (tag, name) in _FETCHED:
                self.fetched += [part.split()[0] for part in value.split(",")] if name == "srcset" else [value]
            elif name == "style":
                self.fetched += _CSS_ADDRESS.findall(value)
        if tag == "link" and _LINKS_FETCHED & set(values.get("rel", "").split()):
            self.fetched.append(values.get("href", ""))
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        self._in_style = tag == "style"

    def handle_endtag(self, tag: str) -> None:
        self._in_style = False

    def handle_data(self, data: str) -> None:
        if self._in_style:
            self.fetched += _CSS_ADDRESS.findall(data)


def read_page(path: Path) -> _Page:
    """Parse one page."""
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def is_outside(address: str) -> bool:
    """Whether a browser would leave the page's own site for it.

    >>> [is_outside(x) for x in ("https://a.b/c.js", "//a.b/c.js", "_static/c.js", "data:image/png;base64,AA", "#top")]
    [True, True, False, False, False]
    """
    parts = urlsplit(address)
    return parts.scheme in ("http", "https", "ws", "wss", "ftp") or bool(parts.netloc)


def pages_of(html: Path) -> list[Path]:
    """All pages that are shown; the theme's own templates lie in ``_static`` too and are left out."""
    return [path for path in sorted(html.rglob("*.html")) if path.relative_to(html).parts[0] != "_static"]


def outside_requests(html: Path) -> Iterator[str]:
    """Every address outside of the book that a page or style sheet fetches, as ``file: address``."""
    for path in pages_of(html):
        for address in read_page(path).fetched:
            if is_outside(address):
                yield f"{path.relative_to(html)}: {address}"
    for path in sorted(html.rglob("*.css")):
        for address in _CSS_ADDRESS.findall(path.read_text(encoding="utf-8", errors="replace")):
            if is_outside(address):
                yield f"{path.relative_to(html)}: {address}"


def broken_links(html: Path) -> Iterator[str]:
    """Links, images and scripts inside the book that lead nowhere, anchors included, as ``file: address``."""
    pages = {path.resolve(): read_page(path) for path in pages_of(html)}
    for path, page in pages.items():
        for address in [*page.links, *page.fetched]:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc or not (parts.path or parts.fragment):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target = target / "index.html"
            lost = not target.is_file()
            if not lost and parts.fragment and target in pages:
                lost = unquote(parts.fragment) not in pages[target].anchors
            if lost:
                yield f"{path.relative_to(html.resolve())}: {address}"
