"""sequence_conv: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, GradOp, GradOpDef, Input, OpDef, Output, dtype_of
from oprack.types import AttrType

from oprack_sequence.ops._infer import same_as, same_dim


class SequenceConv(OpDef, type="sequence_conv"):
    r"""Convolution along each sequence: $$Out_t = [X_{t+s}, \dots, X_{t+s+L-1}] \cdot Filter$$

    with s = contextStart and L = contextLength. Rows before the first or past the last of the sequence are zero or,
    with paddingTrainable, rows of PaddingData: first those before (-s of them), then those past the end.
    """

    X = Input("[N, D] with LoD.")
    PaddingData = Input("[rows before + rows past, D], for paddingTrainable.", dispensable=True)
    Filter = Input("[L D, M].")
    Out = Output("[N, M] with the LoD of X.")
    paddingTrainable = Attr(False, "Pad with PaddingData instead of zeros.")
    contextLength = Attr(REQUIRED, "Rows of a window, L.", type=AttrType.INT).at_least(1)
    contextStart = Attr(0, "Where a window begins, relative to its row.")
    contextStride = Attr(1, "Only 1 is defined.").in_set((1,))

    def infer_shape(ctx):
        ctx.require_lod("X")
        rows, width = ctx.require_rank("X", 2)
        taps, channels = ctx.require_rank("Filter", 2)
        length = ctx.attr("contextLength")
        ctx.require(
            width < 0 or taps < 0 or taps == length * width,
            f"Filter has shape {[taps, channels]}; expected contextLength {length} times the {width} columns of X "
            f"= {length * width} rows",
        )
        ctx.set_dim("Out", (rows, channels))
        ctx.share_lod("X", "Out")

    def make_grad(fwd):
        trainable = fwd.attrs["paddingTrainable"] and fwd.has_input("PaddingData")
        return GradOp(
            "sequence_conv_grad",
            X=fwd.input("X"),
            Filter=fwd.input("Filter"),
            PaddingData=fwd.input("PaddingData") if trainable else None,
            Out_grad=fwd.output_grad("Out"),
            X_grad=fwd.input_grad("X"),
            Filter_grad=fwd.input_grad("Filter"),
            PaddingData_grad=fwd.input_grad("PaddingData") if trainable else None,
            attrs=fwd.attrs,
        )


class SequenceConvGrad(GradOpDef, type="sequence_conv_grad"):
    """Gradient of sequence_conv."""

    X = Input("As in sequence_conv.")
    Filter = Input("As in sequence_conv.")
    PaddingData = Input("As in sequence_conv.", dispensable=True)
    Out_grad = Input("Gradient of Out.")
    X_grad = Output("Shape and LoD of X.")
    Filter_grad = Output("Shape of Filter.")
    PaddingData_grad = Output("Shape of PaddingData.")
    paddingTrainable = Attr(False, "As in sequence_conv.")
    contextLength = Attr(REQUIRED, "As in sequence_conv.", type=AttrType.INT)
    contextStart = Attr(0, "As in sequence_conv.")
    contextStride = Attr(1, "Only 1 is defined.")
    expected_kernel_type = dtype_of("Out@GRAD")

    def infer_shape(ctx):
        same_as(ctx, "X", "X@GRAD")
        same_dim(ctx, "Filter", "Filter@GRAD")
        same_dim(ctx, "PaddingData", "PaddingData@GRAD")
