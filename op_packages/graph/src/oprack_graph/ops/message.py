"""Definitions of ops that move messages along the edges of a graph."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.op import Attr, GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of
from oprack.types import AttrType

# What ops that move messages share: slots, attributes, shapes.
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


class GraphSendRecv(OpDef, type="graph_send_recv"):
    r"""$$Out_d = \operatorname{reduce}_{e : Dst\_index_e = d} X_{Src\_index_e}$$, 0 for a node that no edge goes to"""

    X = Input("Features of the nodes [N, ...].")
    Src_index = SRC
    Dst_index = DST
    Out_size = OUT_SIZE
    Out = Output("What each node receives [nodes, ...].")
    Dst_count = COUNT
    reduce_op = reduce_attr()
    out_size = out_size_attr()
    expected_kernel_type = dtype_of("X")
    infer_var_type = infer_types

    def infer_shape(ctx: InferShapeContext) -> None:
        edges(ctx)
        set_outputs(ctx, ctx.dim("X")[1:])


class GraphSendRecvGrad(
    GradOpDef, of=GraphSendRecv, reads="X Src_index Dst_index Out Dst_count Out@GRAD", grads_of="X"
):
    """X@GRAD sums Out@GRAD along the edges backwards: divided by Dst_count for MEAN, where X is Out for MIN and MAX."""

    expected_kernel_type = dtype_of("X")


class GraphSendUeRecv(OpDef, type="graph_send_ue_recv"):
    r"""$$Out_d = \operatorname{reduce}_{e : Dst\_index_e = d} (X_{Src\_index_e} \circ Y_e)$$ with + or * for the
    circle; 0 for a node that no edge goes to
    """

    X = Input("Features of the nodes [N, ...].")
    Y = Input("Features of the edges [E, ...], which broadcast with those of the nodes.")
    Src_index = SRC
    Dst_index = DST
    Out_size = OUT_SIZE
    Out = Output("What each node receives [nodes, ...].")
    Dst_count = COUNT
    message_op = message_attr()
    reduce_op = reduce_attr()
    out_size = out_size_attr()
    expected_kernel_type = dtype_of("X")
    infer_var_type = infer_types

    def infer_shape(ctx: InferShapeContext) -> None:
        count = edges(ctx)
        y = ctx.dim("Y")
        ctx.require(len(y) > 0 and (count < 0 or y[0] in (-1, count)), f"Y has shape {list(y)}; expected {count} edges")
        set_outputs(ctx, broadcast(ctx, "X", "Y"))


class GraphSendUeRecvGrad(
    GradOpDef, of=GraphSendUeRecv, reads="X Y Src_index Dst_index Out Dst_count Out@GRAD", grads_of="X Y"
):
    """As that of graph_send_recv for each message, and from there to X and Y as + and * give it."""

    expected_kernel_type = dtype_of("X")


class GraphSendUv(OpDef, type="graph_send_uv"):
    r"""$$out_e = x_{src\_index_e} \circ y_{dst\_index_e}$$ with + or * for the circle: a feature for each edge"""

    x = Input("Features of the nodes from which edges come [N, ...].")
    y = Input("Features of the nodes to which they go [M, ...], which broadcast with those of x.")
    src_index = SRC
    dst_index = DST
    out = Output("[E, ...].")
    message_op = message_attr()
    expected_kernel_type = dtype_of("x")

    def infer_shape(ctx: InferShapeContext) -> None:
        count = edges(ctx, "src_index", "dst_index")
        ctx.set_dim("out", (count, *broadcast(ctx, "x", "y")))


class GraphSendUvGrad(GradOpDef, of=GraphSendUv, reads="x y src_index dst_index", grads_of="x y"):
    """x@GRAD sums the gradients of a node's outgoing edges, times y for *; y@GRAD likewise."""

    expected_kernel_type = dtype_of("x")
