"""The folder of a sweep: what is finished stays finished.

::

    manifest.json                   the settings, and a digest of the modules that measure
    texts/SET/TARGET-T-BATCH.json   texts that the target drew, if they were not stored with the project
    prompts/SLICE/PROMPT.parquet    the rows of one prompt and slice: a file is there if and only if it is complete
    table.parquet                   all rows, in the order of the settings
    summary.parquet                 means over positions with intervals

Files are written under another name and renamed, so that a process that is killed leaves no half a file behind.
"""

import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from mdsd_core import disk_cache
from mdsd_study.measure.grid import DrawJob, Slice
from mdsd_study.measure.settings import SweepSettings
from mdsd_study.measure.stored_texts import read_texts, write_texts
from mdsd_study.measure.table import SCHEMA
from mdsd_study.measure.texts import Continuation
from mdsd_study.report.provenance import imported_by
from mdsd_study.report.results import write_json

_FORMAT = 1

#: What a worker runs, and what makes the summary: a sweep's numbers come from these modules and from all they import.
_MEASURING = ("mdsd_study.measure.work", "mdsd_study.measure.table")


class SettingsDiffer(ValueError):
    """A folder holds a sweep with other settings, or made by another version of the code.

    >>> from tempfile import mkdtemp
    >>> from mdsd_study.measure.pairs import find_pair
    >>> folder, settings = Path(mkdtemp()), SweepSettings((find_pair("tiny-random"),), ("mt_bench",))
    >>> store = Store(folder, settings)
    >>> try:
    ...     Store(folder, dataclasses.replace(settings, seed=1))
    ... except SettingsDiffer as error:
    ...     print("seed was 0, is 1" in str(error))
    True
    """


def measuring_digest() -> str:
    """A digest of the modules that measure: an edit elsewhere does not keep a long sweep from going on.

    >>> len(measuring_digest())
    64
    """
    return disk_cache.digest_of_files(disk_cache.PACKAGE.parent, imported_by(*_MEASURING))


class Store:
    """The files of one sweep.

    Parameters
    ----------
    folder : path
        New, or one of a sweep with the same settings.
    settings : SweepSettings

    Raises
    ------
    SettingsDiffer
        If the folder belongs to another sweep; the message says what differs.
    """

    def __init__(self, folder: Path, settings: SweepSettings) -> None:
        self.folder = folder
        path = folder / "manifest.json"
        wanted = {"format": _FORMAT, "code": measuring_digest(), "settings": settings.for_json()}
        wanted = json.loads(json.dumps(wanted))
        if not path.is_file():
            if folder.is_dir() and any(folder.iterdir()):
                raise SettingsDiffer(f"{folder} is not empty and holds no sweep: choose another folder")
            write_json(path, wanted)
            return
        found = json.loads(path.read_text(encoding="utf-8"))
        differences = _differences(found, wanted)
        if differences:
            raise SettingsDiffer(
                f"{folder} holds another sweep ({'; '.join(differences)}): choose another folder, or delete this one"
            )

    def path_of(self, one: Slice, prompt: str) -> Path:
        """Where the rows of a prompt and slice are, or will be."""
        return self.folder / "prompts" / one.slug / f"{quote(prompt, safe='')}.parquet"

    def finished(self, one: Slice, prompt: str) -> bool:
        """Whether they are there."""
        return self.path_of(one, prompt).is_file()

    def write(self, one: Slice, prompt: str, rows: pa.Table) -> None:
        """Keep the rows of a prompt and slice, in one step."""
        with disk_cache.in_one_step(self.path_of(one, prompt)) as part:
            pq.write_table(rows, part)

    def texts(self, job: DrawJob) -> list[Continuation] | None:
        """The texts of a batch that were drawn before, or None."""
        path = self._texts_path(job)
        return read_texts(path)[1] if path.is_file() else None

    def write_texts(self, job: DrawJob, texts: Iterable[Continuation]) -> None:
        """Keep the texts of a batch, in one step."""
        own = job.slice
        sampling = dataclasses.asdict(own.text_sampling)
        write_texts(
            self._texts_path(job), {"target": own.pair.target, "set": own.prompt_set, "sampling": sampling}, texts
        )

    def _texts_path(self, job: DrawJob) -> Path:
        name, revision = job.slice.target
        target = quote(f"{name}@{revision or ''}", safe="")
        name = f"{target}-T{job.slice.text_sampling.temperature!r}-{job.number}.json"
        return self.folder / "texts" / quote(job.slice.prompt_set, safe="") / name

    def gather(self, finished: Iterable[tuple[Slice, str]]) -> Path:
        """Write ``table.parquet`` from the files of prompts and slices, one after the other; returns its path."""
        path = self.folder / "table.parquet"
        with disk_cache.in_one_step(path) as part, pq.ParquetWriter(part, SCHEMA) as writer:
            for one, prompt in finished:
                writer.write_table(pq.read_table(self.path_of(one, prompt), schema=SCHEMA))
        return path


def _differences(found: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    if found.get("format") != wanted["format"]:
        return [f"format {found.get('format')}, not {wanted['format']}"]
    differences = [
        f"{name} was {found['settings'].get(name)!r}, is {value!r}"
        for name, value in wanted["settings"].items()
        if found["settings"].get(name) != value
    ]
    if found["code"] != wanted["code"]:
        differences.append("the code that measures has changed since")
    return differences
