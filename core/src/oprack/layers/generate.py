"""Layers made from OpProtos, for ops that need no more than their slots and attributes (activations, say)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from keyword import iskeyword
from typing import Any

from oprack.layers.helper import LayerHelper
from oprack.layers.user_line import errors_at_user_line
from oprack.layers.variable import Variable, check_type, check_variable
from oprack.op.proto import OpProto
from oprack.op.signature import layer_signature, outputs_along_axis, told_outputs
from oprack.packs import op_info
from oprack.packs.changes import on_change
from oprack.packs.manager import default_manager


def layer_of_op(
    op_type: str, name: str | None = None, arguments: Mapping[str, str] | None = None, stop_gradient: bool = False
) -> Callable[..., Any]:
    """Make a layer that appends one op: its arguments are the inputs in slot order, then attributes, `act` and `name`.

    Attributes that are details of a run are no arguments. The layer returns the outputs that are not intermediate: a
    Variable, a list for a duplicable output, or a tuple of several.

    Args:
        op_type: The op.
        name: The name of the function; default: the op's type.
        arguments: Slot or attribute -> how its argument is spelled.
        stop_gradient: Whether gradients stop at the outputs.

    Returns:
        The layer.

    Raises:
        UnknownOpError: There is no such op; otherwise as `oprack.op_info`.
    """
    description = layer_signature(op_info(op_type).proto, name, arguments)
    proto, inputs, attrs = description.proto, description.slots, description.attrs
    signature = description.inspected()

    def layer(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as e:
            raise TypeError(f"{description}: {e}") from None
        bound.apply_defaults()
        values = bound.arguments
        helper = LayerHelper(op_type, name=values.get("name"), act=values.get("act"))
        for argument, slot in inputs.items():
            value = values[argument]
            for v in value if slot.duplicable and isinstance(value, list | tuple) else [value]:
                if v is not None or not slot.dispensable:
                    check_variable(v, argument, layer.__name__)
        by_slot = {slot.name: values[argument] for argument, slot in inputs.items()}
        by_attr = {a.name: values[argument] for argument, a in attrs.items()}
        num = 1
        if "num_outputs" in values:
            num = _output_count(proto, values["num_outputs"], by_slot, by_attr, layer.__name__)
        outputs = helper.apply(op_type, by_slot, by_attr, num=num, stop_gradient=stop_gradient)
        return helper.append_activation(outputs) if isinstance(outputs, Variable) else outputs

    description.describe(layer, "oprack.layers")
    return layer


def _output_count(
    proto: OpProto, num_outputs: Any, inputs: Mapping[str, Any], attrs: Mapping[str, Any], layer: str
) -> int:
    """How many Variables a duplicable output gets: as many as the argument, the attributes or the inputs say."""
    if num_outputs is not None:
        check_type(num_outputs, "num_outputs", layer, int)
        return int(num_outputs)
    lists = {slot: v if isinstance(v, list | tuple) else [v] for slot, v in inputs.items() if v is not None}
    count = told_outputs(proto, attrs, {slot: len(v) for slot, v in lists.items()})
    if count is not None:
        return count
    first = next((v[0] for v in lists.values() if v), None)
    with errors_at_user_line():
        return outputs_along_axis(proto, attrs, None if first is None else first.shape)


GENERATED: dict[str, Callable[..., Any]] = {}
"""Layers of ops that no pack brings a layer for, by name, until packs change."""
on_change(GENERATED.clear)


def layer_of_any_op(name: str) -> Callable[..., Any] | None:
    """The layer of an op that no pack brings a layer for, from GENERATED; None when there is no such op."""
    op_type = name[:-1] if name.endswith("_") and iskeyword(name[:-1]) else name
    if name not in GENERATED and default_manager().has_op(op_type):
        GENERATED[name] = layer_of_op(op_type, name)
    return GENERATED.get(name)


def generated_layers(
    *op_types: str, stop_gradient: bool = False, **renamed: str | tuple[str, Mapping[str, str]]
) -> Callable[[str], Any]:
    """Make a module's `__getattr__` that generates layers on first use: `__getattr__ = generated_layers("relu")`.

    Args:
        op_types: Ops whose layers have their names.
        stop_gradient: Whether gradients stop at the outputs of the layers.
        renamed: Name of the layer = op type, or (op type, {slot or attribute: argument}).

    Returns:
        The function.
    """
    ops: dict[str, Any] = {t: t for t in op_types} | renamed
    layers: dict[str, Any] = {}

    def get(name: str) -> Any:
        if name not in ops:
            raise AttributeError(f"no layer {name!r} here; expected one of {', '.join(sorted(ops))}")
        if name not in layers:
            op_type, arguments = (ops[name], None) if isinstance(ops[name], str) else ops[name]
            layers[name] = layer_of_op(op_type, name, arguments, stop_gradient)
        return layers[name]

    get.names = tuple(sorted(ops))  # type: ignore[attr-defined]  # for the pack's manifest
    return get
