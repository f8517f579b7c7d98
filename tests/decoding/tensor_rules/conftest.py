"""The tests here run the tensor operations on the CPU, where a batch would else be judged row by row."""

import pytest

from mdsd_core.decoding.tensor_rules import interface


@pytest.fixture(autouse=True)
def on_tensors(monkeypatch):
    """Judge every batch as on a GPU."""
    monkeypatch.setattr(interface, "ROW_BY_ROW", ())
