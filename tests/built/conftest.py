from pathlib import Path

import pytest

from tools.browser import Browser, find_chromium
from tools.project import HERE
from tools.served import served


@pytest.fixture(scope="session")
def root():
    return Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def html():
    if not (HERE.html / ".fingerprint").is_file():
        pytest.fail("there is no built book in _build/html: run `make book`")
    return HERE.html


@pytest.fixture(scope="session")
def site(html):
    with served(html) as address:
        yield address


@pytest.fixture(scope="session")
def browser():
    chromium = find_chromium()
    if chromium is None:
        pytest.skip("there is no Chromium on PATH (Debian: `apt-get install chromium`)")
    with Browser(chromium, timeout=120) as started:
        yield started
