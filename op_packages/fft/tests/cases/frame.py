"""Cases of frame."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from ._data import complex_, real


def case(name: str, x: np.ndarray, length: int, hop: int, axis: int = -1) -> OpCase:
    starts = range(0, x.shape[axis] - length + 1, hop)
    parts = [np.take(x, range(s, s + length), axis) for s in starts]
    attrs = {"frame_length": length, "hop_length": hop, "axis": axis}
    grads = ["X"] if x.dtype.kind in "fc" and x.size else []
    return OpCase("frame", {"X": x}, attrs, {"Out": np.stack(parts, axis)}, grads, name=name)


CASES = [
    case("one_axis", real(9), 4, 2),
    case("time_first", real(9, 2, 3), 4, 3, 0),
    case("gaps", real(2, 9), 2, 4),
    case("whole", real(2, 4), 4, 1),
    case("complex", complex_(2, 5), 2, 1),
    case("integers", np.arange(6, dtype=np.int64), 3, 2),
    case("no_signal", real(0, 5), 2, 1),
]
