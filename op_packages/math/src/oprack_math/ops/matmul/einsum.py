"""einsum: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of
from oprack.types import AttrType

from oprack_math.ops.matmul._equation import parse, sizes


class Einsum(OpDef, type="einsum"):
    r"""Sum of products over the letters that Out lacks: "bij,bjk->bik" is $$Out_{bik} = \sum_j A_{bij} B_{bjk}$$"""

    Operands = Input("The factors.", duplicable=True)
    Out = Output("Dims in the order of the equation's right side; no LoD.")
    InnerCache = Output("Copies of the operands for the gradient.", duplicable=True, intermediate=True, extra=True)
    XShape = Output("Shapes of the operands; holds no value.", duplicable=True, intermediate=True, extra=True)
    equation = Attr(REQUIRED, "Letters of the operands' dims, '->', letters of Out's dims.", type=AttrType.STRING)

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, text = ctx.dims("Operands"), ctx.attr("equation")
        parsed = parse(text, [len(d) for d in dims])
        size = sizes(parsed, dims, text)
        ctx.set_dim("Out", [size[c] for c in parsed.output])
        for slot in ("InnerCache", "XShape"):
            ctx.set_dims(slot, dims[: ctx.output_count(slot)])


class EinsumGrad(
    GradOpDef, of=Einsum, reads="XShape? InnerCache Out@GRAD", like="InnerCache", names={"XShape": "x_shape"}
):
    r"""Of each operand: the sum of products of Out@GRAD and the other operands over the letters that it lacks."""

    expected_kernel_type = dtype_of("Out@GRAD")
