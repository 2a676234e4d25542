"""What cast and transfer_dtype share."""

from __future__ import annotations

from oprack.op import (
    REQUIRED,
    Attr,
    ForwardOp,
    GradOp,
    IdentityContext,
    InferShapeContext,
    InferVarTypeContext,
    Input,
    OpDef,
    Output,
)
from oprack.op.sbp import unary
from oprack.types import AttrType, dtype_name


class Convert(OpDef):
    """Out holds X's elements converted to `out_dtype`."""

    X = Input("Tensor of any dtype.")
    Out = Output("Shape and LoD of X.")
    out_dtype = Attr(REQUIRED, "dtype of Out.", type=AttrType.INT)
    in_dtype = Attr(REQUIRED, "dtype of X when the program was built.", type=AttrType.INT)
    use_mkldnn = Attr(False, "Prefer a oneDNN kernel.")
    sbp = unary

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("Out", ctx.kind("X"))
        ctx.set_dtype("Out", ctx.attr("out_dtype"))

    def identity(ctx: IdentityContext) -> bool:
        return ctx.dtype("X") == dtype_name(ctx.attr("out_dtype"))

    def make_grad(fwd: ForwardOp) -> GradOp:
        back = {"in_dtype": fwd.attrs["out_dtype"], "out_dtype": fwd.attrs["in_dtype"]}
        return GradOp("cast", X=fwd.output_grad("Out"), Out=fwd.input_grad("X"), attrs=fwd.attrs | back)
