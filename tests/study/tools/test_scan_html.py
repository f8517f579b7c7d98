import pytest

from tests.built.scan_html import broken_links, outside_requests

PAGE = "<!doctype html><html><head>{head}</head><body id='top'>{body}</body></html>"


def write(folder, head="", body="", name="index.html"):
    (folder / name).write_text(PAGE.format(head=head, body=body))


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ('<script src="https://example.org/a.js"></script>', ""),
        ('<link rel="stylesheet" href="//example.org/a.css">', ""),
        ('<link rel="preconnect" href="https://example.org">', ""),
        ("<style>@import 'https://example.org/a.css';</style>", ""),
        ("<style>p { background: url(https://example.org/a.png) }</style>", ""),
        ("", '<img src="https://example.org/a.png">'),
        ("", '<img srcset="a.png 1x, https://example.org/a.png 2x">'),
        ("", '<iframe src="https://example.org"></iframe>'),
        ("", "<p style=\"background: url('https://example.org/a.png')\"></p>"),
        ("", '<video poster="https://example.org/a.png"></video>'),
    ],
)
def test_what_a_browser_would_fetch_from_outside_is_found(tmp_path, head, body):
    write(tmp_path, head, body)
    (found,) = outside_requests(tmp_path)
    assert found.startswith("index.html: ")
    assert "example.org" in found


def test_style_sheets_are_read_too(tmp_path):
    (tmp_path / "a.css").write_text("@font-face { src: url('https://example.org/a.woff2') }")
    assert list(outside_requests(tmp_path)) == ["a.css: https://example.org/a.woff2"]


def test_links_for_the_reader_and_own_files_are_no_requests(tmp_path):
    write(
        tmp_path,
        '<link rel="canonical" href="https://example.org">',
        '<a href="https://example.org">x</a><img src="a.png">',
    )
    assert list(outside_requests(tmp_path)) == []


def test_links_that_lead_nowhere_are_found(tmp_path):
    (tmp_path / "deep").mkdir()
    write(tmp_path / "deep", body="<a href='../index.html#top'>x</a><a href='../index.html#low'>y</a>")
    write(tmp_path, body="<a href='deep/'>x</a><a href='gone.html'>y</a><img src='a.png'><a href='#top'>z</a>")
    assert sorted(broken_links(tmp_path)) == [
        "deep/index.html: ../index.html#low",
        "index.html: a.png",
        "index.html: gone.html",
    ]
