"""graph_send_uv and its gradient: all of the ops but their kernels."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of

from oprack_graph.ops.message import _family as share


class GraphSendUv(OpDef, type="graph_send_uv"):
    r"""$$out_e = x_{src\_index_e} \circ y_{dst\_index_e}$$ with + or * for the circle: a feature for each edge"""

    x = Input("Features of the nodes from which edges come [N, ...].")
    y = Input("Features of the nodes to which they go [M, ...], which broadcast with those of x.")
    src_index = share.SRC
    dst_index = share.DST
    out = Output("[E, ...].")
    message_op = share.message_attr()
    expected_kernel_type = dtype_of("x")

    def infer_shape(ctx: InferShapeContext) -> None:
        count = share.edges(ctx, "src_index", "dst_index")
        ctx.set_dim("out", (count, *share.broadcast(ctx, "x", "y")))


class GraphSendUvGrad(GradOpDef, of=GraphSendUv, reads="x y src_index dst_index", grads_of="x y"):
    """x@GRAD sums the gradients of a node's outgoing edges, times y for *; y@GRAD likewise."""

    expected_kernel_type = dtype_of("x")
