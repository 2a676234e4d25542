"""Layers of fill_constant: variables whose elements are all equal."""

from __future__ import annotations

import numbers
from collections.abc import Sequence

from oprack.layers import LayerHelper, Variable, check_variable, int_list

from oprack_tensor.layers.create._dtype import dtype_attr


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
    attrs = {"shape": dims.values, "dtype": dtype_attr(dtype, "fill_constant"), "force_cpu": force_cpu}
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
