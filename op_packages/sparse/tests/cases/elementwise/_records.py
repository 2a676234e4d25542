"""Records of functions of two sparse tensors, and of their gradients."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from oprack.testing import OpCase

from .._data import BATCH, HYBRID, POINTS, at, coo, csr, drawn, holes, picked

Function = Callable[[np.ndarray, np.ndarray], np.ndarray]
OTHER = {
    "coo": (POINTS, coo(holes(drawn(3, 4, seed=20), seed=20))),
    "csr": (BATCH, csr(holes(drawn(2, 3, 4, seed=21), seed=21))),
    "same": (HYBRID, HYBRID.with_values(drawn(*HYBRID.values.shape, seed=22))),
}


def records(op: str, function: Function, by_x: Function, by_y: Function) -> list[OpCase]:
    """Records over tensors that list other elements, and the same ones."""
    found = []
    for i, (name, (x, y)) in enumerate(OTHER.items()):
        a, b = x.to_dense(), y.to_dense()
        either = np.zeros(a.shape, np.float32)
        either[at(x)] = either[at(y)] = 1
        out = csr(either) if name == "csr" else coo(either, len(at(x)))
        arrived = picked(out, drawn(*a.shape, seed=30 + i))
        g = drawn(*a.shape, seed=30 + i)
        found += [
            OpCase(op, {"x": x, "y": y}, {}, {"out": picked(out, function(a, b))}, ["x", "y"], name=name),
            OpCase(
                f"{op}_grad",
                {"x": x, "y": y, "out@GRAD": arrived},
                {},
                {"x@GRAD": picked(x, g * by_x(a, b)), "y@GRAD": picked(y, g * by_y(a, b))},
                name=name,
            ),
        ]
    return found
