from pathlib import Path

import pytest

from mdsd_study.tools.notebooks.project import HERE
from tests.built.browser import Browser, find_chromium
from tests.built.local_server import serve_folder


@pytest.fixture(scope="session")
def root():
    return Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def html():
    if not (HERE.html / ".fingerprint").is_file():
        pytest.fail("there is no built book in _build/html: run `make book`")
    return HERE.html


@pytest.fixture(scope="session")
def site(html):
    with serve_folder(html) as address:
        yield address


@pytest.fixture(scope="session")
def browser():
    chromium = find_chromium()
    if chromium is None:
        pytest.skip("there is no Chromium on PATH (Debian: `apt-get install chromium`)")
    with Browser(chromium, timeout=120) as started:
        yield started
