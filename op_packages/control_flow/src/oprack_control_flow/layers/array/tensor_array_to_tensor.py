"""Layer of tensor_array_to_tensor."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable

from oprack_control_flow.layers.array._arguments import array_variable


def tensor_array_to_tensor(
    input: Variable, axis: int = 1, name: str | None = None, use_stack: bool = False
) -> tuple[Variable, Variable]:
    """(the tensors joined along `axis`, or along a new dim there with use_stack; the int32 size of each)."""
    inputs = {"X": array_variable(input, "tensor_array_to_tensor")}
    helper = LayerHelper("tensor_array_to_tensor", name=name)
    out, sizes = helper.apply("tensor_array_to_tensor", inputs, {"axis": axis, "use_stack": use_stack})
    sizes.stop_gradient = True
    return out, sizes
