"""The same elements in another order."""

from __future__ import annotations

from oprack.op import (
    REQUIRED,
    Attr,
    ForwardOp,
    GradOp,
    GradOpDef,
    IdentityContext,
    InferShapeContext,
    Input,
    OpDef,
    OpVersion,
    Output,
    dtype_of,
    normal_axis,
)
from oprack.op.families import MKLDNN_DATA_TYPE, USE_MKLDNN
from oprack.op.sbp import SbpContext, Signature, all_but, factors, letters
from oprack.types import AttrType

from oprack_tensor.dims import given_ints


# What transpose and transpose2 share.
def permutation(ctx: InferShapeContext, rank: int) -> list[int]:
    """The attribute axis, without negative dims. Refuses one that is no permutation of `rank` dims."""
    axes = [normal_axis(ctx.op_type, a, rank) for a in ctx.attr("axis")]
    ctx.require(
        sorted(axes) == list(range(rank)),
        f"axis is {ctx.attr('axis')} but the tensor has rank {rank}; expected each dim exactly once",
    )
    return axes


class TransposeOp(OpDef):
    """Dim i of Out is dim axis[i] of X."""

    X = Input("Tensor of any shape.")
    Out = Output("X with permuted dims; no LoD.")
    axis = Attr(REQUIRED, "A permutation of X's dims.", type=AttrType.INTS)
    use_mkldnn = USE_MKLDNN
    data_format = Attr("AnyLayout", "Memory layout of old programs.", extra=True)
    mkldnn_data_type = MKLDNN_DATA_TYPE

    def sbp(ctx: SbpContext) -> list[Signature]:
        names = letters(len(ctx.dim("X")))
        return factors({"X": names}, {"Out": [names[a] for a in ctx.attr("axis")]}, linear=(("X",),))

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("X")
        ctx.set_dim("Out", [dims[a] for a in permutation(ctx, len(dims))])

    def identity(ctx: IdentityContext) -> bool:
        return list(ctx.attr("axis")) == list(range(len(ctx.dim("X")))) and ctx.lod_level("X") == 0


class Flip(OpDef, type="flip"):
    r"""$$Out_{\ldots, i_a, \ldots} = X_{\ldots, n_a - 1 - i_a, \ldots}$$ along each dim a of `axis`, whose
    size is n_a.
    """

    X = Input("Tensor of any shape.")
    Out = Output("Shape and LoD of X.")
    axis = Attr(REQUIRED, "Dims to reverse; negative ones count from the end.", type=AttrType.INTS)
    versions = OpVersion("flip").checkpoint(
        "The dims to reverse are named axis.", ("new_attr", "axis", None), ("delete_attr", "dims", None)
    )
    sbp = all_but("axis")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.axes("X")
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")

    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp("flip", X=fwd.output_grad("Out"), Out=fwd.input_grad("X"), attrs=fwd.attrs)


class Reverse(OpDef, type="reverse"):
    r"""$$Out_{\dots, i, \dots} = X_{\dots, n - 1 - i, \dots}$$ along each dim of `axis`, as flip has it."""

    X = Input("Tensor of any shape.")
    Out = Output("Shape and LoD of X.")
    axis = Attr(REQUIRED, "Dims to reverse; negative ones count from the end.", type=AttrType.INTS, support_tensor=True)
    sbp = all_but("axis")

    def infer_shape(ctx: InferShapeContext) -> None:
        if not any(isinstance(a, str) for a in ctx.attr("axis")):
            ctx.axes("X")
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")

    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp("reverse", X=fwd.output_grad("Out"), Out=fwd.input_grad("X"), attrs=fwd.attrs)


def _check_axes(ctx: InferShapeContext) -> None:
    rank, axes, shifts = len(ctx.dim("X")), ctx.attr("axis"), given_ints(ctx, "shifts", "ShiftsTensor")
    for axis in axes:
        normal_axis(ctx.op_type, axis, rank)
    fits = None in shifts or len(shifts) == (len(axes) or 1)
    ctx.require(fits, f"shifts is {shifts} and axis {list(axes)}; expected one shift for each axis, or one in all")


class Roll(OpDef, type="roll"):
    r"""$$Out_{\ldots, (i_a + shifts_a) \bmod n_a, \ldots} = X_{\ldots, i_a, \ldots}$$ for each dim a of `axis`; without
    any, X is one flat list.
    """

    X = Input("Tensor of any shape.")
    ShiftsTensor = Input("int32 or int64, overrides `shifts`.", dispensable=True)
    Out = Output("Shape and LoD of X.")
    shifts = Attr([], "How far.", type=AttrType.LONGS)
    axis = Attr([], "Along which dims, one for each of `shifts`.", type=AttrType.LONGS)
    expected_kernel_type = dtype_of("X")
    versions = (
        OpVersion("roll")
        .checkpoint("The dims to shift along are named axis.", ("new_attr", "axis", []), ("delete_attr", "dims", None))
        .checkpoint("The shifts may be a tensor.", ("new_input", "ShiftsTensor", None))
    )

    def infer_shape(ctx: InferShapeContext) -> None:
        _check_axes(ctx)
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")


class RollGrad(GradOpDef, of=Roll, reads="ShiftsTensor", shape_of="X", grads_of="X", linear=True):
    """X@GRAD shifts Out@GRAD back."""


class Transpose(TransposeOp, type="transpose"):
    r"""$$Out_{i_{axis_0}, i_{axis_1}, \ldots} = X_{i_0, i_1, \ldots}$$: dim k of Out is dim axis[k] of X."""


class TransposeGrad(GradOpDef, of=Transpose, reads="Out@GRAD", shape_of="X? Out?", linear=True):
    """X@GRAD is Out@GRAD with the dims permuted back."""

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("Out@GRAD")
        axes = permutation(ctx, len(dims))
        ctx.set_dim("X@GRAD", [dims[axes.index(i)] for i in range(len(dims))])


class Transpose2(TransposeOp, type="transpose2"):
    r"""$$Out_{i_{axis_0}, i_{axis_1}, \ldots} = X_{i_0, i_1, \ldots}$$: dim k of Out is dim axis[k] of X."""

    XShape = Output("Empty, [0, dims of X]: carries X's shape to the gradient.", intermediate=True, extra=True)

    def infer_shape(ctx: InferShapeContext) -> None:
        TransposeOp.infer_shape(ctx)
        ctx.set_dim("XShape", (0, *ctx.dim("X")))


class Transpose2Grad(GradOpDef, of=Transpose2, reads="Out@GRAD", shape_of="XShape", linear=True, grads_of="X"):
    """X@GRAD is Out@GRAD with the dims permuted back."""

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("X@GRAD", ctx.dim("XShape")[1:])
