"""slice: all of the op but its kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack.op import (
    REQUIRED,
    Attr,
    GradOpDef,
    InferShapeContext,
    InferVarTypeContext,
    Input,
    KernelTypeContext,
    OpDef,
    Output,
    normal_axis,
)
from oprack.op.families import MKLDNN_DATA_TYPE, USE_MKLDNN
from oprack.types import AttrType, VarType

from oprack_tensor.dims import given_ints, slice_range
from oprack_tensor.ops.index import cut

if TYPE_CHECKING:
    from oprack.kernel import OpKernelType


def _kernel_type(ctx: KernelTypeContext) -> OpKernelType:
    # an array without elements has no dtype of its own, and any kernel cuts it
    dtype = ctx.dtype("Input") if ctx.is_initialized("Input") else ctx.output_dtype("Out") or "float32"
    return ctx.kernel_type(dtype=dtype)


class Slice(OpDef, type="slice"):
    r"""$$Out_{\ldots, i, \ldots} = Input_{\ldots, starts_a + i, \ldots}, \quad 0 \le i < ends_a - starts_a$$ along each
    dim a of `axes`.

    Negative places count from the end of a dim, and those behind it are cut to it.
    """

    Input_ = Input("Tensor, or a tensor array (then axes is [0]).")
    StartsTensor = Input("Overrides `starts`.", dispensable=True)
    EndsTensor = Input("Overrides `ends`.", dispensable=True)
    StartsTensorList = Input("One-element tensors that override `starts`.", dispensable=True, duplicable=True)
    EndsTensorList = Input("One-element tensors that override `ends`.", dispensable=True, duplicable=True)
    Out = Output("The part; LoD of Input while its first dim is not cut; a tensor for one element of an array.")
    axes = Attr(REQUIRED, "Dims to cut.", type=AttrType.INTS)
    starts = Attr([], "First place along each of `axes`.", type=AttrType.INTS)
    ends = Attr([], "Place after the last along each of `axes`; cut to what exists.", type=AttrType.INTS)
    infer_flags = Attr([], "-1 for each of `axes` whose size the build can't know.", type=AttrType.INTS)
    decrease_axis = Attr([], "Dims of size 1 to remove afterwards.", type=AttrType.INTS)
    use_mkldnn = USE_MKLDNN
    mkldnn_data_type = MKLDNN_DATA_TYPE
    expected_kernel_type = _kernel_type

    sbp = cut(("StartsTensor", "EndsTensor", "StartsTensorList", "EndsTensorList"))

    def infer_shape(ctx: InferShapeContext) -> None:
        if ctx.kind("Input") == VarType.LOD_TENSOR_ARRAY:
            if not ctx.is_runtime:
                ctx.set_dim("Out", ctx.dim("Input"))
            return
        dims, axes = list(ctx.dim("Input")), ctx.attr("axes")
        starts = given_ints(ctx, "starts", "StartsTensor", "StartsTensorList", likely=len(axes))
        ends = given_ints(ctx, "ends", "EndsTensor", "EndsTensorList", likely=len(axes))
        ctx.require(
            len(axes) == len(starts) == len(ends),
            f"axes is {list(axes)}, starts {starts} and ends {ends}; expected as many of each",
        )
        flags = [*ctx.attr("infer_flags"), *[1] * len(axes)]
        for a, start, end, flag in zip(axes, starts, ends, flags, strict=False):
            axis = normal_axis(ctx.op_type, a, len(dims), "axes")
            unknown = not ctx.is_runtime and (flag == -1 or dims[axis] < 0)
            if unknown or start is None or end is None:
                dims[axis] = -1
            else:
                first, last = slice_range(start, end, dims[axis])
                dims[axis] = last - first
        gone = {normal_axis(ctx.op_type, a, len(dims), "decrease_axis") for a in ctx.attr("decrease_axis")}
        for axis in gone:
            ctx.require(dims[axis] in (-1, 1), f"decrease_axis has {axis}, a dim of size {dims[axis]}; expected 1")
        ctx.set_dim("Out", [d for i, d in enumerate(dims) if i not in gone])
        if 0 not in axes:
            ctx.share_lod("Input", "Out")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        whole = ctx.kind("Input") == VarType.LOD_TENSOR_ARRAY and not ctx.attr("decrease_axis")
        ctx.set_kind("Out", VarType.LOD_TENSOR_ARRAY if whole else VarType.LOD_TENSOR)
        ctx.set_dtype("Out", ctx.dtype("Input"))


class SliceGrad(
    GradOpDef,
    of=Slice,
    reads="StartsTensor EndsTensor StartsTensorList EndsTensorList",
    shape_of="Input",
    grads_of="Input",
    linear=True,
):
    """Input@GRAD holds Out@GRAD where it was cut out, 0 elsewhere."""
