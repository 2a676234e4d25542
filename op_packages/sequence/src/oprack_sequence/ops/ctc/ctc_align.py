"""ctc_align: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, Input, OpDef, Output, dtype_of, empty_grad


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
