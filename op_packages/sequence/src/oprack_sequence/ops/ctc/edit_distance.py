"""edit_distance: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of, empty_grad
from oprack.op.sbp import sequences
from oprack.types import VarType


class EditDistance(OpDef, type="edit_distance"):
    r"""$$d_{i,j} = \min(d_{i-1,j} + 1, \; d_{i,j-1} + 1, \; d_{i-1,j-1} + [h_i \ne r_j]), \quad d_{i,0} = i, \; d_{0,j}
    = j$$, $$Out = d_{|h|,|r|}$$

    Levenshtein distance of each pair of sequences h of Hyps and r of Refs: fewest insertions, deletions and
    substitutions. With `normalized` it is divided by the length of the reference, which then must not be empty.
    """

    Hyps = Input("Tokens: [N, 1] with LoD, or [B, T] with HypsLength.")
    Refs = Input("Tokens: [M, 1] with LoD, or [B, S] with RefsLength; as many sequences as Hyps.")
    HypsLength = Input("int64 [B] or [B, 1].", dispensable=True)
    RefsLength = Input("int64 [B] or [B, 1].", dispensable=True)
    SequenceNum = Output("int64 [1]: number of pairs.")
    Out = Output("float32 [number of pairs, 1].")
    normalized = Attr(False, "Divide by the length of the reference.")
    expected_kernel_type = dtype_of("Hyps")
    make_grad = empty_grad
    sbp = sequences(
        ("Hyps", "Refs", "HypsLength", "RefsLength"), ("Out",), ("Out", "HypsLength", "RefsLength"), ("SequenceNum",)
    )

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require(
            ctx.has_input("HypsLength") == ctx.has_input("RefsLength"),
            "only one of HypsLength and RefsLength is given; expected both or none",
        )
        if not ctx.has_input("HypsLength"):
            ctx.require_lod("Hyps")
            ctx.require_lod("Refs")
        ctx.set_dim("Out", (ctx.dim("Hyps")[0] if ctx.has_input("HypsLength") else -1, 1))
        ctx.set_dim("SequenceNum", (1,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", VarType.FP32)
        ctx.set_dtype("SequenceNum", VarType.INT64)
