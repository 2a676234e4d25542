"""crop and its gradient."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of
from oprack.types import AttrType

from oprack_tensor.ops.index._crop import given_offsets, set_cropped


class Crop(OpDef, type="crop"):
    r"""$$Out_i = X_{i + offsets}$$ a part of X of the given shape."""

    X = Input("Tensor of rank 1 or more.")
    Y = Input("Tensor whose shape overrides `shape`; its values are not read.", dispensable=True)
    Offsets = Input("int32 [rank of X], overrides `offsets`.", dispensable=True)
    Out = Output("Tensor of that shape; no LoD.")
    offsets = Attr([], "First place of the part along each dim; none means 0.", type=AttrType.INTS)
    shape = Attr([], "Shape of the part; -1 reaches to the end.", type=AttrType.INTS)
    no_need_buffer_vars = ("Y",)
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        shape = [None if d < 0 else d for d in ctx.dim("Y")] if ctx.has_input("Y") else ctx.attr("shape")
        set_cropped(ctx, shape, given_offsets(ctx))


class CropGrad(GradOpDef, of=Crop, reads="X Offsets", shape_of="X", grads_of="X"):
    """X@GRAD holds Out@GRAD where the part was, 0 elsewhere."""
