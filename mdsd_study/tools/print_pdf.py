"""Print the book, staged by the last `make book`, as one PDF: all pages on one, through Chromium."""

import sys

from mdsd_study.tools.build_book import run_jupyter_book
from mdsd_study.tools.check.browser import Browser, find_chromium
from mdsd_study.tools.check.local_server import serve_folder
from mdsd_study.tools.notebooks.project import HERE, Project, ProjectError, mended_by_user


@mended_by_user()
def main(project: Project = HERE) -> None:
    """Write ``_build/mdsd.pdf``; 0 if it is there."""
    chromium = find_chromium()
    if chromium is None:
        raise ProjectError("there is no Chromium (Debian: `apt-get install chromium`): it prints the PDF")
    run_jupyter_book(project, "singlehtml")
    target = project.build / "mdsd.pdf"
    with serve_folder(project.build / "singlehtml") as address, Browser(chromium, timeout=600) as browser:
        browser.open(f"{address}index.html")
        browser.print_pdf(target)
    print(f"{target}: {target.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    sys.exit(main())
