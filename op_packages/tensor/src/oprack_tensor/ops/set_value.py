"""set_value: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, GradOpDef, InferShapeContext, Input, OpDef, OpVersion, Output, dtype_of
from oprack.types import AttrType


class SetValue(OpDef, type="set_value"):
    r"""$$Out[\ldots, starts_a : ends_a : steps_a, \ldots] = value$$ along each dim a of `axes`, and Input elsewhere.

    The value is broadcast to that part.
    """

    Input_ = Input("Tensor of rank 1 or more.")
    ValueTensor = Input("The value; overrides `values`.", dispensable=True)
    StartsTensorList = Input("One-element tensors that override `starts`.", dispensable=True, duplicable=True)
    EndsTensorList = Input("One-element tensors that override `ends`.", dispensable=True, duplicable=True)
    StepsTensorList = Input("One-element tensors that override `steps`.", dispensable=True, duplicable=True)
    Out = Output("Shape of Input; no LoD.")
    dtype = Attr(5, "dtype of `values`.")
    axes = Attr(REQUIRED, "Dims to cut.", type=AttrType.LONGS)
    starts = Attr([], "First place along each of `axes`.", type=AttrType.LONGS)
    ends = Attr([], "Place not reached any more along each of `axes`.", type=AttrType.LONGS)
    steps = Attr([], "Step along each of `axes`; 1 when empty.", type=AttrType.LONGS)
    decrease_axes = Attr([], "Dims that the value lacks.", type=AttrType.LONGS)
    none_axes = Attr([], "Dims of size 1 that the value has in addition.", type=AttrType.LONGS)
    values = Attr([], "The value as a flat list.", type=AttrType.SCALARS)
    shape = Attr([], "Shape of `values`.", type=AttrType.LONGS)
    inplace = {"Input": "Out"}
    expected_kernel_type = dtype_of("Input")
    versions = (
        OpVersion("set_value")
        .checkpoint(
            "Bounds may be tensors; steps.",
            ("new_input", "StartsTensorList", None),
            ("new_input", "EndsTensorList", None),
            ("new_input", "StepsTensorList", None),
            ("modify_attr", "starts", []),
            ("modify_attr", "ends", []),
            ("new_attr", "steps", []),
        )
        .checkpoint("The value may lack dims.", ("new_attr", "decrease_axes", []))
        .checkpoint("The value may have dims in addition.", ("new_attr", "none_axes", []))
        .checkpoint(
            "One list of scalars in place of a list for each dtype.",
            ("new_attr", "values", []),
            *(("delete_attr", f"{t}_values", None) for t in ("bool", "fp32", "int32", "int64", "fp64")),
        )
    )

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ctx.dim("Input"))


class SetValueGrad(
    GradOpDef,
    of=SetValue,
    reads="Out@GRAD ValueTensor StartsTensorList EndsTensorList StepsTensorList",
    shape_of="ValueTensor",
    grads_of="Input? ValueTensor?",
    like="Out@GRAD",
    lod=False,
    attrs="dtype axes starts ends steps decrease_axes none_axes shape",
):
    """Input@GRAD is Out@GRAD with the replaced part set to 0; ValueTensor@GRAD sums that part to the value's shape."""
