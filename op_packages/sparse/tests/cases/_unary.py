"""Records of functions of the listed elements, and of their gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from oprack.testing import OpCase

from ._data import BATCH, HYBRID, NOTHING, TWICE, drawn

Function = Callable[[np.ndarray], np.ndarray]


def records(
    op: str,
    function: Function,
    slope: Function,
    *,
    low: float = -0.9,
    high: float = 0.9,
    reads: str = "x",
    attrs: Mapping[str, Any] | None = None,
) -> list[OpCase]:
    """Records over both layouts, dense dims, elements listed twice, and none."""
    found = []
    for i, (name, pattern) in enumerate({"coo": HYBRID, "csr": BATCH, "twice": TWICE, "nothing": NOTHING}.items()):
        values = drawn(*pattern.values.shape, seed=i, low=low, high=high)
        x, out = pattern.with_values(values), pattern.with_values(function(values).astype(np.float32))
        grads = ["x"] if name != "nothing" else []
        found.append(OpCase(op, {"x": x}, attrs or {}, {"out": out}, grads, name=name))
        arrived = pattern.with_values(drawn(*values.shape, seed=i + 10))
        expected = {"x@GRAD": pattern.with_values((arrived.values * slope(values)).astype(np.float32))}
        read = {reads: x if reads == "x" else out}
        found.append(OpCase(f"{op}_grad", read | {"out@GRAD": arrived}, attrs or {}, expected, name=name))
    return found
