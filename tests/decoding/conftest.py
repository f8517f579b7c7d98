"""Fixtures of the loop's tests."""

import pytest

from mdsd_core.trees import rules


@pytest.fixture
def memoised_selection(monkeypatch):
    plans = {}
    make = rules.OptimalSelection

    def remembered(p, q, scheme, tolerance):
        key = (p.tobytes(), q.tobytes(), scheme, tolerance)
        if key not in plans:
            plans[key] = make(p, q, scheme, tolerance)
        return plans[key]

    monkeypatch.setattr(rules, "OptimalSelection", remembered)
