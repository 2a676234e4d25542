"""Cases of unpad_by_mask."""

from __future__ import annotations

from oprack.testing import OpCase

from ._masks import ALL

CASES = [
    OpCase(
        "unpad_by_mask",
        {"X": p.x, "Mask": p.kept.astype(dtype)},
        {"strict": dtype == "int64"},
        {"Out": p.rows, "Index": p.index},
        ["X"],
        name=f"{p.name} {dtype}",
    )
    for i, p in enumerate(ALL)
    for dtype in [("bool", "int64", "float32")[i % 3]]
]
