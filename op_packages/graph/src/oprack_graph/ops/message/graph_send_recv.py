"""graph_send_recv and its gradient: all of the ops but their kernels."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of

from oprack_graph.ops.message import _family as share


class GraphSendRecv(OpDef, type="graph_send_recv"):
    r"""$$Out_d = \operatorname{reduce}_{e : Dst\_index_e = d} X_{Src\_index_e}$$, 0 for a node that no edge goes to"""

    X = Input("Features of the nodes [N, ...].")
    Src_index = share.SRC
    Dst_index = share.DST
    Out_size = share.OUT_SIZE
    Out = Output("What each node receives [nodes, ...].")
    Dst_count = share.COUNT
    reduce_op = share.reduce_attr()
    out_size = share.out_size_attr()
    expected_kernel_type = dtype_of("X")
    infer_var_type = share.infer_types

    def infer_shape(ctx: InferShapeContext) -> None:
        share.edges(ctx)
        share.set_outputs(ctx, ctx.dim("X")[1:])


class GraphSendRecvGrad(
    GradOpDef, of=GraphSendRecv, reads="X Src_index Dst_index Out Dst_count Out@GRAD", grads_of="X"
):
    """X@GRAD sums Out@GRAD along the edges backwards: divided by Dst_count for MEAN, where X is Out for MIN and MAX."""

    expected_kernel_type = dtype_of("X")
