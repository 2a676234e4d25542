"""Layer of fill_constant_batch_size_like."""

from __future__ import annotations

import numbers
from collections.abc import Sequence

from oprack.layers import LayerHelper, Variable, check_variable

from oprack_tensor.layers.create._dtype import dtype_attr


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
        "dtype": dtype_attr(dtype, "fill_constant_batch_size_like"),
        "value": float(number),
        "str_value": str(number),
        "input_dim_idx": input_dim_idx,
        "output_dim_idx": output_dim_idx,
        "force_cpu": force_cpu,
    }
    helper = LayerHelper("fill_constant_batch_size_like", name=name)
    return helper.apply("fill_constant_batch_size_like", {"Input": input}, attrs, stop_gradient=True)
