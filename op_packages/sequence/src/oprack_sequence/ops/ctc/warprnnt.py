"""warprnnt and its gradient: all of the ops but their kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of


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
