"""Fixtures of the small rack, and Hypothesis' profile."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings
from small_rack import build, good, pack, programs, rack

__all__ = ["build", "good", "pack", "programs", "rack"]

# The machine's load decides how long an example takes, and a failing seed must fail again.
settings.register_profile("oprack", deadline=None, derandomize=True)
settings.load_profile("oprack")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Iterator[None]:
    """Fixtures, too."""
    return (yield from pytest_runtest_call())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """Where the core is installed alone, what goes on to eager calls or predictors is skipped, by the error's words."""
    try:
        return (yield)
    except (ModuleNotFoundError, AttributeError) as error:
        if "brings it; pip install oprack-" not in str(error):
            raise
        pytest.skip(str(error))
