"""roll: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, OpVersion, Output, dtype_of
from oprack.types import AttrType

from oprack_tensor.dims import given_ints, normal_axis


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
