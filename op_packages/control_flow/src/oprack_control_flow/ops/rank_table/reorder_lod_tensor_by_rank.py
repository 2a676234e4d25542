"""reorder_lod_tensor_by_rank: its definition; the operator is in the file of this name below operators."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output


class ReorderLoDTensorByRank(OpDef, type="reorder_lod_tensor_by_rank"):
    r"""$$Out^{(r)} = X^{(s_r)}$$: the sequences of X (its rows when it has no LoD) in the order s of the
    rank table.
    """

    X = Input("As many sequences or rows as the rank table has.")
    RankTable = Input("Rank table.")
    Out = Output("Shape of X.")

    def infer_shape(ctx: InferShapeContext) -> None:
        if not ctx.is_runtime:
            ctx.set_dim("Out", ctx.dim("X"))
            ctx.share_lod("X", "Out")


class ReorderLoDTensorByRankGrad(
    GradOpDef,
    of=ReorderLoDTensorByRank,
    reads="Out@GRAD RankTable",
    grads_of="X",
    grad_names={"Out": "X", "X": "Out"},
):
    """Out holds the sequences of X in their own order again."""

    def infer_shape(ctx: InferShapeContext) -> None:
        if not ctx.is_runtime:
            ctx.set_dim("Out", ctx.dim("X"))
            ctx.share_lod("X", "Out")
