"""Layers made from OpProtos, for ops that need no more than their slots and attributes (activations, say)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from keyword import iskeyword
from typing import Any

from oprack.layers.checks import check_type, check_variable
from oprack.layers.helper import LayerHelper
from oprack.layers.variable import Variable
from oprack.op.arguments import documentation, input_names, shown_attrs
from oprack.op.proto import AttrProto, OpProto, SlotProto
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

    It returns the outputs that are no intermediate ones: a Variable, a list for a duplicable output (whose number
    `num` says), a tuple of several. Runtime details among attributes are left out. name: of the function.
    arguments: slot or attribute -> how its argument is spelled. stop_gradient: of the outputs.
    Raises as `oprack.op_info`.
    """
    proto = op_info(op_type).proto
    spelled = {**input_names(proto), **(arguments or {})}
    inputs = {spelled[s.name]: s for s in proto.inputs.values() if not s.extra}
    attrs = {spelled.get(a.name, name): a for name, a in shown_attrs(proto).items()}
    parameters = list(_parameters(proto, inputs, attrs))
    signature = inspect.Signature(parameters)

    def layer(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as e:
            raise TypeError(f"{layer.__name__}{signature}: {e}") from None
        bound.apply_defaults()
        given = bound.arguments
        helper = LayerHelper(op_type, name=given.get("name"), act=given.get("act"))
        for argument, slot in inputs.items():
            value = given[argument]
            for v in value if slot.duplicable and isinstance(value, list | tuple) else [value]:
                if v is not None or not slot.dispensable:
                    check_variable(v, argument, layer.__name__)
        if "num" in signature.parameters:
            check_type(given["num"], "num", layer.__name__, int)
        found = helper.apply(
            op_type,
            {slot.name: given[argument] for argument, slot in inputs.items()},
            {a.name: given[argument] for argument, a in attrs.items()},
            num=given.get("num", 1),
            stop_gradient=stop_gradient,
        )
        return helper.append_activation(found) if isinstance(found, Variable) else found

    layer.__name__ = layer.__qualname__ = name or op_type
    layer.__doc__ = documentation(proto, arguments)
    layer.__signature__ = signature  # type: ignore[attr-defined]
    return layer


def _parameters(
    proto: OpProto, inputs: dict[str, SlotProto], attrs: dict[str, AttrProto]
) -> Iterator[inspect.Parameter]:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    needed = [n for n, s in inputs.items() if not s.dispensable]
    required = [n for n, a in attrs.items() if a.required]
    for name in (*needed, *required):
        yield inspect.Parameter(name, kind)
    if any(s.duplicable for s in proto.outputs.values()):
        yield inspect.Parameter("num", kind)
    for name in inputs:
        if name not in needed:
            yield inspect.Parameter(name, kind, default=None)
    for name, attr in attrs.items():
        if name not in required:
            yield inspect.Parameter(name, kind, default=attr.default)
    for name in ("act", "name"):
        if name not in attrs and name not in inputs:
            yield inspect.Parameter(name, kind, default=None)


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

    renamed: name of the layer = op type, or (op type, {slot or attribute: argument}). stop_gradient: of the outputs.
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
