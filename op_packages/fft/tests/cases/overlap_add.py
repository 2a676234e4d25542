"""Cases of overlap_add."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from ._data import complex_, real


def case(name: str, x: np.ndarray, hop: int, axis: int = -1) -> OpCase:
    frames = x if axis == 0 else np.moveaxis(x, (-1, -2), (0, 1))  # [F, L, ...]
    count, length = frames.shape[:2]
    out = np.zeros(((count - 1) * hop + length, *frames.shape[2:]), x.dtype)
    for i in range(count):
        out[i * hop : i * hop + length] += frames[i]
    grads = ["X"] if x.dtype.kind in "fc" and x.size else []
    out = out if axis == 0 else np.moveaxis(out, 0, -1)
    return OpCase("overlap_add", {"X": x}, {"hop_length": hop, "axis": axis}, {"Out": out}, grads, name=name)


CASES = [
    case("two_axes", real(4, 5), 2),
    case("time_first", real(5, 4, 2, 3), 3, 0),
    case("side_by_side", real(2, 3, 4), 3),
    case("one_frame", real(2, 3, 1), 1),
    case("complex", complex_(3, 4), 2),
    case("integers", np.arange(12, dtype=np.int32).reshape(3, 4), 1),
    case("no_signal", real(0, 3, 2), 1),
]
