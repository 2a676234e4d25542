"""What all tests share: Hypothesis' profile, and the fixtures of the small rack."""

from __future__ import annotations

import gc
from pathlib import Path

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


def pytest_addoption(parser: pytest.Parser) -> None:
    """What `make test` needs to run the core's tests once: alone where they can, and the others with all packs."""
    parser.addoption("--passed-to", metavar="FILE", help="write the names of the tests that passed to FILE")
    parser.addoption("--without", metavar="FILE", help="leave out the tests that FILE names")


class _Passed:
    """Collects the names of tests that passed; under xdist, in the process that hands them out."""

    def __init__(self, file: Path) -> None:
        self._file, self._names = file, list[str]()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self._names.append(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self._file.write_text("\n".join(self._names), "utf-8")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("passed_to") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Passed(Path(config.getoption("passed_to"))))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("without"):
        return
    names = set(Path(config.getoption("without")).read_text("utf-8").splitlines())
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in names])
    items[:] = [item for item in items if item.nodeid not in names]
