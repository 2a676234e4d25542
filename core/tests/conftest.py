"""Tests of the core, also where it is installed alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


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
