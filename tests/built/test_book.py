"""Is the built book whole? It needs `make book`, and no browser."""

import re

from mdsd_study.tools.notebooks.project import HERE
from tests.built.scan_html import broken_links, outside_requests, pages_of


def test_no_page_fetches_anything_from_outside(html):
    assert list(outside_requests(html)) == []


def test_no_link_or_image_leads_nowhere(html):
    assert list(broken_links(html)) == []


def test_every_figure_of_a_notebook_says_where_it_comes_from(html):
    shown = set()
    for page in pages_of(html):
        for figure in re.findall(r"<figure\b.*?</figure>", page.read_text(encoding="utf-8"), re.DOTALL):
            image = re.search(r'_images/([\w-]+\.png)"', figure)
            if image is None or not (HERE.stage / "results" / "figures" / image[1]).is_file():
                continue  # a drawing
            shown.add(image[1])
            assert "Made by notebook " in figure, f"{page.name} shows {image[1]} without its origin"
            assert re.search(r'<img\b[^>]* alt="[^"]{20,}"', figure), f"{page.name}: {image[1]} has no description"
            assert "<figcaption" in figure, f"{page.name}: {image[1]} has no caption"
    assert shown == {path.name for path in (HERE.stage / "results" / "figures").glob("*.png")}
