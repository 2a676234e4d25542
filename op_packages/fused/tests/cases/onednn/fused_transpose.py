"""Cases of fused_transpose: dims taken out and put in, and a reshape."""

from __future__ import annotations

from oprack.testing import OpCase

from .._data import draw

X = draw(1, 3, 4)
MOVED = X.transpose(1, 0, 2).copy()


def case(name: str, attrs: dict[str, list[int]], shape: tuple[int, ...]) -> OpCase:
    """One case with `axis` [1, 0, 2]."""
    return OpCase("fused_transpose", {"X": X}, {"axis": [1, 0, 2]} | attrs, {"Out": MOVED.reshape(shape)}, name=name)


CASES = [
    case("plain", {}, (3, 1, 4)),
    case("squeezed", {"fused_squeeze2_axes": [1]}, (3, 4)),
    case("unsqueezed", {"fused_unsqueeze2_axes": [0, -1]}, (1, 3, 1, 4, 1)),
    case("reshaped", {"fused_reshape2_shape": [0, -1, 2]}, (3, 2, 2)),
]
