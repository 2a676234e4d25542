"""Kernels of graph_send_uv and its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel

from oprack_graph.kernels.message import _family as edges


@kernel("graph_send_uv", place=edges.PLACES, dtypes=edges.NUMBERS)
def graph_send_uv(
    x: Array,
    y: Array,
    src_index: Array,
    dst_index: Array,
    *,
    message_op: str,
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array:
    src = edges.nodes_of(src_index, len(x), "src_index", ctx.op_type, xp)
    dst = edges.nodes_of(dst_index, len(y), "dst_index", ctx.op_type, xp)
    return edges.message(x[src], y[dst], message_op)


@kernel("graph_send_uv_grad", dtypes=edges.NUMBERS, **edges.SCATTER)
def graph_send_uv_grad(
    x: Array,
    y: Array,
    src_index: Array,
    dst_index: Array,
    out_grad: Array,
    *,
    message_op: str,
    ctx: KernelContext,
    xp: ArrayModule,
) -> dict[str, Array | None]:
    src = edges.nodes_of(src_index, len(x), "src_index", ctx.op_type, xp)
    dst = edges.nodes_of(dst_index, len(y), "dst_index", ctx.op_type, xp)
    a, b = edges.aligned(x[src], y[dst])
    by_x, by_y = (out_grad, out_grad) if message_op == "ADD" else (out_grad * b, out_grad * a)
    dx = edges.collected(edges.summed_to(by_x, x.shape), src, len(x), xp) if ctx.wants("x@GRAD") else None
    dy = edges.collected(edges.summed_to(by_y, y.shape), dst, len(y), xp) if ctx.wants("y@GRAD") else None
    return {"x@GRAD": dx, "y@GRAD": dy}
