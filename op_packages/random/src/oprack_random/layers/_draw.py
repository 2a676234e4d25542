"""What layers of ops with a shape, given by numbers or Variables, and a dtype share."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from oprack.layers import LayerHelper, Variable, check_dtype, int_list
from oprack.types import dtype_enum


def draw(
    op_type: str,
    shape: Sequence[int | Variable],
    dtype: object,
    dtypes: Collection[str],
    attrs: Mapping[str, float],
    name: str | None,
) -> Variable:
    """The Variable that the op draws; dtypes: those it has."""
    helper = LayerHelper(op_type, name=name)
    dims = int_list(helper, shape, "shape")
    inputs = {"ShapeTensor": dims.tensor, "ShapeTensorList": dims.tensors or None}
    number = int(dtype_enum(check_dtype(dtype, "dtype", op_type, dtypes)))
    return helper.apply(op_type, inputs, {"shape": dims.values, "dtype": number, **attrs}, stop_gradient=True)
