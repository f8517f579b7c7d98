"""Is the built book whole? It needs `make book`; the parts with a browser need Chromium."""

import json

import pytest

from tools.browser import Browser, find_chromium
from tools.project import HERE
from tools.scan_html import broken_links, outside_requests, pages_of
from tools.served import served

WIDTHS = {"desk": 1280, "phone": 390}


@pytest.fixture(scope="session")
def html():
    if not (HERE.html / ".fingerprint").is_file():
        pytest.fail("there is no built book in _build/html: run `make book`")
    return HERE.html


def test_no_page_fetches_anything_from_outside(html):
    assert list(outside_requests(html)) == []


def test_no_link_or_image_leads_nowhere(html):
    assert list(broken_links(html)) == []


def test_every_figure_of_a_notebook_says_where_it_comes_from(html):
    for page in pages_of(html):
        text = page.read_text(encoding="utf-8")
        for name in [path.name for path in (HERE.stage / "results" / "figures").glob("*.png")]:
            if f"_images/{name}" in text:
                assert "Made by notebook " in text, f"{page.name} shows {name} without its origin"


@pytest.fixture(scope="session")
def site(html):
    with served(html) as address:
        yield address


@pytest.fixture(scope="session")
def browser():
    chromium = find_chromium()
    if chromium is None:
        pytest.skip("there is no Chromium on PATH (Debian: `apt-get install chromium`)")
    with Browser(chromium) as started:
        yield started


def names():
    """Pages as they stand now; when there is no book, one name so that the tests run and say so."""
    return [path.relative_to(HERE.html).as_posix() for path in pages_of(HERE.html)] or ["index.html"]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", names())
def test_a_page_is_quiet_and_fits(site, browser, name, width):
    browser.open(site + name, WIDTHS[width], 844)
    assert [x for x in browser.requests if not x.startswith((site, "data:", "blob:"))] == []
    assert browser.failed == []
    assert browser.messages == []
    assert browser.evaluate("document.querySelectorAll('mjx-merror, .MathJax_Error').length") == 0
    assert browser.evaluate("document.documentElement.scrollWidth") <= WIDTHS[width]
    shown = "[...document.images].filter(x => x.complete && !x.naturalWidth).map(x => x.src)"
    assert browser.evaluate(shown) == []


def test_a_page_opened_from_the_disk_fetches_nothing_either(html, browser):
    browser.open((html / "notation.html").as_uri())
    assert [x for x in browser.requests if not x.startswith(("file:", "data:", "blob:"))] == []
    assert browser.evaluate("document.querySelectorAll('mjx-container').length") > 10


def test_there_is_one_search_field_and_it_finds_a_term(site, browser):
    browser.open(site + "index.html")
    assert browser.evaluate("document.querySelectorAll('.bd-sidebar .search-button-field').length") == 1
    browser.open(site + "search.html?q=replacement")
    found = "[...document.querySelectorAll('#search-results li a')].some(x => x.href.includes('notation'))"
    browser.until(found)


def test_the_theme_follows_the_system_and_can_be_switched(site, browser):
    theme = "document.documentElement.dataset.theme"
    browser.open(site + "index.html", dark=True)
    assert browser.evaluate(theme) == "dark"
    browser.open(site + "index.html")
    assert browser.evaluate(theme) == "light"
    button = "[...document.querySelectorAll('.theme-switch-button')].find(x => x.offsetParent).click()"
    for _ in range(3):
        if browser.evaluate(theme) != "dark":
            browser.evaluate(button)
    assert browser.evaluate(theme) == "dark"
    browser.evaluate("localStorage.clear()")


def test_code_can_be_copied_and_a_notebook_be_saved(site, browser):
    notebooks = [name for name in names() if name.startswith("notebooks/")]
    assert notebooks, "the book has no notebook"
    browser.open(site + notebooks[0])
    assert browser.evaluate("document.querySelectorAll('button.copybtn').length") > 0
    browser.evaluate("document.querySelector('a[href$=\".ipynb\"]').click()")
    wanted = browser.downloads / notebooks[0].split("/")[1].replace(".html", ".ipynb")
    browser.wait_for(wanted.is_file)
    assert json.loads(wanted.read_text(encoding="utf-8"))["nbformat"] == 4
