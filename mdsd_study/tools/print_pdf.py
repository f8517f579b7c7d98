"""Print the book, staged by the last `make book`, as one PDF: all pages on one, through Chromium."""

import shutil
import subprocess
import sys

from mdsd_study.tools.build_book import run_jupyter_book
from mdsd_study.tools.notebooks.project import HERE, Project, ProjectError, mended_by_user

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")

#: How long scripts may take to set the formulae, in milliseconds of the page's own clock.
_SCRIPTS = 600_000


@mended_by_user()
def main(project: Project = HERE) -> None:
    """Write ``_build/mdsd.pdf``; 0 if it is there."""
    chromium = next(filter(None, map(shutil.which, _NAMES)), None)
    if chromium is None:
        raise ProjectError("there is no Chromium (Debian: `apt-get install chromium`): it prints the PDF")
    run_jupyter_book(project, "singlehtml")
    target = project.build / "mdsd.pdf"
    page = (project.build / "singlehtml" / "index.html").as_uri()
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-pdf-header-footer"]
    command = [chromium, *flags, f"--virtual-time-budget={_SCRIPTS}", f"--print-to-pdf={target}", page]
    subprocess.run(command, check=True, capture_output=True)
    print(f"{target}: {target.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    sys.exit(main())
