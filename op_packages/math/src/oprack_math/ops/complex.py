"""Definitions of what makes complex numbers of real ones, and takes them apart."""

from __future__ import annotations

from oprack.op import (
    Attr,
    ForwardOp,
    GradOp,
    GradOpDef,
    InferShapeContext,
    InferVarTypeContext,
    Input,
    OpDef,
    Output,
    dtype_of,
)
from oprack.op.families import Unary
from oprack.types import complex_dtype, real_dtype

from oprack_math.ops._broadcast import Aligned


# dtypes of complex numbers and of their parts.
def set_complex(ctx: InferVarTypeContext, source: str, target: str) -> None:
    """Part of a type rule: `target` holds complex numbers whose parts have the dtype of `source`."""
    ctx.set_dtype(target, complex_dtype(ctx.dtype(source)))


def set_part(ctx: InferVarTypeContext, source: str, target: str) -> None:
    """Part of a type rule: `target` holds the parts of complex numbers; real numbers stay as they are."""
    ctx.set_dtype(target, real_dtype(ctx.dtype(source)))


def part_of_x(ctx: InferVarTypeContext) -> None:
    """infer_var_type of an op whose Out is one part of each element of X."""
    set_part(ctx, "X", "Out")


def complex_of_out_grad(ctx: InferVarTypeContext) -> None:
    """infer_var_type of the gradient of a part."""
    set_complex(ctx, "Out@GRAD", "X@GRAD")


# angle and its gradient.
class Angle(Unary, type="angle"):
    r"""$$Out = \operatorname{atan2}(\operatorname{Im} X, \operatorname{Re} X)$$ of a real number 0 or $\pi$."""

    use_mkldnn = Attr(False, "Paddle: prefer the oneDNN kernel.", extra=True)
    infer_var_type = part_of_x


class AngleGrad(GradOpDef, of=Angle, reads="X"):
    r"""$$X@GRAD = Out@GRAD \cdot i X / |X|^2$$ where X is complex and not 0, else 0."""

    expected_kernel_type = dtype_of("X")


class AsComplex(OpDef, type="as_complex"):
    r"""$$Out_j = X_{j,0} + i X_{j,1}$$ over the last dim of X."""

    X = Input("[..., 2] real numbers.")
    Out = Output("Complex, X's shape without its last dim; LoD of X.")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("X")
        ctx.require(
            len(dims) > 0 and dims[-1] in (2, -1),
            f"X has shape {list(dims)}; expected a last dim of 2: the real and the imaginary part",
        )
        ctx.set_dim("Out", dims[:-1])
        ctx.share_lod("X", "Out")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        set_complex(ctx, "X", "Out")

    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp("as_real", X=fwd.output_grad("Out"), Out=fwd.input_grad("X"))


class AsReal(OpDef, type="as_real"):
    r"""$$Out_{j,0} = \operatorname{Re} X_j,\quad Out_{j,1} = \operatorname{Im} X_j$$"""

    X = Input("Complex tensor of any shape.")
    Out = Output("Real, X's shape and a last dim of 2; LoD of X.")
    infer_var_type = part_of_x

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", (*ctx.dim("X"), 2))
        if ctx.dim("X"):
            ctx.share_lod("X", "Out")

    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp("as_complex", X=fwd.output_grad("Out"), Out=fwd.input_grad("X"))


# complex and its gradient.
class Complex(Aligned, type="complex"):
    r"""$$Out = X + i Y$$"""

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        set_complex(ctx, "X", "Out")


class ComplexGrad(GradOpDef, of=Complex, reads="Out@GRAD", shape_of="X Y"):
    r"""$$X@GRAD = \operatorname{Re} Out@GRAD,\quad Y@GRAD = \operatorname{Im} Out@GRAD$$"""

    expected_kernel_type = dtype_of("X")


class Conj(Unary, type="conj"):
    r"""$$Out = \overline{X}$$ Real numbers stay as they are."""

    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp("conj", X=fwd.output_grad("Out"), Out=fwd.input_grad("X"))


# imag and its gradient.
class Imag(Unary, type="imag"):
    r"""$$Out = \operatorname{Im} X$$"""

    infer_var_type = part_of_x


class ImagGrad(GradOpDef, of=Imag, like="Out@GRAD"):
    r"""$$X@GRAD = 0 + i\,Out@GRAD$$"""

    infer_var_type = complex_of_out_grad

    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp("imag", X=fwd.output_grad("X@GRAD"), Out=fwd.input_grad("Out@GRAD"))


# real and its gradient.
class Real(Unary, type="real"):
    r"""$$Out = \operatorname{Re} X$$"""

    infer_var_type = part_of_x


class RealGrad(GradOpDef, of=Real, like="Out@GRAD"):
    r"""$$X@GRAD = Out@GRAD + 0i$$"""

    infer_var_type = complex_of_out_grad

    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp("real", X=fwd.output_grad("X@GRAD"), Out=fwd.input_grad("Out@GRAD"))
