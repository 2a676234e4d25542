"""Variables made from nothing but a shape: constants, ranges, values of the program itself."""

from __future__ import annotations

import numbers

from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, check_dtype, check_variable, int_list
from oprack.types import ALL_DTYPES, dtype_enum

_VALUE_SLOTS = {
    "bool": "bool_values",
    "int32": "int32_values",
    "int64": "int64_values",
    "float32": "fp32_values",
    "float64": "fp64_values",
}


def _dtype(dtype, layer):
    return int(dtype_enum(check_dtype(dtype, "dtype", layer, ALL_DTYPES)))


def fill_constant(shape, dtype, value, force_cpu=False, out=None, name=None):
    """A variable of `shape` (ints, or integer Variables of one element) and `dtype` whose every element is `value`.

    value: a number, or a Variable of one element. out: a Variable that receives the result. No gradient flows through
    it. Op fill_constant. Raises InvalidArgumentError.
    """
    helper = LayerHelper("fill_constant", name=name)
    dims = int_list(helper, shape, "shape")
    inputs = {"ShapeTensor": dims.tensor, "ShapeTensorList": dims.tensors or None}
    attrs = {"shape": dims.values, "dtype": _dtype(dtype, "fill_constant"), "force_cpu": force_cpu}
    if isinstance(value, numbers.Number):
        number = int(value) if isinstance(value, numbers.Integral) else float(value)
        attrs |= {"value": float(number), "str_value": str(number)}
    else:
        inputs["ValueTensor"] = check_variable(value, "value", "fill_constant")
    outs = None if out is None else {"Out": check_variable(out, "out", "fill_constant")}
    made = helper.apply("fill_constant", inputs, attrs, outs=outs, stop_gradient=True)
    made.stop_gradient = True
    return made


def fill_constant_batch_size_like(
    input, shape, dtype, value, input_dim_idx=0, output_dim_idx=0, force_cpu=False, name=None
):
    """As fill_constant, but dim `output_dim_idx` is that of dim `input_dim_idx` of `input` (with LoD: its sequences).

    Op fill_constant_batch_size_like. Raises InvalidArgumentError.
    """
    check_variable(input, "input", "fill_constant_batch_size_like")
    number = int(value) if isinstance(value, numbers.Integral) else float(value)
    attrs = {
        "shape": list(shape),
        "dtype": _dtype(dtype, "fill_constant_batch_size_like"),
        "value": float(number),
        "str_value": str(number),
        "input_dim_idx": input_dim_idx,
        "output_dim_idx": output_dim_idx,
        "force_cpu": force_cpu,
    }
    helper = LayerHelper("fill_constant_batch_size_like", name=name)
    return helper.apply("fill_constant_batch_size_like", {"Input": input}, attrs, stop_gradient=True)


def zeros(shape, dtype, force_cpu=False, name=None):
    """Zeros of a shape and dtype; see fill_constant."""
    return fill_constant(shape, dtype, 0, force_cpu, name=name)


def ones(shape, dtype, force_cpu=False, name=None):
    """Ones of a shape and dtype; see fill_constant."""
    return fill_constant(shape, dtype, 1, force_cpu, name=name)


def zeros_like(x, out=None, name=None):
    """Zeros of the shape and dtype of x. out: receives them. Op fill_any_like."""
    return _full_like(x, 0.0, out, name, "zeros_like")


def ones_like(x, out=None, name=None):
    """Ones of the shape and dtype of x. out: receives them. Op fill_any_like."""
    return _full_like(x, 1.0, out, name, "ones_like")


def _full_like(x, value, out, name, layer):
    check_variable(x, "x", layer)
    outs = None if out is None else {"Out": check_variable(out, "out", layer)}
    helper = LayerHelper(layer, name=name)
    return helper.apply("fill_any_like", {"X": x}, {"value": value, "dtype": -1}, outs=outs, stop_gradient=True)


def assign(input, output=None, name=None):
    """The values of a Variable, or of an array, list or number that the program then carries.

    output: a Variable that receives them (a loop's state, say). Ops assign, assign_value. Raises InvalidArgumentError.
    """
    helper = LayerHelper("assign", name=name)
    outs = None if output is None else {"Out": check_variable(output, "output", "assign")}
    if hasattr(input, "desc"):
        return helper.apply("assign", {"X": check_variable(input, "input", "assign")}, outs=outs)
    import numpy as np

    array = np.asarray(input)
    if array.dtype == np.float64 and not isinstance(input, np.ndarray | np.generic):
        array = array.astype(np.float32)  # Python's numbers are float32 here, as in Fluid
    slot = _VALUE_SLOTS.get(str(array.dtype))
    if slot is None:
        raise InvalidArgumentError(
            f"assign: input is {type(input).__name__} of dtype {array.dtype}; expected a Variable, or an array of "
            f"{', '.join(_VALUE_SLOTS)}"
        )
    values = [int(v) for v in array.ravel()] if slot == "bool_values" else array.ravel().tolist()
    attrs = {"shape": list(array.shape), "dtype": int(dtype_enum(str(array.dtype))), slot: values}
    return helper.apply("assign_value", {}, attrs, outs=outs, stop_gradient=True)


def range(start, end, step, dtype, name=None):
    """1-D: start, start + step ... before `end`; each a number or a Variable of one element of `dtype`. Op range."""
    helper = LayerHelper("range", name=name)
    inputs = {"Start": _number(start, dtype), "End": _number(end, dtype), "Step": _number(step, dtype)}
    made = helper.apply("range", inputs, stop_gradient=True)
    if all(isinstance(v, numbers.Number) for v in (start, end, step)) and step:
        made.desc.shape = (max(0, -int(-(end - start) // step)),)
    return made


def linspace(start, stop, num, dtype="float32", name=None):
    """1-D: `num` numbers from start to stop, both included; each a number or a Variable of one element. Op linspace."""
    helper = LayerHelper("linspace", name=name)
    inputs = {"Start": _number(start, dtype), "Stop": _number(stop, dtype), "Num": _number(num, "int32")}
    made = helper.apply("linspace", inputs, {"dtype": _dtype(dtype, "linspace")}, stop_gradient=True)
    if isinstance(num, int):
        made.desc.shape = (num,)
    return made


def _number(value, dtype):
    return fill_constant([1], dtype, value) if isinstance(value, numbers.Number) else value


def eye(num_rows, num_columns=None, dtype="float32", name=None):
    """[num_rows, num_columns] with ones on the diagonal; num_columns defaults to num_rows. Op eye."""
    attrs = {
        "num_rows": num_rows,
        "num_columns": num_rows if num_columns is None else num_columns,
        "dtype": _dtype(dtype, "eye"),
    }
    return LayerHelper("eye", name=name).apply("eye", {}, attrs, stop_gradient=True)


def create_tensor(dtype, name=None, persistable=False):
    """An empty variable of the current block that ops write to later (assign, While)."""
    helper = LayerHelper("create_tensor", name=name)
    return helper.create_variable(name, dtype=dtype, persistable=persistable)
