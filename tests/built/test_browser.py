"""The built book in a real browser: does every page work for a reader? Skipped, with a message, without Chromium."""

import json

import pytest

from mdsd_study.tools.notebooks.project import HERE
from tests.built.local_server import serve_folder
from tests.built.page_problems import PHONE, page_problems
from tests.built.scan_html import pages_of


def names():
    """Pages as they stand now; when there is no book, one name so that the tests run and say so."""
    return [path.relative_to(HERE.html).as_posix() for path in pages_of(HERE.html)] or ["index.html"]


@pytest.mark.parametrize("name", names())
def test_a_page_is_quiet_and_fits_desk_and_phone(site, browser, name):
    assert page_problems(browser, site, name) == []


def test_a_bad_page_is_noticed(browser, tmp_path):
    (tmp_path / "bad.html").write_text(
        """<!doctype html><meta name="viewport" content="width=device-width">
        <script src="http://127.0.0.2:9/outside.js"></script><script>throw new Error("spoilt")</script>
        <img src="lost.png"><mjx-merror data-mjx-error="Missing brace">x</mjx-merror>
        <p style="width: 40rem">This paragraph does not fit a phone.</p>""",
        encoding="utf-8",
    )
    with serve_folder(tmp_path) as address:
        found = page_problems(browser, address, "bad.html")
    for word in ("fetches http", "failed", "spoilt", "not shown", "Missing brace", f"a window of {PHONE}: ['p."):
        assert any(word in line for line in found), (word, found)
    assert not any("window of 1280" in line for line in found)


def test_a_page_opened_from_the_disk_fetches_nothing_either(html, browser):
    browser.open((html / "notation.html").as_uri())
    assert [x for x in browser.requests if not x.startswith(("file:", "data:", "blob:"))] == []
    assert browser.evaluate("document.querySelectorAll('mjx-container').length") > 10


def test_the_menu_of_the_phone_opens(site, browser):
    browser.open(site + "index.html", PHONE, 800)
    shown = """[...document.querySelectorAll('.bd-links a')]
        .some(x => x.checkVisibility({visibilityProperty: true}) && x.getBoundingClientRect().right > 0)"""
    assert not browser.evaluate(shown)
    browser.evaluate("document.querySelector('.primary-toggle').click()")
    browser.until(shown)


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
    saved = json.loads(wanted.read_text(encoding="utf-8"))
    assert saved["nbformat"] == 4
    assert all(cell["outputs"] or cell["execution_count"] for cell in saved["cells"] if cell["cell_type"] == "code")


def test_long_cells_are_folded_and_open(site, browser):
    for name in names():
        if name.startswith("notebooks/"):
            browser.open(site + name)
            if browser.evaluate("document.querySelectorAll('details.hide.above-input').length"):
                break
    else:
        pytest.fail("no notebook has a long cell")
    cell = "document.querySelector('details.hide.above-input pre')"
    assert not browser.evaluate(f"{cell}.checkVisibility()")
    browser.evaluate("document.querySelector('details.hide.above-input summary').click()")
    browser.until(f"{cell}.checkVisibility()")
