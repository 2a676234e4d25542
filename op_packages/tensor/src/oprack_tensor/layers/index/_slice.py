"""What slice and strided_slice take alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from oprack.layers import LayerHelper, Variable, check_variable, int_list


def slice_by(
    op_type: str,
    input: Variable,
    axes: Sequence[int],
    places: Mapping[str, Sequence[int | Variable] | Variable],
    name: str | None,
) -> Variable:
    helper = LayerHelper(op_type, name=name)
    inputs = {"Input": check_variable(input, "input", op_type)}
    attrs, flags = {"axes": list(axes)}, [1] * len(axes)
    for argument, value in places.items():
        given = int_list(helper, value, argument)
        slot = argument.capitalize()
        inputs |= {f"{slot}Tensor": given.tensor, f"{slot}TensorList": given.tensors or None}
        attrs[argument] = given.values if given.tensor is None else [-1] * len(axes)
        if given.tensor is not None:
            flags = [-1] * len(axes)
        elif given.tensors:
            flags = [-1 if hasattr(v, "desc") else f for v, f in zip(value, flags, strict=True)]
    return helper.apply(op_type, inputs, attrs | {"infer_flags": flags})
