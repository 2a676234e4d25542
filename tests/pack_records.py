"""The OpCase records of the packs in this repository, as their test_pack.py give them to the conformance suite."""

from __future__ import annotations

import functools
import importlib.util
import sys
from pathlib import Path

from oprack.testing import Conformance, OpCase

PACKS = Path(__file__).parents[1] / "op_packages"


@functools.cache
def records() -> list[OpCase]:
    """Every record of every pack, for all ops and gradient ops."""
    found: list[OpCase] = []
    for file in sorted(PACKS.glob("*/tests/test_pack.py")):
        name = f"records_of_{file.parents[1].name}"
        spec = importlib.util.spec_from_file_location(name, file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        path = list(sys.path)
        try:
            spec.loader.exec_module(module)
        finally:
            sys.path[:] = path
        suites = (v for v in vars(module).values() if isinstance(v, type) and issubclass(v, Conformance))
        found += (case for suite in suites for case in suite.cases)
    return found


def with_gradient(op_type: str) -> list[OpCase]:
    """The records of an op that say of which inputs its gradient is checked."""
    return [case for case in records() if case.op == op_type and case.grads]
