"""Tensors made from a shape, a range or values of the program."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import cast

import numpy as np
from oprack.layers import LayerHelper, Variable, check_dtype, check_variable, int_list
from oprack.types import ALL_DTYPES, dtype_enum, dtype_name

from oprack_tensor.dims import range_length


# A dtype as the attribute of an op.
def _dtype_attr(dtype: object, layer: str) -> int:
    return int(dtype_enum(check_dtype(dtype, "dtype", layer, ALL_DTYPES)))


# Layers of fill_constant: variables whose elements are all equal.
def fill_constant(
    shape: Sequence[int | Variable],
    dtype: object,
    value: bool | float,
    force_cpu: bool = False,
    out: Variable | None = None,
    name: str | None = None,
) -> Variable:
    """Appends op fill_constant: one number everywhere; no gradient flows through it.

    Args:
        shape: The sizes: ints, among which may be integer Variables of one element, or one integer Variable.
        dtype: Dtype of the result.
        value: The number, or a Variable of one element.
        force_cpu: Whether the result lies on the CPU.
        out: A Variable that receives the result; None: a new one.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        out, or the new Variable.

    Raises:
        InvalidArgumentError: An argument is of another kind.
    """
    helper = LayerHelper("fill_constant", name=name)
    dims = int_list(helper, shape, "shape")
    inputs = {"ShapeTensor": dims.tensor, "ShapeTensorList": dims.tensors or None}
    attrs = {"shape": dims.values, "dtype": _dtype_attr(dtype, "fill_constant"), "force_cpu": force_cpu}
    if isinstance(value, numbers.Number):
        number = int(value) if isinstance(value, numbers.Integral) else float(value)
        attrs |= {"value": float(number), "str_value": str(number)}
    else:
        inputs["ValueTensor"] = check_variable(value, "value", "fill_constant")
    outs = None if out is None else {"Out": check_variable(out, "out", "fill_constant")}
    made = helper.apply("fill_constant", inputs, attrs, outs=outs, stop_gradient=True)
    made.stop_gradient = True
    return made


def zeros(shape: Sequence[int | Variable], dtype: object, force_cpu: bool = False, name: str | None = None) -> Variable:
    """Appends op fill_constant: zeros.

    Args:
        shape: The sizes, as of fill_constant.
        dtype: Dtype of the result.
        force_cpu: Whether the result lies on the CPU.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of that shape.
    """
    return fill_constant(shape, dtype, 0, force_cpu, name=name)


def ones(shape: Sequence[int | Variable], dtype: object, force_cpu: bool = False, name: str | None = None) -> Variable:
    """Appends op fill_constant: ones.

    Args:
        shape: The sizes, as of fill_constant.
        dtype: Dtype of the result.
        force_cpu: Whether the result lies on the CPU.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of that shape.
    """
    return fill_constant(shape, dtype, 1, force_cpu, name=name)


# Numbers where an op takes variables.
def _one_element(value: float | Variable, dtype: object) -> Variable:
    return fill_constant([1], dtype, cast(float, value)) if isinstance(value, numbers.Number) else cast(Variable, value)


# A variable that nothing has written to yet.
def create_tensor(dtype: object, name: str | None = None, persistable: bool = False) -> Variable:
    """Makes an empty variable of the current block that ops write to later (assign, While).

    Args:
        dtype: Its dtype.
        name: Its name; None: made.
        persistable: Whether its value lives from run to run.

    Returns:
        The Variable.
    """
    helper = LayerHelper("create_tensor", name=name)
    return helper.create_variable(name, dtype=dtype, persistable=persistable)


# Layer of eye.
def eye(num_rows: int, num_columns: int | None = None, dtype: object = "float32", name: str | None = None) -> Variable:
    """Appends op eye: ones on the diagonal, zeros elsewhere.

    Args:
        num_rows: Number of rows.
        num_columns: Number of columns; None: as many as rows.
        dtype: Dtype of the result.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable [num_rows, num_columns].
    """
    attrs = {
        "num_rows": num_rows,
        "num_columns": num_rows if num_columns is None else num_columns,
        "dtype": _dtype_attr(dtype, "eye"),
    }
    return LayerHelper("eye", name=name).apply("eye", {}, attrs, stop_gradient=True)


# Layers of fill_any_like.
def zeros_like(x: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
    """Appends op fill_any_like: zeros of the shape and dtype of x.

    Args:
        x: The Variable whose shape to take.
        out: A Variable that receives them; None: a new one.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        out, or the new Variable.
    """
    return _full_like(x, 0.0, out, name, "zeros_like")


def ones_like(x: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
    """Appends op fill_any_like: ones of the shape and dtype of x.

    Args:
        x: The Variable whose shape to take.
        out: A Variable that receives them; None: a new one.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        out, or the new Variable.
    """
    return _full_like(x, 1.0, out, name, "ones_like")


def _full_like(x: Variable, value: float, out: Variable | None, name: str | None, layer: str) -> Variable:
    check_variable(x, "x", layer)
    outs = None if out is None else {"Out": check_variable(out, "out", layer)}
    helper = LayerHelper(layer, name=name)
    return helper.apply("fill_any_like", {"X": x}, {"value": value, "dtype": -1}, outs=outs, stop_gradient=True)


# Layer of fill_constant_batch_size_like.
def fill_constant_batch_size_like(
    input: Variable,
    shape: Sequence[int],
    dtype: object,
    value: float,
    input_dim_idx: int = 0,
    output_dim_idx: int = 0,
    force_cpu: bool = False,
    name: str | None = None,
) -> Variable:
    """Makes a Variable of one number, with as many rows as another Variable: op fill_constant_batch_size_like.

    Args:
        input: The Variable that says one size; with LoD, by its number of sequences.
        shape: The sizes, of which one is replaced.
        dtype: Dtype of the result.
        value: The number.
        input_dim_idx: The dim of input whose size is taken.
        output_dim_idx: The dim of the result that gets it.
        force_cpu: Whether the result lies on the CPU.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of that shape.

    Raises:
        InvalidArgumentError: An argument is of another kind.
    """
    check_variable(input, "input", "fill_constant_batch_size_like")
    number = int(value) if isinstance(value, numbers.Integral) else float(value)
    attrs = {
        "shape": list(shape),
        "dtype": _dtype_attr(dtype, "fill_constant_batch_size_like"),
        "value": float(number),
        "str_value": str(number),
        "input_dim_idx": input_dim_idx,
        "output_dim_idx": output_dim_idx,
        "force_cpu": force_cpu,
    }
    helper = LayerHelper("fill_constant_batch_size_like", name=name)
    return helper.apply("fill_constant_batch_size_like", {"Input": input}, attrs, stop_gradient=True)


# Layer of linspace.
def linspace(start: float, stop: float, num: int, dtype: object = "float32", name: str | None = None) -> Variable:
    """Appends op linspace: `num` numbers from start to stop, both included.

    Args:
        start: The first number, or a Variable of one element.
        stop: The last number, or a Variable of one element.
        num: How many, an int or an integer Variable of one element.
        dtype: Dtype of the result.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable [num].
    """
    helper = LayerHelper("linspace", name=name)
    inputs = {"Start": _one_element(start, dtype), "Stop": _one_element(stop, dtype), "Num": _one_element(num, "int32")}
    made = helper.apply("linspace", inputs, {"dtype": _dtype_attr(dtype, "linspace")}, stop_gradient=True)
    if isinstance(num, int):
        made.desc.shape = (num,)
    return made


# Layer of range.
def range(start: int, end: int, step: int, dtype: object, name: str | None = None) -> Variable:
    """Appends op range: start, start + step ... before end.

    Args:
        start: The first number, or a Variable of one element.
        end: The end, which is not reached, or a Variable of one element.
        step: The difference between two numbers, or a Variable of one element.
        dtype: Dtype of the result, and of the Variables.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of one dim.
    """
    helper = LayerHelper("range", name=name)
    inputs = {"Start": _one_element(start, dtype), "End": _one_element(end, dtype), "Step": _one_element(step, dtype)}
    made = helper.apply("range", inputs, stop_gradient=True)
    if all(isinstance(v, numbers.Number) for v in (start, end, step)) and step:
        start, end, step = (np.asarray(v).astype(dtype_name(dtype)).item() for v in (start, end, step))
        made.desc.shape = (range_length(start, end, step) if step else -1,)
    return made
