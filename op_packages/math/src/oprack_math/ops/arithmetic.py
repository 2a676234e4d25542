"""Definitions of arithmetic with one tensor, and of sums of several."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.op import (
    REQUIRED,
    Attr,
    ForwardOp,
    GradOp,
    GradOpDef,
    IdentityContext,
    InferShapeContext,
    InferVarTypeContext,
    Input,
    OpDef,
    OpVersion,
    Output,
    dtype_of,
)
from oprack.op.families import MKLDNN_DATA_TYPE, USE_MKLDNN, GradFromX, Unary, out_like_x
from oprack.op.sbp import SbpContext, Signature, elementwise, linear_unary, unary
from oprack.types import AttrType, VarType, real_dtype

from oprack_math.ops._broadcast import broadcast_dims


class Abs(OpDef, type="abs"):
    r"""$$Out = |X|$$ Complex numbers give real ones."""

    X = Input("Tensor of any shape.")
    Out = Output("Shape of X; it has no LoD.")
    use_mkldnn = USE_MKLDNN
    inplace = {"X": "Out"}
    sbp = unary

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ctx.dim("X"))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", real_dtype(ctx.dtype("X")))


class AbsGrad(GradFromX, of=Abs):
    r"""$$X@GRAD = Out@GRAD \cdot \operatorname{sign}(X)$$ for complex numbers $X/|X|$."""

    inplace = {}  # Out@GRAD of a complex X is real
    expected_kernel_type = dtype_of("X")


class AbsDoubleGrad(
    GradOpDef,
    of=AbsGrad,
    type="abs_double_grad",
    reads="X",
    grads_of="Out@GRAD",
    like="X@GRAD@GRAD",
    names={"X": "x", "X@GRAD": "grad_x", "Out@GRAD": "grad_out"},
):
    r"""$$grad\_out@GRAD = grad\_x@GRAD \cdot \operatorname{sign}(x)$$"""

    expected_kernel_type = dtype_of("x")


# clip, with its first and second gradient.
class Clip(OpDef, type="clip"):
    r"""$$Out = \min(\max(X, min), max)$$ For integers the bounds are cut towards zero. X may be SelectedRows."""

    X = Input("Tensor or SelectedRows of any shape.")
    Min = Input("One-element tensor that overrides `min`.", dispensable=True)
    Max = Input("One-element tensor that overrides `max`.", dispensable=True)
    Out = Output("Shape and LoD of X.")
    min = Attr(REQUIRED, "Lower bound.", type=AttrType.FLOAT)
    max = Attr(REQUIRED, "Upper bound.", type=AttrType.FLOAT)
    mkldnn_data_type = MKLDNN_DATA_TYPE
    use_mkldnn = USE_MKLDNN
    inplace = {"X": "Out"}
    expected_kernel_type = dtype_of("X")
    versions = OpVersion("clip").checkpoint(
        "The bounds may be tensors.", ("new_input", "Min", None), ("new_input", "Max", None)
    )
    sbp = unary
    infer_shape = out_like_x


class ClipGrad(GradOpDef, of=Clip, reads="X Min Max", grads_of="X"):
    r"""$$X@GRAD = Out@GRAD \cdot [min < X < max]$$"""

    inplace = {"Out@GRAD": "X@GRAD"}
    expected_kernel_type = dtype_of("X")


class ClipDoubleGrad(
    GradOpDef,
    of=ClipGrad,
    type="clip_double_grad",
    reads="X Min Max",
    grads_of="Out@GRAD",
    like="X",
    names={"X@GRAD": "grad_x", "Out@GRAD": "grad_out"},
):
    r"""$$grad\_out@GRAD = grad\_x@GRAD \cdot [min < X < max]$$"""

    expected_kernel_type = dtype_of("X")


class Increment(OpDef, type="increment"):
    r"""$$Out = X + step$$ For integers the step is cut towards zero. Its gradient op counts back, as loops need it."""

    X = Input("Tensor of one element.")
    Out = Output("Shape and LoD of X; may be X itself.")
    step = Attr(1.0, "What is added.")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("X")
        ctx.require(
            all(d in (1, -1) for d in dims), f"X has shape {list(dims)}; expected one element, since it is a counter"
        )
        ctx.set_dim("Out", dims)
        ctx.share_lod("X", "Out")

    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp(
            "increment",
            X=fwd.output("Out"),
            outputs={"Out": fwd.input("X")},
            same={"X": "Out"},
            attrs=fwd.attrs | {"step": -fwd.attrs["step"]},
        )


# lerp and its gradient.
class Lerp(OpDef, type="lerp"):
    r"""$$Out = X + Weight \cdot (Y - X)$$"""

    X = Input("Tensor of any shape, the result of weight 0.")
    Y = Input("Tensor whose shape broadcasts with X's, the result of weight 1.")
    Weight = Input("Tensor whose shape broadcasts with theirs.")
    Out = Output("The broadcast shape, LoD of X.")
    inplace = {"X": "Out"}
    sbp = elementwise(("X", "Y", "Weight"), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = broadcast_dims(ctx.dim("X"), ctx.dim("Y"), -1, ctx.op_type)
        ctx.set_dim("Out", broadcast_dims(dims, ctx.dim("Weight"), -1, ctx.op_type))
        ctx.share_lod("X", "Out")


class LerpGrad(GradOpDef, of=Lerp, reads="X Y Weight Out", grads_of="X Y", linear=True):
    r"""$$X@GRAD = Out@GRAD (1 - Weight),\quad Y@GRAD = Out@GRAD \cdot Weight$$ Weight gets no gradient."""


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

    infer_shape = out_like_x

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


class Sign(Unary, type="sign"):
    r"""$$Out = -1, 0, 1 \text{ for negative, zero, positive } X$$"""

    def make_grad(fwd: ForwardOp) -> GradOp:
        attrs = {"scale": 0.0, "bias": 0.0, "bias_after_scale": True}
        return GradOp("scale", X=fwd.output_grad("Out"), Out=fwd.input_grad("X"), attrs=attrs)


def _merged(ctx: InferShapeContext, dims: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape that all inputs share, with dims of -1 filled in from those that know them."""
    known = [d for d in dims if 0 not in d] or dims  # an input without elements adds nothing
    merged, fits = list(known[0]), True
    for d in known[1:]:
        fits = len(d) == len(merged) and all(a == b or -1 in (a, b) for a, b in zip(d, merged, strict=True))
        if not fits:
            break
        merged = [max(a, b) for a, b in zip(d, merged, strict=True)]
    # once, since the text takes as long as the loop
    shapes = ", ".join(str(list(x)) for x in dims)
    ctx.require(fits, f"X has shapes {shapes}; expected equal shapes (sum does not broadcast)")
    return tuple(merged)


