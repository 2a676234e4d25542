"""oprack's pytest plugin: fixtures for tests of packs. It imports the rest of oprack only when a test uses them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from oprack.testing import FUZZED, LIMITATION

if TYPE_CHECKING:
    from oprack.packs.manager import PackManager


@pytest.fixture
def pack_manager() -> Iterator[PackManager]:
    """A PackManager without any installed packs, on which to register ops; the default one during the test."""
    from oprack.packs.manager import PackManager, use_manager

    with use_manager(PackManager(entry_points=[], environ={})) as manager:
        yield manager


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the known differences that conformance tests encountered: case, stage and reason."""
    reports = [r for group in terminalreporter.stats.values() for r in group if hasattr(r, "user_properties")]
    rows = sorted({tuple(v) for r in reports for name, v in r.user_properties if name == LIMITATION})
    if rows:
        widths = [max(len(row[i]) for row in rows) for i in range(2)]
        terminalreporter.section(f"{len(rows)} known differences from the recorded cases", sep="-")
        for case, stage, reason in rows:
            terminalreporter.write_line(f"{case:<{widths[0]}}  {stage:<{widths[1]}}  {reason}")
    fuzzed = sum(int(v) for r in reports for name, v in r.user_properties if name == FUZZED)
    if fuzzed:
        terminalreporter.write_line(f"fuzzing: {fuzzed} generated examples were compared with the reference path")
