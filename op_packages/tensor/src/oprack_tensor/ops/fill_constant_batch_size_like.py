"""fill_constant_batch_size_like: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import (
    REQUIRED,
    Attr,
    InferShapeContext,
    InferVarTypeContext,
    Input,
    OpDef,
    Output,
    dtype_of_attr,
    empty_grad,
)
from oprack.op.sbp import SbpContext, Signature, sequences, split
from oprack.types import AttrType


class FillConstantBatchSizeLike(OpDef, type="fill_constant_batch_size_like"):
    r"""$$Out_i = value$$; one dim of Out is a dim of Input, or its number of sequences when it has LoD."""

    Input_ = Input("Gives the batch size; its values are not read.")
    Out = Output("Tensor of `shape` but for dim `output_dim_idx`.")
    shape = Attr(REQUIRED, "Shape of Out.", type=AttrType.INTS)
    input_dim_idx = Attr(0, "Dim of Input to take.")
    output_dim_idx = Attr(0, "Dim of Out to replace.")
    dtype = Attr(5, "dtype of Out.")
    value = Attr(0.0, "The value.")
    str_value = Attr("", "The value as text, exact for large integers; overrides `value` when not empty.")
    force_cpu = Attr(False, "Keep Out in host memory.")
    no_need_buffer_vars = ("Input",)
    expected_kernel_type = dtype_of_attr("dtype")
    make_grad = empty_grad

    def sbp(ctx: SbpContext) -> list[Signature]:
        source, target = ctx.attr("input_dim_idx", 0), ctx.attr("output_dim_idx", 0)
        if source == 0 and ctx.has_lod("Input"):  # counts sequences
            return [] if target else sequences(("Input",), ("Out",), ("Out",))(ctx)
        return [Signature({"Input": split(source)}, {"Out": split(target)})]

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, shape = ctx.dim("Input"), list(ctx.attr("shape"))
        source, target = ctx.attr("input_dim_idx"), ctx.attr("output_dim_idx")
        ctx.require(
            0 <= source < len(dims) and 0 <= target < len(shape),
            f"input_dim_idx is {source} and output_dim_idx {target}; "
            f"expected places in Input {list(dims)} and shape {shape}",
        )
        shape[target] = dims[source]
        if source == 0 and ctx.lod_level("Input") > 0:
            lod = ctx.lod("Input")
            shape[target] = len(lod[-1]) - 1 if lod else -1
        ctx.require_sizes("shape", shape)
        ctx.set_dim("Out", shape)

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.attr("dtype"))
