"""scale: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, ForwardOp, GradOp, IdentityContext, InferShapeContext, Input, OpDef, Output, dtype_of
from oprack.op.families import USE_MKLDNN
from oprack.op.sbp import SbpContext, Signature, linear_unary, unary


class Scale(OpDef, type="scale"):
    r"""$$Out = scale \cdot X + bias$$, or with bias_after_scale false $$Out = scale \cdot (X + bias)$$.

    For integers, scale and bias are cut towards zero first.
    """

    X = Input("Tensor or SelectedRows of any shape.")
    ScaleTensor = Input("One-element tensor that overrides `scale`.", dispensable=True)
    Out = Output("Shape, type and LoD of X.")
    scale = Attr(1.0, "Factor.")
    bias = Attr(0.0, "Shift.")
    bias_after_scale = Attr(True, "Add the bias after scaling.")
    use_mkldnn = USE_MKLDNN
    inplace = {"X": "Out"}
    expected_kernel_type = dtype_of("X")

    def sbp(ctx: SbpContext) -> list[Signature]:
        return linear_unary(ctx) if ctx.attr("bias") == 0 and not ctx.has("ScaleTensor") else unary(ctx)

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")

    def identity(ctx: IdentityContext) -> bool:
        return ctx.attr("scale") == 1 and ctx.attr("bias") == 0 and not ctx.has_input("ScaleTensor")

    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp(
            "scale",
            X=fwd.output_grad("Out"),
            ScaleTensor=fwd.input("ScaleTensor") if fwd.has_input("ScaleTensor") else None,
            Out=fwd.input_grad("X"),
            attrs=fwd.attrs | {"bias": 0.0, "bias_after_scale": True},
        )
