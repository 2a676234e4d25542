"""Messages along the edges of graphs."""

from __future__ import annotations

import numpy as np
from oprack.tensor import numpy_dtype
from oprack.types import VarType

from oprack_onnx.export.expressions import Expr, constant, full, read, write
from oprack_onnx.export.graph import Call, exported


@exported("graph_send_recv", "graph_send_ue_recv", "graph_send_uv")
def graph_send(call: Call) -> None:
    """Messages along edges, put together by node."""
    if call.type == "graph_send_uv":
        x, y = (read(call, s).gather(read(call, i)) for s, i in (("x", "src_index"), ("y", "dst_index")))
        x, y = _of_one_rank(x, y, call.rank("x"), call.rank("y"))
        write(call, x + y if call.attr("message_op") == "ADD" else x * y, "out")
        return
    x, target = read(call), read(call, "Dst_index").cast(VarType.INT64).reshape(-1)
    message, rank = x.gather(read(call, "Src_index").reshape(-1)), call.rank()
    if call.type == "graph_send_ue_recv":
        rank = max(rank, call.rank("Y"))
        a, b = _of_one_rank(message, read(call, "Y"), call.rank(), call.rank("Y"))
        message = a + b if call.attr("message_op") == "ADD" else a * b
    size = next(iter(call.attr("out_size") or [0]), 0)
    if call.has("Out_size"):
        count = read(call, "Out_size").cast(VarType.INT64).reshape(-1).slice(0, 1)
    else:
        count = constant(call.graph, [size]) if size > 0 else x.size(0)
    edges = full(count, 0, VarType.INT64).scatter_add(target, full(target.shape(), 1, VarType.INT64))
    spread, how = edges.reshape(-1, *[1] * (rank - 1)), call.attr("reduce_op")
    shape = count.join(message.shape(1), axis=0)
    if how in ("SUM", "MEAN"):
        out = full(shape, 0, x.dtype).scatter_add(target, message)
        out = out / spread.maximum(1).cast(x.dtype) if how == "MEAN" else out
    else:
        limit = (np.finfo if x.is_float() else np.iinfo)(numpy_dtype(x.dtype))
        start, op = (limit.min, "max") if how == "MAX" else (limit.max, "min")
        out = (spread > 0).select(full(shape, start, x.dtype).scatter_add(target, message, op), 0)
    write(call, out)
    write(call, edges.cast(VarType.INT32), "Dst_count")


def _of_one_rank(x: Expr, y: Expr, x_rank: int, y_rank: int) -> tuple[Expr, Expr]:
    """Both with axes of size 1 behind the first, so that features broadcast."""
    rank = max(x_rank, y_rank)
    x = x.unsqueeze(*range(1, rank - x_rank + 1)) if x_rank < rank else x
    y = y.unsqueeze(*range(1, rank - y_rank + 1)) if y_rank < rank else y
    return x, y
