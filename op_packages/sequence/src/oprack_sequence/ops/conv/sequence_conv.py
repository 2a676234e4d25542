"""sequence_conv: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, ForwardOp, GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of
from oprack.op.sbp import sequences
from oprack.types import AttrType


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
    sbp = sequences(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
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


def _trains_padding(fwd: ForwardOp):
    return fwd.attrs["paddingTrainable"]


class SequenceConvGrad(
    GradOpDef,
    of=SequenceConv,
    reads="X Filter PaddingData Out@GRAD",
    grads_of="X Filter PaddingData",
    when={"PaddingData": _trains_padding, "PaddingData@GRAD": _trains_padding},
):
    """Gradient of sequence_conv."""

    expected_kernel_type = dtype_of("Out@GRAD")
