"""graph_send_ue_recv and its gradient: all of the ops but their kernels."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of

from oprack_graph.ops.message import _family as share


class GraphSendUeRecv(OpDef, type="graph_send_ue_recv"):
    r"""$$Out_d = \operatorname{reduce}_{e : Dst\_index_e = d} (X_{Src\_index_e} \circ Y_e)$$ with + or * for the
    circle; 0 for a node that no edge goes to
    """

    X = Input("Features of the nodes [N, ...].")
    Y = Input("Features of the edges [E, ...], which broadcast with those of the nodes.")
    Src_index = share.SRC
    Dst_index = share.DST
    Out_size = share.OUT_SIZE
    Out = Output("What each node receives [nodes, ...].")
    Dst_count = share.COUNT
    message_op = share.message_attr()
    reduce_op = share.reduce_attr()
    out_size = share.out_size_attr()
    expected_kernel_type = dtype_of("X")
    infer_var_type = share.infer_types

    def infer_shape(ctx: InferShapeContext) -> None:
        count = share.edges(ctx)
        y = ctx.dim("Y")
        ctx.require(len(y) > 0 and (count < 0 or y[0] in (-1, count)), f"Y has shape {list(y)}; expected {count} edges")
        share.set_outputs(ctx, share.broadcast(ctx, "X", "Y"))


class GraphSendUeRecvGrad(
    GradOpDef, of=GraphSendUeRecv, reads="X Y Src_index Dst_index Out Dst_count Out@GRAD", grads_of="X Y"
):
    """As that of graph_send_recv for each message, and from there to X and Y as + and * give it."""

    expected_kernel_type = dtype_of("X")
