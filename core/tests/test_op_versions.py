"""Op versions of a program are compared with those of the installed packs."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest
from oprack.packs import PackWarning
from oprack.packs.manager import PackManager
from oprack.program import Program
from oprack.runtime import Executor
from oprack.tensor import Scope

X = np.float32([1.0, -2.0])


def test_newer_ops(rack: PackManager) -> None:
    assert rack.newer_ops(["double", "flat", "unknown"], {"double": 2, "unknown": 9}) == {"double": (2, 0)}
    assert rack.newer_ops(["double"], {"double": 0}) == rack.newer_ops(["double"], {}) == {}
    assert rack.newer_ops(["flat"], {"double": 2}) == {}, "an op that the program does not use"


def test_a_run_tells_of_a_newer_op_once(build: Callable[..., Program]) -> None:
    program = build({"x": X}, [("double", {"X": "x"}, {"Out": "y"})])
    program.desc.op_version_map |= {"double": 2, "flat": 7}
    text = r"op double: the program was saved with version 2, but pack .* knows version 0: .* upgrade the pack"
    with pytest.warns(PackWarning, match=text):
        Executor().run(program, {"x": X}, ["y"], Scope())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (y,) = Executor().run(program.clone(), {"x": X}, ["y"], Scope())
    assert (y == 2 * X).all()
