"""Kernels of ops that move messages along the edges of a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS

# shared ---------------------------------------------------------------------------------------------------------------
# Messages of edges, put together by node, and their gradients. `xp` is numpy or cupy.
PLACES = ("cpu", "cuda")

NUMBERS = FLOATS | {"int32", "int64"}

SCATTER: dict[str, Any] = {"place": PLACES, "deterministic": {"cpu"}}  # a GPU adds what meets in one place in any order


def nodes_of(index: Array, count: int, slot: str, op_type: str, xp: ArrayModule) -> Array:
    """Nodes of the edges [E]; not looked at on a GPU, where it would wait for the device."""
    index = index.reshape(-1)
    if xp is np and index.size and (index.min() < 0 or index.max() >= count):
        wrong = index[(index < 0) | (index >= count)]
        raise InvalidArgumentError(
            f"op {op_type}: {slot} holds {int(wrong[0])}; expected 0 <= node < {count}, the number of nodes"
        )
    return index


def out_rows(x: Array, tensor: Array | None, out_size: list[int]) -> int:
    """Out_size or out_size where it is above 0, else as many as X has."""
    size = int(tensor.reshape(-1)[0]) if tensor is not None else next(iter(out_size), 0)
    return size if size > 0 else len(x)


def message(x: Array, y: Array, message_op: str) -> Array:
    """x + y or x * y of each edge; features broadcast from the last dim on."""
    a, b = aligned(x, y)
    return a + b if message_op == "ADD" else a * b


def aligned(x: Array, y: Array) -> tuple[Array, Array]:
    """x and y with dims of 1 behind the first, so that both have the same rank."""
    rank = max(x.ndim, y.ndim)
    a, b = (v.reshape(len(v), *(1,) * (rank - v.ndim), *v.shape[1:]) for v in (x, y))
    return a, b


def summed_to(grad: Array, shape: tuple[int, ...]) -> Array:
    """The gradient of features that were broadcast: summed over the repeated dims. The first dim is kept."""
    wide = (1,) * (grad.ndim - len(shape)) + tuple(shape[1:])
    axes = tuple(i for i, n in enumerate(wide, 1) if n == 1 and grad.shape[i] != 1)
    return grad.sum(axis=axes, keepdims=True).reshape(len(grad), *shape[1:])


def received(messages: Array, dst: Array, rows: int, reduce_op: str, xp: ArrayModule) -> tuple[Array, Array]:
    """(what each node receives, edges that go to it)."""
    count = xp.bincount(dst, minlength=rows).astype("int32")
    shape = (rows, *messages.shape[1:])
    spread = count.reshape(-1, *(1,) * (messages.ndim - 1))
    if reduce_op in ("SUM", "MEAN"):
        out = xp.zeros(shape, messages.dtype)
        xp.add.at(out, dst, messages)
        return (out / xp.maximum(spread, 1)).astype(out.dtype) if reduce_op == "MEAN" else out, count
    lowest = reduce_op == "MAX"
    if messages.dtype.kind == "f":
        start = -xp.inf if lowest else xp.inf
    else:
        start = xp.iinfo(messages.dtype).min if lowest else xp.iinfo(messages.dtype).max
    out = xp.full(shape, start, messages.dtype)
    (xp.maximum if lowest else xp.minimum).at(out, dst, messages)
    return xp.where(spread > 0, out, xp.zeros((), out.dtype)), count


def message_grad(
    messages: Array, dst: Array, out: Array, count: Array, dout: Array, reduce_op: str, xp: ArrayModule
) -> Array:
    """Gradient of each message by those of the nodes."""
    grad = dout[dst]
    if reduce_op == "SUM":
        return grad
    if reduce_op == "MEAN":
        return (grad / count[dst].reshape(-1, *(1,) * (grad.ndim - 1))).astype(grad.dtype)
    return grad * (messages == out[dst])


def collected(grad: Array, nodes: Array, rows: int, xp: ArrayModule) -> Array:
    """Sums of the edges of each node."""
    total = xp.zeros((rows, *grad.shape[1:]), grad.dtype)
    xp.add.at(total, nodes, grad)
    return total


# graph_send_recv ------------------------------------------------------------------------------------------------------
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


# graph_send_ue_recv ---------------------------------------------------------------------------------------------------
@kernel("graph_send_ue_recv", dtypes=NUMBERS, **SCATTER)
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
    rows = out_rows(X, Out_size, out_size)
    src = nodes_of(Src_index, len(X), "Src_index", ctx.op_type, xp)
    dst = nodes_of(Dst_index, rows, "Dst_index", ctx.op_type, xp)
    return received(message(X[src], Y, message_op), dst, rows, reduce_op, xp)


@kernel("graph_send_ue_recv_grad", dtypes=NUMBERS, **SCATTER)
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
    src = nodes_of(Src_index, len(X), "Src_index", ctx.op_type, xp)
    dst = nodes_of(Dst_index, len(Out_grad), "Dst_index", ctx.op_type, xp)
    x, y = aligned(X[src], Y)
    messages = message(x, y, message_op)
    grad = message_grad(messages, dst, Out, Dst_count, Out_grad, reduce_op, xp)
    by_x, by_y = (grad, grad) if message_op == "ADD" else (grad * y, grad * x)
    dx = collected(summed_to(by_x, X.shape), src, len(X), xp) if ctx.wants("X@GRAD") else None
    return {"X@GRAD": dx, "Y@GRAD": summed_to(by_y, Y.shape) if ctx.wants("Y@GRAD") else None}


# graph_send_uv --------------------------------------------------------------------------------------------------------
@kernel("graph_send_uv", place=PLACES, dtypes=NUMBERS)
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
    src = nodes_of(src_index, len(x), "src_index", ctx.op_type, xp)
    dst = nodes_of(dst_index, len(y), "dst_index", ctx.op_type, xp)
    return message(x[src], y[dst], message_op)


@kernel("graph_send_uv_grad", dtypes=NUMBERS, **SCATTER)
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
    src = nodes_of(src_index, len(x), "src_index", ctx.op_type, xp)
    dst = nodes_of(dst_index, len(y), "dst_index", ctx.op_type, xp)
    a, b = aligned(x[src], y[dst])
    by_x, by_y = (out_grad, out_grad) if message_op == "ADD" else (out_grad * b, out_grad * a)
    dx = collected(summed_to(by_x, x.shape), src, len(x), xp) if ctx.wants("x@GRAD") else None
    dy = collected(summed_to(by_y, y.shape), dst, len(y), xp) if ctx.wants("y@GRAD") else None
    return {"x@GRAD": dx, "y@GRAD": dy}
