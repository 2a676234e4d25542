"""Cases of sparse_indices."""

from __future__ import annotations

from oprack.testing import OpCase

from .._data import HYBRID, NOTHING

CASES = [
    OpCase("sparse_indices", {"x": x}, {}, {"out": x.indices}, name=name)
    for name, x in {"hybrid": HYBRID, "nothing": NOTHING}.items()
]
