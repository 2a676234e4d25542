"""Kernels of graph_send_ue_recv and its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel

from oprack_graph.kernels.message import _family as edges


@kernel("graph_send_ue_recv", dtypes=edges.NUMBERS, **edges.SCATTER)
def graph_send_ue_recv(
    X: Array,
    Y: Array,
    Src_index: Array,
    Dst_index: Array,
    Out_size: Array | None = None,
    *,
    message_op: str,
    reduce_op: str,
    out_size: list[int],
    ctx: KernelContext,
    xp: ArrayModule,
) -> tuple[Array, Array]:
    rows = edges.out_rows(X, Out_size, out_size)
    src = edges.nodes_of(Src_index, len(X), "Src_index", ctx.op_type, xp)
    dst = edges.nodes_of(Dst_index, rows, "Dst_index", ctx.op_type, xp)
    return edges.received(edges.message(X[src], Y, message_op), dst, rows, reduce_op, xp)


@kernel("graph_send_ue_recv_grad", dtypes=edges.NUMBERS, **edges.SCATTER)
def graph_send_ue_recv_grad(
    X: Array,
    Y: Array,
    Src_index: Array,
    Dst_index: Array,
    Out: Array,
    Dst_count: Array,
    Out_grad: Array,
    *,
    message_op: str,
    reduce_op: str,
    ctx: KernelContext,
    xp: ArrayModule,
) -> dict[str, Array | None]:
    src = edges.nodes_of(Src_index, len(X), "Src_index", ctx.op_type, xp)
    dst = edges.nodes_of(Dst_index, len(Out_grad), "Dst_index", ctx.op_type, xp)
    x, y = edges.aligned(X[src], Y)
    messages = edges.message(x, y, message_op)
    grad = edges.message_grad(messages, dst, Out, Dst_count, Out_grad, reduce_op, xp)
    by_x, by_y = (grad, grad) if message_op == "ADD" else (grad * y, grad * x)
    dx = edges.collected(edges.summed_to(by_x, X.shape), src, len(X), xp) if ctx.wants("X@GRAD") else None
    return {"X@GRAD": dx, "Y@GRAD": edges.summed_to(by_y, Y.shape) if ctx.wants("Y@GRAD") else None}
