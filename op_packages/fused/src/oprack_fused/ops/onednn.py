"""Ops that Paddle's passes for oneDNN make of plain ones."""

from __future__ import annotations

import math
from collections.abc import Sequence

from oprack.op import REQUIRED, Attr, InferShapeContext, Input, OpDef, Output, empty_grad
from oprack.op.families import out_like_x
from oprack.types import AttrType

from oprack_fused.ops._attrs import MKLDNN_DATA_TYPE


# Dims of tensors that an op reshapes and transposes on the way in or out; -1 is open.
def reshaped(ctx: InferShapeContext, dims: Sequence[int], shape: Sequence[int], what: str) -> list[int]:
    """Dims after a reshape: 0 copies a dim, one -1 takes what is left; `shape` empty leaves them as they are."""
    if not shape:
        return list(dims)
    zeros = [i for i, s in enumerate(shape) if s == 0]
    fits = all(i < len(dims) for i in zeros) and min(shape) >= -1 and list(shape).count(-1) <= 1
    ctx.require(fits, f"{what} is {list(shape)} for {list(dims)}; expected sizes, 0 for a dim as it is, one -1 at most")
    out = [dims[i] if s == 0 else s for i, s in enumerate(shape)]
    if min(dims, default=0) < 0:
        return out
    rest = math.prod(s for i, s in enumerate(out) if shape[i] != -1)
    if -1 in shape:
        out[list(shape).index(-1)] = math.prod(dims) // rest if rest else 0
    ctx.require(
        math.prod(out) == math.prod(dims), f"{what} is {list(shape)} for {list(dims)}; expected as many elements"
    )
    return out


def permuted(ctx: InferShapeContext, dims: Sequence[int], axes: Sequence[int], what: str) -> list[int]:
    """Dims in another order; `axes` empty leaves them."""
    if not axes:
        return list(dims)
    ctx.require(
        sorted(axes) == list(range(len(dims))), f"{what} is {list(axes)} for {list(dims)}; expected each dim once"
    )
    return [dims[a] for a in axes]


# Attributes that ops made for oneDNN share: what happens to a result before it is written.
_SMOOTH = ("gelu_erf", "gelu_tanh", "mish", "sigmoid", "sqrt", "swish", "tanh")

_PIECEWISE = ("abs", "clip", "hard_sigmoid", "hard_swish", "leaky_relu", "relu", "relu6")

FUSE_ACTIVATION = Attr("", "Activation of the result.").in_set(("", *_SMOOTH, *_PIECEWISE))

FUSE_ALPHA = Attr(0.0, "First number of the activation.")

FUSE_BETA = Attr(0.0, "Second number of the activation.")

OUTPUT_SCALE = Attr(1.0, "Factor of the result.")


def unquantised(doc: str, value: float = 1.0) -> Attr:
    """A scale of int8 kernels, of which there are none here."""
    return Attr(value, f"{doc} of a quantised tensor; only {value:g}.").in_set((value,))


# What the four fused_elementwise ops share.
class FusedElementwise(OpDef):
    """An element-wise op of two tensors, an activation, a factor, and dims of size 1 that are put in."""

    X = Input("Tensor of any shape.")
    Y = Input("Shape of X, or one that broadcasts to it from dim `axis` on.")
    Out = Output("Shape and LoD of X, with the new dims.")
    axis = Attr(-1, "The dim of X where those of Y begin; -1: at the end.")
    fuse_activation = FUSE_ACTIVATION
    fuse_alpha = FUSE_ALPHA
    fuse_beta = FUSE_BETA
    fused_output_scale = OUTPUT_SCALE
    fused_unsqueeze2_axes = Attr([], "Where dims of size 1 are put in, one after the other.", type=AttrType.INTS)
    scale_x = unquantised("Scale of X")
    scale_y = unquantised("Scale of Y")
    scale_out = unquantised("Scale of Out")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        out = list(ctx.dim("X"))
        for axis in ctx.attr("fused_unsqueeze2_axes"):
            ctx.require(-len(out) - 1 <= axis <= len(out), f"fused_unsqueeze2_axes has {axis} for {len(out)} dims")
            out.insert(axis if axis >= 0 else axis + len(out) + 1, 1)
        ctx.set_dim("Out", out)
        if not ctx.attr("fused_unsqueeze2_axes"):
            ctx.share_lod("X", "Out")


class FusedElementwiseAdd(FusedElementwise, type="fused_elementwise_add"):
    r"""$$Out = fused\_output\_scale \cdot f(X + Y)$$, f the activation, with dims of size 1 put in."""


class FusedElementwiseDiv(FusedElementwise, type="fused_elementwise_div"):
    r"""$$Out = fused\_output\_scale \cdot f(X / Y)$$, f the activation, with dims of size 1 put in."""


class FusedElementwiseMul(FusedElementwise, type="fused_elementwise_mul"):
    r"""$$Out = fused\_output\_scale \cdot f(X \cdot Y)$$, f the activation, with dims of size 1 put in."""


class FusedElementwiseSub(FusedElementwise, type="fused_elementwise_sub"):
    r"""$$Out = fused\_output\_scale \cdot f(X - Y)$$, f the activation, with dims of size 1 put in."""


def _ints(doc: str) -> Attr:
    return Attr([], doc, type=AttrType.INTS)


