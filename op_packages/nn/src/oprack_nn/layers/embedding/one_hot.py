"""The layer one_hot."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable


def one_hot(
    input: Variable, depth: Variable | int, allow_out_of_range: bool = False, name: str | None = None
) -> Variable:
    """float32 with a 1 at each id: ids [..., 1] or [...] give [..., depth].

    depth: an int or a Variable of one element. allow_out_of_range: other ids give zeros, not an error.
    Op one_hot_v2. Raises InvalidArgumentError.
    """
    check_variable(input, "input", "one_hot", {"int32", "int64"})
    helper = LayerHelper("one_hot", name=name)
    if len(input.shape) > 1 and input.shape[-1] == 1:
        input = helper.apply("squeeze2", {"X": input}, {"axes": [-1]}, stop_gradient=True)
    inputs, attrs = {"X": input}, {"dtype": 5, "allow_out_of_range": allow_out_of_range}
    if isinstance(depth, int):
        attrs["depth"] = depth
    else:
        inputs["depth_tensor"] = check_variable(depth, "depth", "one_hot", {"int32", "int64"})
    return helper.apply("one_hot_v2", inputs, attrs, stop_gradient=True)
