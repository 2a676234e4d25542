"""viterbi_decode: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of, empty_grad
from oprack.types import VarType


class ViterbiDecode(OpDef, type="viterbi_decode"):
    r"""$$Path = \arg\max_s \; a_{s_1} + b_{s_L} + \sum_l x_{l, s_l} + \sum_{l>1} Transition_{s_{l-1}, s_l}$$, Scores
    the maximum.

    Best tag path of every padded sequence x. With include_bos_eos_tag the last row of Transition holds the scores a of
    starting with a tag, the row before it those of stopping, b; both rows and columns take part as tags, too. Without
    it a and b are 0. Of equally good tags the lowest wins. An empty sequence scores 0; Paddle scores the first row of
    its padding.
    """

    Input_ = Input("Unnormalised scores [B, T, C].")
    Transition = Input("[C, C], from row to column.")
    Length = Input("int64 [B], each from 0 to T.")
    Scores = Output("[B]: score of the path.")
    Path = Output("int64 [B, largest Length], 0 past the end.")
    include_bos_eos_tag = Attr(True, "Add scores of starting and stopping.")
    expected_kernel_type = dtype_of("Input")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        batch, _, tags = ctx.require_rank("Input", 3)
        ctx.require_dims("Transition", (tags, tags), why=f"for the {tags} tags of Input")
        ctx.set_dim("Scores", (batch,))
        ctx.set_dim("Path", (batch, -1))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Scores", ctx.dtype("Input"))
        ctx.set_dtype("Path", VarType.INT64)
