"""Print the book, staged by the last `make book`, as one PDF: all pages on one, through Chromium."""

import sys

from mdsd_study.tools.build_book import run_jupyter_book
from mdsd_study.tools.check.browser import Browser, find_chromium
from mdsd_study.tools.check.served import served
from mdsd_study.tools.notebooks.project import HERE, Project, ProjectError


def print_pdf(project: Project) -> None:
    """Write ``_build/mdsd.pdf``."""
    chromium = find_chromium()
    if chromium is None:
        raise ProjectError("there is no Chromium (Debian: `apt-get install chromium`): it prints the PDF")
    run_jupyter_book(project, "singlehtml")
    target = project.build / "mdsd.pdf"
    with served(project.build / "singlehtml") as address, Browser(chromium, timeout=600) as browser:
        browser.open(f"{address}index.html")
        browser.print_pdf(target)
    print(f"{target}: {target.stat().st_size / 1e6:.1f} MB")


def main() -> int:
    """0 if the PDF is there."""
    try:
        print_pdf(HERE)
    except ProjectError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
