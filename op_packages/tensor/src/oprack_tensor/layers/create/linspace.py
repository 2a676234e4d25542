"""Layer of linspace."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable

from oprack_tensor.layers.create._dtype import dtype_attr
from oprack_tensor.layers.create._number import one_element


def linspace(start: float, stop: float, num: int, dtype: object = "float32", name: str | None = None) -> Variable:
    """1-D: `num` numbers from start to stop, both included; each a number or a Variable of one element. Op linspace."""
    helper = LayerHelper("linspace", name=name)
    inputs = {"Start": one_element(start, dtype), "Stop": one_element(stop, dtype), "Num": one_element(num, "int32")}
    made = helper.apply("linspace", inputs, {"dtype": dtype_attr(dtype, "linspace")}, stop_gradient=True)
    if isinstance(num, int):
        made.desc.shape = (num,)
    return made
