"""Sweeps of notebooks, which are kept in the cache folder."""

import re
import tempfile

from mdsd_core.disk_cache import cache_dir, key_of
from mdsd_core.models import model_names
from mdsd_core.models.prompts import PROMPT_SETS
from mdsd_study.measure.grid import slices_of
from mdsd_study.measure.settings import SweepSettings
from mdsd_study.measure.stored_texts import TextSettings, text_file
from mdsd_study.measure.sweep import Sweep, measure
from mdsd_study.report.provenance import code_digest

_SKIP = re.compile(r"skip:[\d,]+")


def measure_kept(settings: SweepSettings, *, progress: bool = False) -> Sweep:
    """:func:`~mdsd_study.measure.sweep.measure` in this process, for notebooks; kept where all is packaged.

    A notebook that is run again, or was interrupted, goes on where it was; another one with the same settings shares
    the work. The folder is named by the settings, all the code (:func:`~mdsd_study.report.provenance.code_digest`), and
    the texts stored with the project. Models and texts of the user's own may change behind their names: they are
    measured anew, in a temporary folder.

    >>> from mdsd_study.measure.pairs import find_pair
    >>> settings = SweepSettings((find_pair("tiny-random"),), ("mt_bench",), prompts=1, max_new_tokens=2)
    >>> measure_kept(settings).folder == measure_kept(settings).folder
    True
    """
    known = {*model_names(), "ngram"}
    ours = all(pair.target in known and (pair.draft in known or _SKIP.fullmatch(pair.draft)) for pair in settings.pairs)
    if not ours or not set(settings.prompt_sets) <= set(PROMPT_SETS):
        return measure(settings, tempfile.mkdtemp(prefix="mdsd-sweep-"), workers=0, progress=progress)
    texts = []
    for one in slices_of(settings):
        path = text_file(TextSettings(one.pair.target, one.prompt_set, one.text_sampling, 0), settings.profile)
        texts.append(path.read_text() if path.is_file() else "")
    folder = cache_dir() / "sweeps" / key_of(code_digest(), settings.for_json(), texts)
    return measure(settings, folder, workers=0, progress=progress)
