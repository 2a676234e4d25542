"""Layers made from OpProtos, for ops that need no more than their slots and attributes (activations, say)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from keyword import iskeyword
from typing import Any

from oprack.layers.append import errors_at_user_line
from oprack.layers.helper import LayerHelper
from oprack.layers.variable import Variable, check_type, check_variable
from oprack.op.proto import OpProto
from oprack.op.signature import layer_signature, outputs_along_axis, told_outputs
from oprack.packs import op_info
from oprack.packs.changes import on_change
from oprack.packs.manager import default_manager


def layer_of_op(
    op_type: str,
    name: str | None = None,
    arguments: Mapping[str, str] | None = None,
    stop_gradient: bool = False,
) -> Callable[..., Any]:
    """A layer that appends one op: arguments are its inputs in slot order, then attributes, `act` and `name`.

    It returns the outputs that are no intermediate ones: a Variable, a list for a duplicable output, a tuple of
    several. Runtime details among attributes are left out.

    Args:
        op_type: The op.
        name: The name of the function; default: the op's type.
        arguments: Slot or attribute -> how its argument is spelled.
        stop_gradient: Of the outputs.

    Returns:
        The function.

    Raises:
        UnknownOpError: There is no such op; otherwise as `oprack.op_info`.
    """
    described = layer_signature(op_info(op_type).proto, name, arguments)
    proto, inputs, attrs, signature = described.proto, described.slots, described.attrs, described.inspected()

    def layer(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as e:
            raise TypeError(f"{described}: {e}") from None
        bound.apply_defaults()
        given = bound.arguments
        helper = LayerHelper(op_type, name=given.get("name"), act=given.get("act"))
        for argument, slot in inputs.items():
            value = given[argument]
            for v in value if slot.duplicable and isinstance(value, list | tuple) else [value]:
                if v is not None or not slot.dispensable:
                    check_variable(v, argument, layer.__name__)
        tensors = {slot.name: given[argument] for argument, slot in inputs.items()}
        values = {a.name: given[argument] for argument, a in attrs.items()}
        found = helper.apply(
            op_type,
            tensors,
            values,
            num=_number(proto, given["num_outputs"], tensors, values, layer.__name__) if "num_outputs" in given else 1,
            stop_gradient=stop_gradient,
        )
        return helper.append_activation(found) if isinstance(found, Variable) else found

    described.describe(layer, "oprack.layers")
    return layer


def _number(proto: OpProto, asked: Any, tensors: Mapping[str, Any], attrs: Mapping[str, Any], layer: str) -> int:
    """How many Variables a duplicable output gets."""
    if asked is not None:
        check_type(asked, "num_outputs", layer, int)
        return int(asked)
    lists = {slot: v if isinstance(v, list | tuple) else [v] for slot, v in tensors.items() if v is not None}
    told = told_outputs(proto, attrs, {slot: len(v) for slot, v in lists.items()})
    if told is not None:
        return told
    first = next((v[0] for v in lists.values() if v), None)
    with errors_at_user_line():
        return outputs_along_axis(proto, attrs, None if first is None else first.shape)


made: dict[str, Callable[..., Any]] = {}
"""Layers of ops that no pack brings a layer for, by name, until packs change."""
on_change(made.clear)


def layer_of_any_op(name: str) -> Callable[..., Any] | None:
    """The layer of an op that no pack brings a layer for, kept in `made`; None when there is no such op."""
    op_type = name[:-1] if name.endswith("_") and iskeyword(name[:-1]) else name
    if name not in made and default_manager().has_op(op_type):
        made[name] = layer_of_op(op_type, name)
    return made.get(name)


def generated_layers(
    *op_types: str, stop_gradient: bool = False, **renamed: str | tuple[str, Mapping[str, str]]
) -> Callable[[str], Any]:
    """A module's `__getattr__` that makes layers of ops on first use: `__getattr__ = generated_layers("relu")`.

    Args:
        op_types: Ops whose layers have their names.
        stop_gradient: Of the outputs.
        renamed: Name of the layer = op type, or (op type, {slot or attribute: argument}).

    Returns:
        The function.
    """
    ops: dict[str, Any] = {t: t for t in op_types} | renamed
    found: dict[str, Any] = {}

    def get(name: str) -> Any:
        if name not in ops:
            raise AttributeError(f"no layer {name!r} here; expected one of {', '.join(sorted(ops))}")
        if name not in found:
            op_type, arguments = (ops[name], None) if isinstance(ops[name], str) else ops[name]
            found[name] = layer_of_op(op_type, name, arguments, stop_gradient)
        return found[name]

    get.names = tuple(sorted(ops))  # type: ignore[attr-defined]  # for the pack's manifest
    return get
