"""einsum: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, GradOp, GradOpDef, Input, OpDef, Output, dtype_of
from oprack.types import AttrType

from oprack_math.ops._equation import parse, sizes

_EQUATION = Attr(REQUIRED, "Letters of the operands' dims, '->', letters of Out's dims.", type=AttrType.STRING)


class Einsum(OpDef, type="einsum"):
    r"""Sum of products over the letters that Out lacks: "bij,bjk->bik" is $$Out_{bik} = \sum_j A_{bij} B_{bjk}$$"""

    Operands = Input("The factors.", duplicable=True)
    Out = Output("Dims in the order of the equation's right side; no LoD.")
    InnerCache = Output("Copies of the operands for the gradient.", duplicable=True, intermediate=True, extra=True)
    XShape = Output("Shapes of the operands; holds no value.", duplicable=True, intermediate=True, extra=True)
    equation = _EQUATION

    def infer_shape(ctx):
        dims, text = ctx.dims("Operands"), ctx.attr("equation")
        parsed = parse(text, [len(d) for d in dims])
        size = sizes(parsed, dims, text)
        ctx.set_dim("Out", [size[c] for c in parsed.output])
        for slot in ("InnerCache", "XShape"):
            ctx.set_dims(slot, dims[: ctx.output_count(slot)])

    def make_grad(fwd):
        return GradOp(
            "einsum_grad",
            InnerCache=fwd.output("InnerCache"),
            x_shape=fwd.output("XShape"),
            Out_grad=fwd.output_grad("Out"),
            Operands_grad=fwd.input_grad("Operands"),
            attrs=fwd.attrs,
        )


class EinsumGrad(GradOpDef, type="einsum_grad"):
    r"""Of each operand: the sum of products of Out@GRAD and the other operands over the letters that it lacks."""

    x_shape = Input("Shapes of the operands; not read.", duplicable=True, dispensable=True)
    InnerCache = Input("Copies of the operands.", duplicable=True)
    Out_grad = Input("Gradient of Out.")
    Operands_grad = Output("Gradients of the operands.", duplicable=True)
    equation = _EQUATION
    expected_kernel_type = dtype_of("Out@GRAD")

    def infer_shape(ctx):
        ctx.set_dims("Operands@GRAD", ctx.dims("InnerCache"))
