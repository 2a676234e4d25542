"""warpctc: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOp, GradOpDef, Input, OpDef, Output, dtype_of

from oprack_sequence.ops._infer import same_as


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

    def infer_shape(ctx):
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

    def make_grad(fwd):
        return GradOp(
            "warpctc_grad",
            Logits=fwd.input("Logits"),
            LogitsLength=fwd.input("LogitsLength"),
            WarpCTCGrad=fwd.output("WarpCTCGrad"),
            Loss_grad=fwd.output_grad("Loss"),
            Logits_grad=fwd.input_grad("Logits"),
            attrs=fwd.attrs,
        )


class WarpCtcGrad(GradOpDef, type="warpctc_grad"):
    """Loss@GRAD times WarpCTCGrad, in the layout of Logits."""

    Logits = Input("Only its LoD and shape are read.")
    LogitsLength = Input("As in warpctc.", dispensable=True)
    WarpCTCGrad = Input("From warpctc.")
    Loss_grad = Input("Gradient of Loss.")
    Logits_grad = Output("Shape and LoD of Logits.")
    blank = Attr(0, "As in warpctc.")
    norm_by_times = Attr(False, "As in warpctc.")
    no_need_buffer_vars = ("Logits",)
    expected_kernel_type = dtype_of("Loss@GRAD")

    def infer_shape(ctx):
        same_as(ctx, "Logits", "Logits@GRAD")
