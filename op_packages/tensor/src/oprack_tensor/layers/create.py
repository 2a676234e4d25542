"""Tensors made from a shape, a range or values of the program."""

from __future__ import annotations

import numbers
from collections.abc import Sequence

from oprack.layers import LayerHelper, Variable, check_dtype, check_variable, int_list
from oprack.types import ALL_DTYPES, dtype_enum


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
    """A variable of `shape` (ints, or integer Variables of one element) and `dtype` whose every element is `value`.

    value: a number, or a Variable of one element. out: a Variable that receives the result. No gradient flows through
    it. Op fill_constant. Raises InvalidArgumentError.
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
    """Zeros of a shape and dtype; see fill_constant."""
    return fill_constant(shape, dtype, 0, force_cpu, name=name)


def ones(shape: Sequence[int | Variable], dtype: object, force_cpu: bool = False, name: str | None = None) -> Variable:
    """Ones of a shape and dtype; see fill_constant."""
    return fill_constant(shape, dtype, 1, force_cpu, name=name)


# Numbers where an op takes variables.
def _one_element(value: float | Variable, dtype: object) -> Variable:
    return fill_constant([1], dtype, value) if isinstance(value, numbers.Number) else value


# A variable that nothing has written to yet.
def create_tensor(dtype: object, name: str | None = None, persistable: bool = False) -> Variable:
    """An empty variable of the current block that ops write to later (assign, While)."""
    helper = LayerHelper("create_tensor", name=name)
    return helper.create_variable(name, dtype=dtype, persistable=persistable)


# Layer of eye.
def eye(num_rows: int, num_columns: int | None = None, dtype: object = "float32", name: str | None = None) -> Variable:
    """[num_rows, num_columns] with ones on the diagonal; num_columns defaults to num_rows. Op eye."""
    attrs = {
        "num_rows": num_rows,
        "num_columns": num_rows if num_columns is None else num_columns,
        "dtype": _dtype_attr(dtype, "eye"),
    }
    return LayerHelper("eye", name=name).apply("eye", {}, attrs, stop_gradient=True)


# Layers of fill_any_like.
def zeros_like(x: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
    """Zeros of the shape and dtype of x. out: receives them. Op fill_any_like."""
    return _full_like(x, 0.0, out, name, "zeros_like")


def ones_like(x: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
    """Ones of the shape and dtype of x. out: receives them. Op fill_any_like."""
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
    """As fill_constant, but dim `output_dim_idx` is that of dim `input_dim_idx` of `input` (with LoD: its sequences).

    Op fill_constant_batch_size_like. Raises InvalidArgumentError.
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
    """1-D: `num` numbers from start to stop, both included; each a number or a Variable of one element. Op linspace."""
    helper = LayerHelper("linspace", name=name)
    inputs = {"Start": _one_element(start, dtype), "Stop": _one_element(stop, dtype), "Num": _one_element(num, "int32")}
    made = helper.apply("linspace", inputs, {"dtype": _dtype_attr(dtype, "linspace")}, stop_gradient=True)
    if isinstance(num, int):
        made.desc.shape = (num,)
    return made


# Layer of range.
def range(start: int, end: int, step: int, dtype: object, name: str | None = None) -> Variable:
    """1-D: start, start + step ... before `end`; each a number or a Variable of one element of `dtype`. Op range."""
    helper = LayerHelper("range", name=name)
    inputs = {"Start": _one_element(start, dtype), "End": _one_element(end, dtype), "Step": _one_element(step, dtype)}
    made = helper.apply("range", inputs, stop_gradient=True)
    if all(isinstance(v, numbers.Number) for v in (start, end, step)) and step:
        made.desc.shape = (max(0, -int(-(end - start) // step)),)
    return made
