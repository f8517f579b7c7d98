"""Fixtures that several test files share. Models are loaded once per session."""

import pytest


@pytest.fixture(scope="session")
def tiny_pair():
    from mdsd_core.models import tiny_random_pair

    return tiny_random_pair()


@pytest.fixture(scope="session")
def tiny_causal_lm(tiny_pair):
    return tiny_pair.target.model


@pytest.fixture(scope="session")
def smollm2():
    """The packaged target, float32 on the CPU. Tests that use it carry the mark ``model``."""
    from mdsd_core.models import load_model

    return load_model("smollm2-135m")


@pytest.fixture(scope="session")
def smollm2_pair(smollm2):
    from mdsd_core.models import load_pair

    return load_pair(smollm2, "smollm2-135m-skip4")
