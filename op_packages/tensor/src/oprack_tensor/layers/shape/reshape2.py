"""Layer of reshape2."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.layers import LayerHelper, Variable, check_variable, int_list


def reshape(
    x: Variable,
    shape: Sequence[int | Variable],
    actual_shape: Variable | None = None,
    act: str | None = None,
    inplace: bool = False,
    name: str | None = None,
) -> Variable:
    """x in another shape: -1 (once) for what is left over, 0 for the dim of x there; Variables of one element may be
    among the ints, or `shape` is one integer Variable.

    actual_shape: an integer Variable that overrides `shape` when the program runs. inplace is accepted for old programs
    and changes nothing: memory is shared whenever that is safe. Op reshape2. Raises InvalidArgumentError.
    """
    check_variable(x, "x", "reshape")
    helper = LayerHelper("reshape2", name=name, act=act)
    dims = int_list(helper, shape, "shape")
    tensor = dims.tensor if actual_shape is None else check_variable(actual_shape, "actual_shape", "reshape")
    inputs = {"X": x, "Shape": tensor, "ShapeTensor": dims.tensors or None}
    return helper.append_activation(helper.apply("reshape2", inputs, {"shape": dims.values}))
