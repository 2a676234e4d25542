"""Kernels of graph_send_recv and its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel

from oprack_graph.kernels.message._family import NUMBERS, SCATTER, collected, message_grad, nodes_of, out_rows, received


@kernel("graph_send_recv", dtypes=NUMBERS, **SCATTER)
def graph_send_recv(
    X: Array,
    Src_index: Array,
    Dst_index: Array,
    Out_size: Array | None = None,
    *,
    reduce_op: str,
    out_size: list[int],
    ctx: KernelContext,
    xp: ArrayModule,
) -> tuple[Array, Array]:
    rows = out_rows(X, Out_size, out_size)
    src = nodes_of(Src_index, len(X), "Src_index", ctx.op_type, xp)
    dst = nodes_of(Dst_index, rows, "Dst_index", ctx.op_type, xp)
    return received(X[src], dst, rows, reduce_op, xp)


@kernel("graph_send_recv_grad", dtypes=NUMBERS, **SCATTER)
def graph_send_recv_grad(
    X: Array,
    Src_index: Array,
    Dst_index: Array,
    Out: Array,
    Dst_count: Array,
    Out_grad: Array,
    *,
    reduce_op: str,
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array:
    src = nodes_of(Src_index, len(X), "Src_index", ctx.op_type, xp)
    dst = nodes_of(Dst_index, len(Out_grad), "Dst_index", ctx.op_type, xp)
    grad = message_grad(X[src], dst, Out, Dst_count, Out_grad, reduce_op, xp)
    return collected(grad, src, len(X), xp)
