"""Is the built book whole? It needs `make book`, and no browser."""

from tools.project import HERE
from tools.scan_html import broken_links, outside_requests, pages_of


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
