"""Layer of range."""

from __future__ import annotations

import numbers

from oprack.layers import LayerHelper, Variable

from oprack_tensor.layers.create._number import one_element


def range(start: int, end: int, step: int, dtype: object, name: str | None = None) -> Variable:
    """1-D: start, start + step ... before `end`; each a number or a Variable of one element of `dtype`. Op range."""
    helper = LayerHelper("range", name=name)
    inputs = {"Start": one_element(start, dtype), "End": one_element(end, dtype), "Step": one_element(step, dtype)}
    made = helper.apply("range", inputs, stop_gradient=True)
    if all(isinstance(v, numbers.Number) for v in (start, end, step)) and step:
        made.desc.shape = (max(0, -int(-(end - start) // step)),)
    return made