class Sum(OpDef, type="sum"):
    r"""$$Out = \sum_i X_i$$

    Dense tensors, SelectedRows (rows that are listed twice are added; a dense input makes the result dense), or arrays
    of tensors, which are added element by element. Inputs that hold no value are left out.
    """

    X = Input("Tensors of one shape, SelectedRows, or arrays of tensors.", duplicable=True)
    Out = Output("Shape, type and LoD of the first X.")
    use_mkldnn = Attr(False, "Run oneDNN's kernel where its plugin is installed.")
    mkldnn_data_type = Attr("float32", "dtype of oneDNN's kernel.")
    inplace = {"X": "Out"}
    sbp = elementwise(("X",), ("Out",), linear=(("X",),))

    def infer_shape(ctx: InferShapeContext) -> None:
        given = [i for i in range(ctx.input_count("X")) if ctx.is_initialized("X", i)]
        ctx.require(bool(given), "none of X holds a value; expected one at least")
        if ctx.kind("X", given[0]) == VarType.LOD_TENSOR_ARRAY:
            return
        ctx.set_dim("Out", _merged(ctx, [ctx.dim("X", i) for i in given]))
        ctx.share_lod("X", "Out", given[0])

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        kinds = [ctx.kind("X", i) for i in range(ctx.input_count("X"))]
        if VarType.LOD_TENSOR_ARRAY in kinds:
            ctx.set_kind("Out", VarType.LOD_TENSOR_ARRAY)
        else:  # sparse values of one kind stay so
            ctx.set_kind("Out", kinds[0] if len(set(kinds)) == 1 else VarType.LOD_TENSOR)
        ctx.set_dtype("Out", ctx.dtype("X"))

    def make_grad(fwd: ForwardOp) -> list[GradOp]:
        attrs = {"scale": 1.0, "bias": 0.0, "bias_after_scale": True}
        return [
            GradOp("scale", X=fwd.output_grad("Out"), Out=fwd.input_grad("X", i), attrs=attrs)
            for i in range(fwd.input_count("X"))
        ]
