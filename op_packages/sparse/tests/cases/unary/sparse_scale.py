"""Cases of sparse_scale."""

from __future__ import annotations

from oprack.testing import OpCase

from .._data import BATCH, HYBRID

AFTER = {"scale": 2.0, "bias": 0.5, "bias_after_scale": True}
CASES = [
    OpCase(
        "sparse_scale", {"x": HYBRID}, AFTER, {"out": HYBRID.with_values(HYBRID.values * 2 + 0.5)}, ["x"], name="coo"
    ),
    OpCase(
        "sparse_scale",
        {"x": BATCH},
        AFTER | {"bias_after_scale": False},
        {"out": BATCH.with_values((BATCH.values + 0.5) * 2)},
        ["x"],
        name="csr",
    ),
]
