"""Cases of pad_by_index."""

from __future__ import annotations

from oprack.testing import OpCase

from ._masks import ALL

CASES = [
    OpCase(
        "pad_by_index",
        {"X": p.rows.array, "Index": p.index, "Like": p.kept},
        outputs={"Out": p.zeroed},
        grads=["X"],
        name=p.name,
    )
    for p in ALL
]
CASES += [
    OpCase(
        "pad_by_index_grad",
        {"X": p.rows.array, "Index": p.index, "Like": p.kept, "Out@GRAD": p.x},
        outputs={"X@GRAD": p.rows.array},
        name=p.name,
    )
    for p in ALL
]
