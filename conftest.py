"""What all tests share: Hypothesis' profile, and the fixtures of the small rack."""

from __future__ import annotations

import gc

from hypothesis import settings
from small_rack import build, good, pack, programs, rack

__all__ = ["build", "good", "pack", "programs", "rack"]

# The machine's load decides how long an example takes, and a failing seed must fail again.
settings.register_profile("oprack", deadline=None, derandomize=True)
settings.load_profile("oprack")


def pytest_collection_finish() -> None:
    """All collected tests live to the end, so one that collects garbage need not walk over them: it took a second."""
    gc.freeze()
