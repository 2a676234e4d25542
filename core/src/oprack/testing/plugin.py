"""The pytest plugin of oprack: fixtures for tests of packs. It imports nothing of oprack until a test asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from oprack.packs.manager import PackManager


@pytest.fixture
def pack_manager() -> Iterator[PackManager]:
    """A PackManager that finds no installed pack; the default one while the test runs. Register ops on it."""
    from oprack.packs.manager import PackManager, use_manager

    with use_manager(PackManager(entry_points=[], environ={})) as manager:
        yield manager
