"""Labels without alignment: the loss, the labels of a path, and how far labels are apart."""

from __future__ import annotations

from oprack.op import (
    Attr,
    GradOpDef,
    InferShapeContext,
    InferVarTypeContext,
    Input,
    OpDef,
    Output,
    dtype_of,
    empty_grad,
)
from oprack.op.sbp import SbpContext, Signature, sequences
from oprack.types import VarType


class CtcAlign(OpDef, type="ctc_align"):
    r"""$$Output = (x_t : x_t \ne blank \wedge (x_t \ne x_{t-1} \vee \lnot merge\_repeated))$$ for each sequence x of
    Input.

    Labels of CTC frames (Graves et al., 2006): repeated ones are merged, then blanks are dropped. With two LoD levels
    the sequences are those of the outer one. When no label is left in any sequence with LoD, Output is the one row
    [[-1]], as in Paddle.
    """

    Input_ = Input("Ids: [N, 1] with LoD, or [B, T] with InputLength.")
    InputLength = Input("Frames of each sequence, [B, 1].", dispensable=True)
    Output_ = Output("Ids with LoD, or [B, T] filled up with padding_value.")
    OutputLength = Output("Labels of each sequence, [B, 1]; with InputLength.", dispensable=True)
    blank = Attr(0, "Id of the blank.")
    merge_repeated = Attr(True, "Merge equal ids that follow each other.")
    padding_value = Attr(0, "Fills the rest of a padded row.")
    expected_kernel_type = dtype_of("Input")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        dim = ctx.require_rank("Input", 2)
        if ctx.has_input("InputLength"):
            ctx.set_dim("Output", dim)
            ctx.set_dim("OutputLength", (dim[0], 1))
        else:
            ctx.require_lod("Input")
            ctx.set_dim("Output", (-1, 1))
            ctx.set_lod_level("Output", 1)


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


class WarpCtc(OpDef, type="warpctc"):
    r"""Connectionist temporal classification: $$Loss = -\log \sum_{\pi \to Label} \prod_t softmax(Logits_t)_{\pi_t}$$

    over all frame labellings that give Label once repeats are merged and blanks dropped. A Label that needs more
    frames than there are costs 0 and passes nothing back, as in Paddle.
    """

    Logits = Input("[N, C] with LoD, or time-major [T, B, C] with LogitsLength.")
    Label = Input("int32: [M, 1] with LoD, or [B, S] with LabelLength.")
    LogitsLength = Input("int64 [B].", dispensable=True)
    LabelLength = Input("int64 [B].", dispensable=True)
    Loss = Output("[number of sequences, 1].")
    WarpCTCGrad = Output("[T, B, C]: gradient of each loss by the logits.", intermediate=True)
    blank = Attr(0, "Id of the blank.")
    norm_by_times = Attr(False, "Divide the gradient (only it) of a sequence by its frames.")
    expected_kernel_type = dtype_of("Logits")

    def sbp(ctx: SbpContext) -> list[Signature]:
        return [] if ctx.has("LogitsLength") else sequences(("Logits", "Label"), ("Loss",), ("Loss",))(ctx)

    def infer_shape(ctx: InferShapeContext) -> None:
        padded = ctx.has_input("LogitsLength")
        ctx.require(
            padded == ctx.has_input("LabelLength"),
            "only one of LogitsLength and LabelLength is given; expected both or none",
        )
        if not padded:
            ctx.require_lod("Logits")
            ctx.require_lod("Label")
        dim = ctx.require_rank("Logits", 3 if padded else 2)
        blank = ctx.attr("blank")
        ctx.require(
            dim[-1] < 0 or 0 <= blank < dim[-1], f"attribute blank is {blank}; expected a class, 0 to {dim[-1] - 1}"
        )
        ctx.set_dim("Loss", (dim[1] if padded else -1, 1))
        ctx.set_dim("WarpCTCGrad", dim if padded else (-1, -1, dim[-1]))


class WarpCtcGrad(GradOpDef, of=WarpCtc, reads="LogitsLength WarpCTCGrad", shape_of="Logits", grads_of="Logits"):
    """Loss@GRAD times WarpCTCGrad, in the layout of Logits."""


class WarpRnnt(OpDef, type="warprnnt"):
    r"""The loss of a transducer (Graves, 2012): $$loss = -\log \sum_{\pi \to label} \exp \sum_{(t, u, k) \in \pi}
    input_{t,u,k}$$

    over all paths that read the label through a grid of frames t and label places u: a label moves to u + 1, a blank to
    t + 1, and the last step is a blank. The input holds logarithms of probabilities, as log_softmax gives them, as
    Paddle's CPU kernel expects. fastemit_lambda weighs the gradient of labels (FastEmit, Yu et al., 2021).
    """

    input = Input("Logarithms of probabilities [B, T, U + 1, classes].")
    label = Input("int32 [B, U].")
    input_lengths = Input("int32 [B], frames.")
    label_lengths = Input("int32 [B].")
    loss = Output("[B].")
    warprnntgrad = Output("[B, T, U + 1, classes]: gradient of each loss by the input.", intermediate=True)
    blank = Attr(0, "Id of the blank.")
    fastemit_lambda = Attr(0.0, "Added weight of the gradient of labels.")
    expected_kernel_type = dtype_of("input")

    def infer_shape(ctx: InferShapeContext) -> None:
        batch, frames, places, classes = ctx.require_rank("input", 4)
        ctx.require_dims(
            "label", (batch, places if places < 0 else places - 1), why="one less than the places of input"
        )
        for slot in ("input_lengths", "label_lengths"):
            ctx.require_dims(slot, (batch,), why="one for each sequence")
        blank = ctx.attr("blank")
        ctx.require(
            0 <= blank and (classes < 0 or blank < classes), f"blank is {blank}; expected a class, 0 to {classes - 1}"
        )
        ctx.set_dim("loss", (batch,))
        ctx.set_dim("warprnntgrad", (batch, frames, places, classes))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        for slot in ("loss", "warprnntgrad"):
            ctx.set_dtype(slot, ctx.dtype("input"))


class WarpRnntGrad(
    GradOpDef, of=WarpRnnt, reads="input input_lengths warprnntgrad", shape_of="input", grads_of="input"
):
    r"""$$input@GRAD = loss@GRAD \cdot warprnntgrad$$"""

    expected_kernel_type = dtype_of("loss@GRAD")
