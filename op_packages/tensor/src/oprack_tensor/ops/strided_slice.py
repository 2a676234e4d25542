"""strided_slice: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of, normal_axis
from oprack.types import AttrType

from oprack_tensor.dims import given_ints, length_of, strided_slice_of
from oprack_tensor.ops.index import cut


class StridedSlice(OpDef, type="strided_slice"):
    r"""$$Out_{\ldots, i, \ldots} = Input_{\ldots, starts_a + i \cdot strides_a, \ldots}$$ before ends_a, along each dim
    a of `axes`.

    Strides may be negative.
    """

    Input_ = Input("Tensor of rank 1 or more.")
    StartsTensor = Input("Overrides `starts`.", dispensable=True)
    StartsTensorList = Input("One-element tensors that override `starts`.", dispensable=True, duplicable=True)
    EndsTensor = Input("Overrides `ends`.", dispensable=True)
    EndsTensorList = Input("One-element tensors that override `ends`.", dispensable=True, duplicable=True)
    StridesTensor = Input("Overrides `strides`.", dispensable=True)
    StridesTensorList = Input("One-element tensors that override `strides`.", dispensable=True, duplicable=True)
    Out = Output("The part; LoD of Input.")
    axes = Attr(REQUIRED, "Dims to cut.", type=AttrType.INTS)
    starts = Attr([], "First place along each of `axes`.", type=AttrType.INTS)
    ends = Attr([], "Place not reached; -1 with a negative stride: to the front.", type=AttrType.INTS)
    strides = Attr([], "Step along each of `axes`.", type=AttrType.INTS)
    infer_flags = Attr([], "-1 for each of `axes` whose size the build can't know.", type=AttrType.INTS)
    decrease_axis = Attr([], "Dims of size 1 to remove afterwards.", type=AttrType.INTS)
    expected_kernel_type = dtype_of("Input")

    sbp = cut(
        (
            "StartsTensor",
            "EndsTensor",
            "StridesTensor",
            "StartsTensorList",
            "EndsTensorList",
            "StridesTensorList",
        )
    )

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, axes = list(ctx.dim("Input")), ctx.attr("axes")
        starts = given_ints(ctx, "starts", "StartsTensor", "StartsTensorList", likely=len(axes))
        ends = given_ints(ctx, "ends", "EndsTensor", "EndsTensorList", likely=len(axes))
        strides = given_ints(ctx, "strides", "StridesTensor", "StridesTensorList", likely=len(axes))
        ctx.require(
            len(axes) == len(starts) == len(ends) == len(strides),
            f"axes is {list(axes)}, starts {starts}, ends {ends} and strides {strides}; expected as many of each",
        )
        gone = {normal_axis(ctx.op_type, a, len(dims), "decrease_axis") for a in ctx.attr("decrease_axis")}
        flags = [*ctx.attr("infer_flags"), *[1] * len(axes)]
        for a, start, end, step, flag in zip(axes, starts, ends, strides, flags, strict=False):
            axis = normal_axis(ctx.op_type, a, len(dims), "axes")
            unknown = not ctx.is_runtime and flag == -1
            if unknown or start is None or end is None or step is None or dims[axis] < 0:
                dims[axis] = -1
                continue
            ctx.require(step != 0, f"strides is {strides}; expected no 0")
            cut = strided_slice_of(start, end, step, dims[axis], axis in gone)
            dims[axis] = length_of(cut, dims[axis])
        ctx.set_dim("Out", [d for i, d in enumerate(dims) if i not in gone])
        ctx.share_lod("Input", "Out")


class StridedSliceGrad(
    GradOpDef,
    of=StridedSlice,
    reads="StartsTensor StartsTensorList EndsTensor EndsTensorList StridesTensor StridesTensorList",
    shape_of="Input",
    grads_of="Input",
    linear=True,
):
    """Input@GRAD holds Out@GRAD where it was cut out, 0 elsewhere."""
