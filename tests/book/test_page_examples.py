"""Every Python example of the pages outside the theory runs as it stands, in a fresh namespace."""

import re
from pathlib import Path

import pytest

PAGES = sorted((Path(__file__).parents[2] / "book").glob("*.md"))
EXAMPLE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLES = [(page.stem, k, code) for page in PAGES for k, code in enumerate(EXAMPLE.findall(page.read_text("utf-8")))]


def test_there_are_examples():
    assert {page for page, _, _ in EXAMPLES} >= {"engines"}


@pytest.mark.parametrize(("page", "number", "code"), EXAMPLES, ids=[f"{page}-{k}" for page, k, _ in EXAMPLES])
def test_example_runs(page, number, code):
    script = '__name__ == "__main__"' in code  # needs more than this machine: its imports run, its body does not
    assert script or "assert" in code  # an example that checks nothing shows nothing
    exec(compile(code, f"{page}.md, example {number}", "exec"), {"__name__": page})
