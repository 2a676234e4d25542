"""sequence_enumerate: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, Input, OpDef, Output, empty_grad
from oprack.op.sbp import sequences
from oprack.types import AttrType


class SequenceEnumerate(OpDef, type="sequence_enumerate"):
    r"""$$Out_{i,j} = X_{i + j}$$ while row i + j is of the same sequence as row i, else pad_value; j < win_size."""

    X = Input("Ids [N, 1] with LoD.")
    Out = Output("[N, win_size] with the LoD of X.")
    win_size = Attr(REQUIRED, "Ids of a window.", type=AttrType.INT).at_least(1)
    pad_value = Attr(0, "Stands for ids past the end.")
    all_kernels_must_compute_runtime_shape = Attr(
        True, "Has no effect.", name="@ALL_KERNELS_MUST_COMPUTE_RUNTIME_SHAPE@"
    )
    make_grad = empty_grad
    sbp = sequences(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_lod("X")
        ctx.set_dim("Out", (ctx.dim("X")[0], ctx.attr("win_size")))
        ctx.share_lod("X", "Out")
