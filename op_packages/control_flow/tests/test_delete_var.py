"""delete_var."""

from __future__ import annotations

import numpy as np
from oprack import Executor, Scope


def test_delete_var(builder):
    b = builder()
    b.var("x", persistable=True)
    b.op("assign", X="x", Out="y")
    b.op("delete_var", X=["x"])
    scope = Scope()
    scope.var("x").set(np.ones(2, np.float32))
    (y,) = Executor().run(b.program, {}, ["y"], scope)
    assert y.tolist() == [1, 1] and not scope.find_var("x").is_initialized()
