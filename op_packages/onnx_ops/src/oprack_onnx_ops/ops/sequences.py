"""Sequences of tensors, which are arrays of tensors here; a value that may be absent is an array of one or none."""

from __future__ import annotations

from typing import Any

from oprack.op import REQUIRED, Attr, InferShapeContext, InferVarTypeContext, Input, Output, dtype_of
from oprack.types import AttrType, VarType, dtype_name

from oprack_onnx_ops.ops._common import OnnxOp, dtypes


class OnnxSequenceOp(OnnxOp):
    """An op whose result is a sequence of the dtype of its first input."""

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        (out,) = ctx.proto.outputs
        ctx.set_kind(out, VarType.LOD_TENSOR_ARRAY)
        ctx.set_dtype(out, ctx.dtype(next(iter(ctx.proto.inputs))))


class OnnxSequenceConstruct(OnnxSequenceOp, type="onnx_sequence_construct"):
    r"""$$S_i = inputs_i$$: a sequence of tensors."""

    inputs = Input("Tensors of one dtype.", duplicable=True)
    output_sequence = Output("Array of tensors.")


class OnnxSequenceEmpty(OnnxOp, type="onnx_sequence_empty"):
    r"""$$|S| = 0$$: a sequence of nothing."""

    output = Output("Array of tensors.")
    dtype = Attr(5, "The dtype of what may be put into it.")

    def expected_kernel_type(ctx: Any) -> Any:
        return ctx.kernel_type(dtype=dtype_name(ctx.attrs["dtype"]))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("output", VarType.LOD_TENSOR_ARRAY)
        ctx.set_dtype("output", ctx.attr("dtype"))


class OnnxSequenceInsert(OnnxSequenceOp, type="onnx_sequence_insert"):
    r"""$$S' = S_0, \ldots, S_{p-1}, tensor, S_p, \ldots$$ for the position p."""

    input_sequence = Input("Array of tensors.")
    tensor = Input("What is put into it.")
    position = Input("One integer: before which one; at the end where it is absent.", dispensable=True)
    output_sequence = Output("Array of tensors.")
    expected_kernel_type = dtype_of("tensor")


class OnnxSequenceErase(OnnxSequenceOp, type="onnx_sequence_erase"):
    r"""$$S' = S_0, \ldots, S_{p-1}, S_{p+1}, \ldots$$ for the position p."""

    input_sequence = Input("Array of tensors.")
    position = Input("One integer: which one; the last where it is absent.", dispensable=True)
    output_sequence = Output("Array of tensors.")
    expected_kernel_type = dtype_of("input_sequence")


class OnnxSequenceAt(OnnxOp, type="onnx_sequence_at"):
    r"""$$tensor = S_{position}$$ of a sequence S."""

    input_sequence = Input("Array of tensors.")
    position = Input("One integer; negative ones count from the end.")
    tensor = Output("The tensor.")
    expected_kernel_type = dtype_of("input_sequence")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("tensor", VarType.LOD_TENSOR)
        ctx.set_dtype("tensor", ctx.dtype("input_sequence"))


class OnnxSequenceLength(OnnxOp, type="onnx_sequence_length"):
    r"""$$length = |S|$$"""

    input_sequence = Input("Array of tensors.")
    length = Output("int64, of rank 0.")
    per_value = Attr(False, "Whether there are any, as a bool.")

    def expected_kernel_type(ctx: Any) -> Any:
        """What is counted has no dtype where there is nothing."""
        known = ctx.is_initialized("input_sequence")
        return ctx.kernel_type(dtype=ctx.dtype("input_sequence") if known else "float32")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("length", [])

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("length", VarType.LOD_TENSOR)
        dtypes(ctx, length="bool" if ctx.attr("per_value") else "int64")


class OnnxConcatFromSequence(OnnxOp, type="onnx_concat_from_sequence"):
    r"""$$concat\_result = [S_0, S_1, \ldots]$$ along an axis, for the tensors $S_i$ of a sequence."""

    input_sequence = Input("Array of tensors.")
    concat_result = Output("The joined tensor.")
    axis = Attr(REQUIRED, "The axis.", type=AttrType.INT)
    new_axis = Attr(False, "It is a new one.")
    expected_kernel_type = dtype_of("input_sequence")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("concat_result", VarType.LOD_TENSOR)
        ctx.set_dtype("concat_result", ctx.dtype("input_sequence"))


class OnnxSplitToSequence(OnnxSequenceOp, type="onnx_split_to_sequence"):
    r"""$$S_i = input_{[n_i, n_{i+1})}$$ along an axis, with sums $n_i$ of the sizes before."""

    input = Input("Tensor of rank 1 or more.")
    split = Input("One integer, the size of a part, or a list of sizes; 1 where it is absent.", dispensable=True)
    output_sequence = Output("Array of tensors.")
    axis = Attr(0, "The axis.")
    keepdims = Attr(True, "Where split is absent: the axis stays, with size 1.")
    expected_kernel_type = dtype_of("input")
