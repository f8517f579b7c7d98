"""Look at one page in a browser as a reader would, and list what is wrong with it."""

from tests.built.browser import Browser

#: Width of the desktop window and of the phone that every page has to fit.
DESK, PHONE = 1280, 375

_LOST_IMAGES = "[...document.images].filter(x => x.complete && !x.naturalWidth).map(x => x.src)"
_BAD_FORMULAE = """[...document.querySelectorAll("mjx-merror, .MathJax_Error, [data-mjx-error]")]
    .map(x => x.getAttribute("data-mjx-error") || x.textContent)"""
#: Elements that stick out of the window on the right and lie in nothing that scrolls by itself.
_STICKING_OUT = """(() => {
    const edge = document.documentElement.clientWidth + 1;
    const scrolls = x => x && x !== document.body && x !== document.documentElement
        && (["auto", "scroll", "hidden", "clip"].includes(getComputedStyle(x).overflowX) || scrolls(x.parentElement));
    return [...document.body.querySelectorAll("*")]
        .filter(x => x.getBoundingClientRect().right > edge && !scrolls(x.parentElement))
        .slice(0, 3).map(x => x.tagName.toLowerCase() + "." + x.className + ": " + x.textContent.trim().slice(0, 40));
})()"""


def page_problems(browser: Browser, site: str, name: str) -> list[str]:
    """Open the page `name` of the book served at `site` and say in words all that is wrong.

    Looked for: requests to anywhere else, failed requests, messages of scripts, formulae that MathJax could not set,
    images that are not shown, and, first on a desktop and then on a phone, a page wider than its window.
    """
    browser.open(site + name, DESK)
    outside = [f"fetches {x}" for x in browser.requests if not x.startswith((site, "data:", "blob:"))]
    found = outside + [f"failed: {x}" for x in browser.failed] + [f"a script says: {x}" for x in browser.messages]
    found += [f"no formula: {x}" for x in browser.evaluate(_BAD_FORMULAE)]
    found += [f"image not shown: {x}" for x in browser.evaluate(_LOST_IMAGES)]
    for width in (DESK, PHONE):
        browser.resize(width)
        wide = browser.evaluate("document.documentElement.scrollWidth")
        if wide > width:
            found.append(f"{wide} wide in a window of {width}: {browser.evaluate(_STICKING_OUT)}")
    return found
