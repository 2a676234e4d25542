"""oprack's pytest plugin: fixtures for tests of packs. It imports the rest of oprack only when a test uses them."""

from __future__ import annotations

from collections.abc import Generator, Iterator
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


_FIRST = pytest.StashKey[dict[str, str]]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Let one mistake in a pack, which stops whatever asks for its ops, fail one test: others say which one that is."""
    report = yield
    if report.failed and call.excinfo is not None and (mistake := _mistake(call.excinfo.value)):
        first = item.config.stash.setdefault(_FIRST, {}).setdefault(mistake, item.nodeid)
        if first != item.nodeid:
            path, line, _ = item.location
            report.outcome = "skipped"
            report.longrepr = (path, (line or 0) + 1, f"Skipped: what failed {first}: {mistake.splitlines()[0]}")
    return report


def _mistake(error: BaseException | None) -> str:
    """What is wrong with a pack, as the error says that was raised first; "" for errors of another kind."""
    from oprack.errors import CODE_ERRORS, DefinitionError, OpError, PackError

    found = ""
    seen = set[int]()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, DefinitionError | PackError):
            found = str(error)
        elif isinstance(error, OpError) and isinstance(error.__cause__, CODE_ERRORS):
            found = next((line for line in str(error).splitlines() if "mend the code" in line), str(error.__cause__))
        error = error.__cause__ or error.__context__
    return found


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
