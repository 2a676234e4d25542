"""Numbers where an op takes variables."""

from __future__ import annotations

import numbers

from oprack.layers import Variable

from oprack_tensor.layers.create.fill_constant import fill_constant


def one_element(value: float | Variable, dtype: object) -> Variable:
    return fill_constant([1], dtype, value) if isinstance(value, numbers.Number) else value
