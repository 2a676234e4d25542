"""sequence_scatter: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of
from oprack.op.sbp import sequences

from oprack_sequence.ops._infer import same_dim


class SequenceScatter(OpDef, type="sequence_scatter"):
    r"""$$Out_{i,c} = X_{i,c} + \sum_{r \in Ids^{(i)}, Ids_r = c} Updates_r$$: sequence i of Updates is added to row i
    of X.
    """

    X = Input("[number of sequences, D].")
    Ids = Input("Columns [N, 1], int32 or int64, with LoD; a column may occur again.")
    Updates = Input("[N, 1] with the LoD of Ids.")
    Out = Output("Shape of X.")
    expected_kernel_type = dtype_of("X")
    sbp = sequences(("X", "Ids", "Updates"), ("Out",), ("X", "Out"))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_lod("Ids")
        same_dim(ctx, "X", "Out")


class SequenceScatterGrad(
    GradOpDef, of=SequenceScatter, reads="Ids", shape_of="Updates", grads_of="X Updates", like="Out@GRAD", lod=False
):
    """X takes the gradient as it is, each update the element that it was added to."""

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        for slot in ("X@GRAD", "Updates@GRAD"):
            if ctx.has_output(slot):
                ctx.set_dtype(slot, ctx.dtype("Out@GRAD"))
