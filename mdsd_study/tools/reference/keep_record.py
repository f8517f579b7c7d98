"""Take the recorded tables of full runs over into ``reference/recorded/``: ``python -m
mdsd_study.tools.reference.keep_record NAME ...``.
"""

import argparse
import json
import sys
from pathlib import Path

from mdsd_study.report.recorded_runs import read_record, recorded_file
from mdsd_study.report.results import write_json
from mdsd_study.tools.notebooks.project import HERE, Project, ProjectError, mended_by_user

#: A record is a small table.
MOST_BYTES = 200_000


def keep_record(project: Project, name: str, remark: str = "") -> Path:
    """Copy ``results/recorded/NAME.json``, with a remark if there is one, to its place; returns that place."""
    source = project.results / "recorded" / f"{name}.json"
    record = read_record(name, path=source)
    if record is None:
        raise ProjectError(f"{source} is missing: run the notebook with --profile full first")
    if record.parameters.get("profile") != "full":
        raise ProjectError(f"{source} was made with the profile {record.parameters.get('profile')}, not full")
    if source.stat().st_size > MOST_BYTES:
        raise ProjectError(f"{source} has {source.stat().st_size} bytes; a record has at most {MOST_BYTES}")
    target = recorded_file(name, project.reference)
    content = json.loads(source.read_text(encoding="utf-8"))
    return write_json(target, content | ({"remark": remark} if remark else {}))


@mended_by_user(ValueError)
def main() -> None:
    """0 if all records were taken over."""
    parser = argparse.ArgumentParser(prog="python -m mdsd_study.tools.reference.keep_record", description=__doc__)
    parser.add_argument("names", nargs="+", help="notebooks")
    parser.add_argument("--remark", default="", help="a sentence that is shown with the record")
    given = parser.parse_args()
    for name in given.names:
        print(keep_record(HERE, name, given.remark))


if __name__ == "__main__":
    sys.exit(main())
