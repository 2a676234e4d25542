"""With deterministic=True no kernel at place cuda lets floats meet in any order; where none is left, the CPU's runs."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from oprack.errors import OprackError
from oprack.packs.manager import default_manager
from oprack.testing.cases import load_cases
from oprack.testing.conformance import STAGES
from oprack.testing.runner import missing_ops, run_case
from oprack_cuda.testing import LOG
from oprack_cuda.testing.context import OpWatch, strict_executor

CASES = Path(__file__).parents[3] / "tests/data/cases"
FILES = sorted(CASES.rglob("*.npz"))
PER_FILE = 6


class Atomics(OpWatch):
    """Ops whose kernels added floats up by atomics."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, str] = {}

    def after_op(self, op: Any, scope: Any) -> None:
        super().after_op(op, scope)
        for where in LOG.atomics:
            self.found[op.type] = where


def atomics(file: Path, **options: Any) -> dict[str, str]:
    watch = Atomics()
    for case in list(load_cases(file))[:PER_FILE]:
        for stage in (s for s in STAGES if case.has(s) and not missing_ops(case, s, default_manager())):
            try:
                run_case(case, stage, strict_executor(prepared=False, watch=watch, **options))
            except OprackError:  # what fails is for the tests of packs
                continue
    return watch.found


@pytest.mark.parametrize("file", FILES, ids=[f"{f.parent.name}-{f.stem}" for f in FILES])
def test_no_kernel_adds_floats_in_any_order(file: Path) -> None:
    assert atomics(file, deterministic=True) == {}


def test_the_watch_sees_atomics() -> None:
    found = atomics(CASES / "index_select.npz")
    assert list(found) == ["index_select_grad"] and "index_select" in found["index_select_grad"]


def test_what_the_host_computes_instead_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    from oprack.runtime import kernel_operator

    kernel_operator._MOVED.clear()
    with caplog.at_level(logging.WARNING, "oprack"):
        for _ in range(2):
            atomics(CASES / "index_select.npz", deterministic=True)
    told = [r for r in caplog.records if "op index_select_grad" in r.getMessage()]
    assert len(told) == 1 and told[0].name == "oprack.runtime.kernel_operator"
    assert "runs at cpu, and its inputs and outputs are copied" in told[0].getMessage()
