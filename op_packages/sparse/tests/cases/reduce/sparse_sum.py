"""Cases of sparse_sum and of its gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.tensor import SparseCsrTensor, SparseTensor
from oprack.testing import OpCase
from oprack.types import VarType

from .._data import BATCH, HYBRID, MATRIX, POINTS, at, coo, csr, drawn, picked


def case(
    name: str,
    x: SparseTensor,
    axis: int | None,
    keep: bool,
    dims: tuple[int, ...],
    tensors: dict[str, Any] | None = None,
) -> list[OpCase]:
    """Sums of the dense array in the dims of the result; what adds nothing up is not listed."""
    a = x.to_dense()
    listed = np.zeros(x.shape, np.float32)
    listed[at(x)] = 1
    count = np.sum(listed, axis=axis, keepdims=True)
    dense = len(x.shape) - len(at(x))
    dense -= dense if axis is None and not keep else axis is not None and axis >= len(at(x)) and not keep
    met = (count != 0).astype(np.float32).reshape(dims)
    out = csr(met) if isinstance(x, SparseCsrTensor) else coo(met, len(dims) - dense)
    total = np.sum(a, axis=axis, keepdims=True).reshape(dims)
    weights = drawn(*dims, seed=80)
    back = np.broadcast_to(weights.reshape(count.shape), a.shape)
    attrs = {"axis": [] if axis is None else [axis], "keepdim": keep}
    if tensors:
        attrs["axis"] = []
    grads = ["x"] if x.nnz else []
    return [
        OpCase("sparse_sum", {"x": x} | (tensors or {}), attrs, {"out": picked(out, total)}, grads, name=name),
        OpCase(
            "sparse_sum_grad",
            {"x": x, "out@GRAD": picked(out, weights)} | (tensors or {}),
            attrs,
            {"x@GRAD": picked(x, back)},
            name=name,
        ),
    ]


CASES = [
    *case("all", POINTS, None, False, (1,)),
    *case("all_kept", HYBRID, None, True, (1, 1, 1)),
    *case("rows", POINTS, 1, False, (3,)),
    *case("columns_kept", POINTS, 0, True, (1, 4)),
    *case("dense_dim", HYBRID, 2, False, (3, 4)),
    *case("dense_dim_kept", HYBRID, 2, True, (3, 4, 1)),
    *case("sparse_dim", HYBRID, 0, False, (4, 2)),
    *case("csr", MATRIX, 1, True, (3, 1)),
    *case("csr_all", MATRIX, None, False, (1, 1)),
    *case("batch", BATCH, 2, False, (2, 3)),
    *case("by_tensor", POINTS, 1, False, (3,), {"AxisTensor": np.array([1], np.int64)}),
    OpCase(
        "sparse_sum",
        {"x": POINTS.with_values(np.arange(POINTS.nnz, dtype=np.int32))},
        {"axis": [], "dtype": int(VarType.FP64)},
        {"out": coo(np.array([np.arange(POINTS.nnz).sum()], np.float64))},
        name="dtype",
    ),
]
