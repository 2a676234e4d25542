"""What all tests share: Hypothesis' profile, and the fixtures of the small rack."""

from __future__ import annotations

import gc

import pytest
from hypothesis import settings
from small_rack import build, good, pack, programs, rack

__all__ = ["build", "good", "pack", "programs", "rack"]

# The machine's load decides how long an example takes, and a failing seed must fail again.
settings.register_profile("oprack", deadline=None, derandomize=True)
settings.load_profile("oprack")


@pytest.fixture(autouse=True, scope="module")
def left_alone() -> None:
    """What is there when a module begins lives on: its tests that collect garbage need not walk over all of it."""
    gc.collect()
    gc.freeze()