class FusedMatmul(OpDef, type="fused_matmul"):
    r"""$$Out = fused\_output\_scale \cdot f(matmul\_alpha \cdot X Y + ResidualData)$$, f the activation

    X and Y are reshaped and transposed before, Out transposed and reshaped behind. Dims in front of matrices broadcast.
    """

    X = Input("Matrices [.., M, K].")
    Y = Input("Matrices [.., K, N].")
    ResidualData = Input("What is added to the products.", dispensable=True, extra=True)
    Out = Output("[.., M, N], transposed and reshaped.")
    trans_x = Attr(False, "X holds its matrices transposed.")
    trans_y = Attr(False, "Y holds its matrices transposed.")
    matmul_alpha = Attr(1.0, "Factor of the products.")
    fuse_activation = FUSE_ACTIVATION
    fuse_alpha = FUSE_ALPHA
    fuse_beta = FUSE_BETA
    fused_output_scale = OUTPUT_SCALE
    fused_reshape_X = _ints("Shape of X, 0 for a dim as it is.")
    fused_transpose_X = _ints("Order of the dims of X behind that.")
    fused_reshape_Y = _ints("Shape of Y, 0 for a dim as it is.")
    fused_transpose_Y = _ints("Order of the dims of Y behind that.")
    fused_reshape_Out = _ints("Shape of Out.")
    fused_transpose_Out = _ints("Order of the dims of Out before that.")
    mkldnn_data_type = MKLDNN_DATA_TYPE
    Scale_x = unquantised("Scale of X")
    Scale_y = unquantised("Scale of Y")
    Scale_in_eltwise = unquantised("Scale of ResidualData", 0.0)
    Scale_out = unquantised("Scale of Out")
    force_fp32_output = Attr(False, "Quantised kernels give float32.")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        x, y = (
            permuted(
                ctx,
                reshaped(ctx, ctx.dim(s), ctx.attr(f"fused_reshape_{s}"), f"fused_reshape_{s}"),
                ctx.attr(f"fused_transpose_{s}"),
                f"fused_transpose_{s}",
            )
            for s in ("X", "Y")
        )
        ctx.require(min(len(x), len(y)) >= 2, f"X has dims {x} and Y {y}; expected matrices")
        x = [*x[:-2], x[-1], x[-2]] if ctx.attr("trans_x") else x
        y = [*y[:-2], y[-1], y[-2]] if ctx.attr("trans_y") else y
        ctx.require(-1 in (x[-1], y[-2]) or x[-1] == y[-2], f"X has dims {x} and Y {y}; expected equal inner sizes")
        rank = max(len(x), len(y)) - 2
        left, right = ([1] * (rank + 2 - len(d)) + d[:-2] for d in (x, y))
        fits = all(a == b or 1 in (a, b) or -1 in (a, b) for a, b in zip(left, right, strict=True))
        ctx.require(fits, f"X has dims {x} and Y {y}; expected dims in front of the matrices that broadcast")
        out = [b if a == 1 else a for a, b in zip(left, right, strict=True)] + [x[-2], y[-1]]
        out = permuted(ctx, out, ctx.attr("fused_transpose_Out"), "fused_transpose_Out")
        ctx.set_dim("Out", reshaped(ctx, out, ctx.attr("fused_reshape_Out"), "fused_reshape_Out"))


class FusedSoftplus(OpDef, type="fused_softplus"):
    r"""$$Out = f(\ln(1 + e^{beta \cdot X}) / beta)$$, f the activation; softplus is X itself above the threshold."""

    X = Input("Tensor of any shape.")
    Out = Output("Shape and LoD of X.")
    beta = Attr(1.0, "Factor.")
    threshold = Attr(20.0, "Where beta X is greater, softplus is X.")
    fuse_activation = FUSE_ACTIVATION
    fuse_alpha = FUSE_ALPHA
    fuse_beta = FUSE_BETA
    make_grad = empty_grad
    infer_shape = out_like_x


class FusedTranspose(OpDef, type="fused_transpose"):
    r"""$$Out_{i_{axis_0}, i_{axis_1}, \dots} = X_{i_0, i_1, \dots}$$, then dims of size 1 taken out or put in, or a
    reshape."""

    X = Input("Tensor of any shape.")
    Out = Output("X with its dims in another order, in another shape.")
    XShape = Output("Paddle: shape of X; empty.", intermediate=True, extra=True)
    axis = Attr(REQUIRED, "Which dim of X comes first, and so on.", type=AttrType.INTS)
    fused_squeeze2_axes = Attr([], "Dims of size 1 to take out.", type=AttrType.INTS)
    fused_unsqueeze2_axes = Attr([], "Where dims of size 1 are put in, one after the other.", type=AttrType.INTS)
    fused_reshape2_shape = Attr([], "Shape of Out, 0 for a dim as it is.", type=AttrType.INTS)
    scale = unquantised("Scale of Out")
    shift = unquantised("Shift of Out", 0.0)
    output_data_type = Attr("", "Paddle: dtype of a quantised Out.").in_set(("", "fp32"))
    data_format = Attr("AnyLayout", "Paddle: layout of X.", extra=True)
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        out = permuted(ctx, ctx.dim("X"), ctx.attr("axis"), "axis")
        gone = {a % max(len(out), 1) for a in ctx.attr("fused_squeeze2_axes")}
        ctx.require(
            all(out[a] in (1, -1) for a in gone),
            f"fused_squeeze2_axes is {list(ctx.attr('fused_squeeze2_axes'))} for {out}; expected dims of size 1",
        )
        out = [d for i, d in enumerate(out) if i not in gone]
        for a in ctx.attr("fused_unsqueeze2_axes"):
            ctx.require(-len(out) - 1 <= a <= len(out), f"fused_unsqueeze2_axes has {a} for {len(out)} dims")
            out.insert(a if a >= 0 else a + len(out) + 1, 1)
        ctx.set_dim("Out", reshaped(ctx, out, ctx.attr("fused_reshape2_shape"), "fused_reshape2_shape"))
        ctx.set_dim("XShape", (0, *ctx.dim("X")))
