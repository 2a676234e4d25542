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


def test_ops_that_are_too_old_are_told_where_a_program_has_them(rack: PackManager) -> None:
    with pytest.warns(PackWarning, match="op double: the program was saved with version 2") as caught:
        rack.require_ops(["double", "flat"], {"double": 2, "unknown": 9})
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rack.require_ops(["double"], {"double": 0})
        rack.require_ops(["double"])
        rack.require_ops(["flat"], {"double": 2})


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
