"""Strip the notebooks of outputs before they are committed, or check that they are (``--check``)."""

import subprocess
import sys

from mdsd_study.tools.notebooks.notebooks import all_notebooks
from mdsd_study.tools.notebooks.project import HERE, mended_by_user


def problems(check: bool) -> list[str]:
    """Strip or verify; what is wrong, one line each."""
    found = []
    for notebook in all_notebooks(HERE):
        flags = ["--keep-id", "--verify"] if check else ["--keep-id"]
        command = [sys.executable, "-m", "nbstripout", *flags, str(notebook.path)]
        if subprocess.run(command, capture_output=True).returncode:
            found.append(f"{notebook.path.name} holds outputs; `make format` strips it")
        kernel = notebook.content.metadata.get("kernelspec", {}).get("name")
        if kernel != "python3":
            found.append(f"{notebook.path.name} names the kernel {kernel!r}; it must be 'python3'")
        identities = [cell.get("id") for cell in notebook.content.cells]
        if None in identities or len(set(identities)) < len(identities):
            found.append(f"{notebook.path.name} has cells without an id of their own")
    return found


@mended_by_user()
def main() -> int:
    """0 if all notebooks are as git should hold them."""
    found = problems(check="--check" in sys.argv[1:])
    print("\n".join(found) or "notebooks: stripped")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
