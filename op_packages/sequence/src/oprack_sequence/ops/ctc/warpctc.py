"""warpctc: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of
from oprack.op.sbp import SbpContext, Signature, sequences


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
