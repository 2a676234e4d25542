"""lod_reset: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of
from oprack.types import AttrType


class LodReset(OpDef, type="lod_reset"):
    r"""$$Out = X$$ with another LoD: that of Y, or offsets given as the data of a Y without LoD, or target_lod."""

    X = Input("Tensor of any shape.")
    Y = Input("Gives its LoD, or offsets as its data; overrides target_lod.", dispensable=True)
    Out = Output("Shape and data of X.")
    target_lod = Attr([], "Offsets of the new level.", type=AttrType.INTS)
    append = Attr(False, "Add the new level below the LoD of X instead of replacing it.")
    inplace = {"X": "Out"}
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ctx.dim("X"))
        level = max(ctx.lod_level("Y"), 1) if ctx.has_input("Y") else 1
        ctx.set_lod_level("Out", level + (ctx.lod_level("X") if ctx.attr("append") else 0))


class LodResetGrad(GradOpDef, of=LodReset, shape_of="X", grads_of="X"):
    """The gradient with the LoD of X."""
