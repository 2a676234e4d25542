"""expand_as_v2: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of
from oprack.types import AttrType

from oprack_tensor.dims import broadcast_dims


class ExpandAsV2(OpDef, type="expand_as_v2"):
    r"""$$Out_{i} = X_{i'}$$ where i' is i in the dims of X, and 0 where X has size 1: X broadcast to the shape of Y, or
    to `target_shape`.
    """

    X = Input("Tensor of any shape.")
    Y = Input("Gives the shape; its values are not read.", dispensable=True)
    Out = Output("X broadcast; no LoD.")
    target_shape = Attr([], "Shape of Out.", type=AttrType.INTS)
    no_need_buffer_vars = ("Y",)
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("X")
        target = [None if d < 0 else d for d in ctx.dim("Y")] if ctx.has_input("Y") else ctx.attr("target_shape")
        ctx.set_dim("Out", broadcast_dims(ctx.op_type, dims, target))


class ExpandAsV2Grad(GradOpDef, of=ExpandAsV2, shape_of="X", grads_of="X"):
    """X@GRAD sums Out@GRAD over the dims that were broadcast."""
