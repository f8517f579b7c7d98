"""The cache of compiled kernels."""

import numpy as np
import pytest
from numba.core import caching

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


@pytest.mark.large
def test_where_internals_of_numba_have_moved_kernels_are_compiled_without_a_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(_jit.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.delattr(caching.IndexDataCacheFile, "_data_name")
    compiled = _jit._decorator()(total)
    assert compiled(np.ones(3)) == 3.0
    assert not list(tmp_path.rglob("*.nb?"))


@pytest.mark.large
def test_where_numba_does_not_know_an_option_it_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(_jit.config, "CACHE_DIR", str(tmp_path))
    compiled = _jit._decorator(_option_of_another_version=True, no_cpython_wrapper=False)(total)
    assert compiled(np.ones(3)) == 3.0
    assert list(tmp_path.rglob("*.nbc"))
