"""Cases of sparse_cast and of its gradient."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase
from oprack.types import VarType

from .._data import HYBRID, MATRIX, drawn

WIDE = {"index_dtype": int(VarType.INT32), "value_dtype": int(VarType.FP64)}


def case(name: str, x, attrs: dict[str, int]) -> list[OpCase]:
    dtype = np.float64 if attrs["value_dtype"] >= 0 else np.float32
    pattern = [a.astype(np.int32) if attrs["index_dtype"] >= 0 else a for a in x.pattern]
    out = x.rebuilt(pattern, x.values.astype(dtype))
    arrived = out.with_values(drawn(*x.values.shape, seed=5).astype(dtype))
    back = {"x@GRAD": x.with_values(arrived.values.astype(np.float32))}
    return [
        OpCase("sparse_cast", {"x": x}, attrs, {"out": out}, name=name),
        OpCase("sparse_cast_grad", {"x": x, "out@GRAD": arrived}, attrs, back, name=name),
    ]


CASES = [
    *case("wide", HYBRID, WIDE),
    *case("csr", MATRIX, WIDE | {"index_dtype": -1}),
    *case("pattern", HYBRID, WIDE | {"value_dtype": -1}),
    OpCase("sparse_cast", {"x": HYBRID}, {}, {"out": HYBRID}, ["x"], name="nothing"),
]
