"""That conformance finds passes which change numbers, fail or break a graph: every forward case runs after passes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from oprack.ir import Graph, Pass
from oprack.packs.pack import BrokenPackWarning
from oprack.testing import load_cases, runner

CASES = Path(__file__).parent / "data" / "cases"


@dataclass(frozen=True)
class Local(Pass):
    """A pass that no pack brings."""

    function: Callable[[Graph], int] = len

    def load(self) -> Any:
        return self.function


def doubled(graph: Graph) -> int:
    """Makes every scale twice as large."""
    ops = [op for op in graph.ops if op.type == "scale"]
    for op in ops:
        op.desc.attrs["scale"] = 2 * op.attr("scale", 1.0)
    return len(ops)


def failing(graph: Graph) -> int:
    raise ZeroDivisionError("no luck")


def _found(monkeypatch: pytest.MonkeyPatch, function: Callable[[Graph], int]) -> list[str]:
    case = next(c for c in load_cases(CASES / "scale.npz") if c.id == "scale.0008")
    passes = [Local("local", "", "somebody", "fuse", function=function)]
    monkeypatch.setattr(runner, "_passes_by_excluded", lambda manager: {(): passes, ("onednn",): passes})
    return runner.check_case(case, "forward")


def test_another_number_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _found(monkeypatch, doubled)
    assert len(found) == 4, found
    assert "Out after all passes differs in" in found[0]
    assert "Out after the passes without onednn differs in" in found[2]


def test_a_pass_that_fails_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    with warnings.catch_warnings(action="ignore", category=BrokenPackWarning):
        found = _found(monkeypatch, failing)
    assert found[0] == "after all passes: local failed: ZeroDivisionError: no luck"


def test_a_pass_that_changes_nothing_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _found(monkeypatch, lambda graph: 0) == []
