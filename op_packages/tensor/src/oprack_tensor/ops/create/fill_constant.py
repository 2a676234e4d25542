"""fill_constant: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import (
    Attr,
    InferShapeContext,
    InferVarTypeContext,
    Input,
    OpDef,
    OpVersion,
    Output,
    dtype_of_attr,
    empty_grad,
)
from oprack.op.families import USE_MKLDNN
from oprack.op.sbp import SbpContext, Signature, split
from oprack.types import AttrType

from oprack_tensor.dims import given_ints


class FillConstant(OpDef, type="fill_constant"):
    r"""$$Out_i = value$$ in the shape `shape`."""

    ValueTensor = Input("One-element tensor that overrides `value` and `str_value`.", dispensable=True)
    ShapeTensor = Input("int32 or int64 [n], overrides `shape`.", dispensable=True)
    ShapeTensorList = Input("n one-element tensors, override `shape`.", dispensable=True, duplicable=True)
    Out = Output("Tensor of the given shape and `dtype`.")
    dtype = Attr(5, "dtype of Out.")
    shape = Attr([], "Shape of Out.", type=AttrType.LONGS)
    value = Attr(0.0, "The value.")
    str_value = Attr("", "The value as text, exact for large integers; overrides `value` when not empty.")
    force_cpu = Attr(False, "Keep Out in host memory.")
    place_type = Attr(-1, "Where Out lives: -1 where the op runs, 0 host, 1 device, 2 pinned host memory.")
    use_mkldnn = USE_MKLDNN
    expected_kernel_type = dtype_of_attr("dtype")
    make_grad = empty_grad
    versions = (
        OpVersion("fill_constant")
        .checkpoint("The value may be a tensor.", ("new_input", "ValueTensor", None))
        .checkpoint("The place may be chosen.", ("new_attr", "place_type", -1))
    )

    def sbp(ctx: SbpContext) -> list[Signature]:
        if ctx.has("ShapeTensor") or ctx.has("ShapeTensorList"):
            return []
        return [Signature({}, {"Out": split(k)}, sizes={"shape": "Out"}) for k in range(len(ctx.dim("Out")))]

    def infer_shape(ctx: InferShapeContext) -> None:
        shape = [-1 if s is None else s for s in given_ints(ctx, "shape", "ShapeTensor", "ShapeTensorList")]
        ctx.require_sizes("shape", shape)
        ctx.set_dim("Out", shape)

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.attr("dtype"))
