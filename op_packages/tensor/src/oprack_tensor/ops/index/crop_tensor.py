"""crop_tensor and its gradient."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of
from oprack.types import AttrType

from oprack_tensor.dims import given_ints
from oprack_tensor.ops.index._crop import given_offsets, set_cropped


class CropTensor(OpDef, type="crop_tensor"):
    r"""$$Out_i = X_{i + offsets}$$ a part of X of the given shape."""

    X = Input("Tensor of rank 1 or more.")
    Shape = Input("int32 [rank of X], overrides `shape`.", dispensable=True)
    ShapeTensor = Input("One-element tensors, override `shape`.", dispensable=True, duplicable=True)
    Offsets = Input("int32 [rank of X], overrides `offsets`.", dispensable=True)
    OffsetsTensor = Input("One-element tensors, override `offsets`.", dispensable=True, duplicable=True)
    Out = Output("Tensor of that shape; no LoD.")
    shape = Attr([], "Shape of the part; -1 reaches to the end.", type=AttrType.INTS)
    offsets = Attr([], "First place of the part along each dim; none means 0.", type=AttrType.INTS)
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        shape = given_ints(ctx, "shape", "Shape", "ShapeTensor", likely=len(ctx.dim("X")))
        set_cropped(ctx, shape, given_offsets(ctx, "OffsetsTensor"))


class CropTensorGrad(GradOpDef, of=CropTensor, reads="X Offsets OffsetsTensor", shape_of="X", grads_of="X"):
    """X@GRAD holds Out@GRAD where the part was, 0 elsewhere."""
