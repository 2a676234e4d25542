"""assert."""

from __future__ import annotations

import numpy as np
import pytest
from oprack.errors import PreconditionNotMetError


def test_assert(builder):
    b = builder()
    b.var("ok", "x")
    b.op("assert", Cond="ok", Data=["x"], summarize=2)
    x = np.array([4, 5, 6])
    b.run({"ok": np.array([True]), "x": x}, ["x"])
    with pytest.raises(PreconditionNotMetError, match=r"int64\[3\]: \[4, 5\]"):
        b.run({"ok": np.array([False]), "x": x}, ["x"])
