"""The cache of compiled kernels."""

import numpy as np
import pytest

from mdsd_core import _jit


def total(x):
    s = 0.0
    for value in x:
        s += value
    return s


@pytest.mark.large  # nothing is compiled under `make coverage`
def test_two_processes_that_save_at_once_do_not_mix_up_their_code(tmp_path, monkeypatch):
    monkeypatch.setattr(_jit.config, "CACHE_DIR", str(tmp_path))
    decorate = _jit._decorator()
    one, other = decorate(total), decorate(total)  # as in two processes
    files, second = one._cache._cache_file, other._cache._cache_file
    monkeypatch.setattr(second, "_load_index", dict)  # it looked before the first had saved anything
    save = files._save_data

    def save_late(name, data):
        other(np.ones(3, dtype=np.int64))
        save(name, data)

    monkeypatch.setattr(files, "_save_data", save_late)
    one(np.ones(3))
    later = decorate(total)
    assert later(np.ones(3, dtype=np.int64)) == 3.0
    assert later._cache_hits
    assert later(np.ones(3)) == 3.0
