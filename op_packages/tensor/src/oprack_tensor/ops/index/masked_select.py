"""masked_select: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of


class MaskedSelect(OpDef, type="masked_select"):
    r"""$$Y = (X_i : Mask_i)$$ in row-major order; X and Mask are broadcast."""

    X = Input("Tensor of any shape.")
    Mask = Input("bool, of a shape that broadcasts with X.")
    Y = Output("[number of true elements]")
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Y", (-1,))


class MaskedSelectGrad(GradOpDef, of=MaskedSelect, reads="Mask", shape_of="X", grads_of="X", linear=True):
    """X@GRAD holds Y@GRAD at the places that were selected, 0 elsewhere."""
