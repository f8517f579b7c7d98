"""Is the built book whole? It needs `make book`, and no browser."""

import re

from tools.project import HERE
from tools.scan_html import broken_links, outside_requests, pages_of


def test_no_page_fetches_anything_from_outside(html):
    assert list(outside_requests(html)) == []


def test_no_link_or_image_leads_nowhere(html):
    assert list(broken_links(html)) == []


def test_every_figure_of_a_notebook_says_where_it_comes_from(html):
    names = [path.name for path in (HERE.stage / "results" / "figures").glob("*.png")]
    assert names
    for page in pages_of(html):
        text = page.read_text(encoding="utf-8")
        for name in names:
            for figure in re.findall(
                rf"<figure(?:(?!</figure>).)*_images/{re.escape(name)}.*?</figure>", text, re.DOTALL
            ):
                assert "Made by notebook " in figure, f"{page.name} shows {name} without its origin"
                assert re.search(r'<img[^>]* alt="[^"]{20,}"', figure), (
                    f"{page.name} shows {name} without a description"
                )
                assert "<figcaption" in figure, f"{page.name} shows {name} without a caption"
