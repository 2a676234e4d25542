"""What ops that move messages share: slots, attributes, shapes."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.op import Attr, InferShapeContext, InferVarTypeContext, Input, Output
from oprack.types import AttrType

SRC = Input("Node from which each edge comes [E], int32 or int64.")
DST = Input("Node to which it goes [E].")
OUT_SIZE = Input("Nodes of Out as a tensor of one element; wins over out_size.", dispensable=True)
COUNT = Output("Edges that go to each node, int32, kept for the gradient.", intermediate=True)


def reduce_attr() -> Attr:
    return Attr("SUM", "How the messages of a node are put together.").in_set(("SUM", "MEAN", "MIN", "MAX"))


def message_attr() -> Attr:
    return Attr("ADD", "ADD or MUL.").in_set(("ADD", "MUL"))


def out_size_attr() -> Attr:
    return Attr([0], "Nodes of Out; 0 or less: as many as X has.", type=AttrType.LONGS).size(0, 1)


def edges(ctx: InferShapeContext, src: str = "Src_index", dst: str = "Dst_index") -> int:
    """Number of edges, -1 where it is not known."""
    ctx.require_rank(src, 1, 2)
    ctx.same_dims(src, dst)
    count, *rest = ctx.dim(src)
    ctx.require(rest in ([], [1], [-1]), f"{src} has shape {[count, *rest]}; expected [edges]")
    return count


def rows(ctx: InferShapeContext) -> int:
    """Nodes of Out, -1 where they are not known."""
    if ctx.has_input("Out_size"):
        size = ctx.scalar("Out_size")
        if size is None:
            return -1
        size = int(size)
    else:
        size = next(iter(ctx.attr("out_size")), 0)
    return size if size > 0 else ctx.dim("X")[0]


def broadcast(ctx: InferShapeContext, x: str, y: str) -> tuple[int, ...]:
    """Shape of a message of a row of `x` and one of `y`: dims of 1 are repeated."""
    a, b = list(ctx.dim(x)[1:]), list(ctx.dim(y)[1:])
    rank = max(len(a), len(b))
    a, b = [1] * (rank - len(a)) + a, [1] * (rank - len(b)) + b
    ctx.require(
        all(p == q or 1 in (p, q) or p < 0 or q < 0 for p, q in zip(a, b, strict=True)),
        f"{x} has shape {list(ctx.dim(x))} and {y} {list(ctx.dim(y))}; expected dims behind the first that match",
    )
    return tuple(q if p == 1 else p if q in (1, -1) else q for p, q in zip(a, b, strict=True))


def set_outputs(ctx: InferShapeContext, dims: Sequence[int]) -> None:
    """Out of `rows` nodes with messages of `dims`, and their counts."""
    n = rows(ctx)
    ctx.set_dim("Out", (n, *dims))
    ctx.set_dim("Dst_count", (n,))


def infer_types(ctx: InferVarTypeContext) -> None:
    """Out is of the dtype of X."""
    ctx.set_dtype("Out", ctx.dtype("X"))
    ctx.set_dtype("Dst_count", "int32")
