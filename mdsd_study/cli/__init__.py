"""The command line: ``mdsd generate | bound | compare | measure | bench | models``.

Exit codes: 0 done; 1 (``measure`` only) some prompts failed, all others are kept; 2 the arguments are wrong, or what
they name cannot be used; 3 a model, a text or a package is missing; 130 interrupted. Errors say what to do.
"""

import sys

from mdsd_core.extras import needed_for


def main() -> None:
    """Run the command line; where its own packages are missing, say what to install."""
    try:
        with needed_for("the command line"):
            from mdsd_study.cli.commands import app
    except ImportError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(3)
    app()
