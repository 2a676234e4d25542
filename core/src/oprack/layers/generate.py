"""Layers made from OpProtos, for ops that need no more than their slots and attributes (activations, say)."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from oprack.layers.checks import check_type, check_variable
from oprack.layers.helper import LayerHelper
from oprack.layers.variable import Variable
from oprack.op.proto import AttrProto, OpProto, SlotProto, param_name
from oprack.packs import op_info


def snake_case(slot: str) -> str:
    """How an argument for a slot is spelled: `X` -> x, `LabelLength` -> label_length."""
    return param_name(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", slot).lower())


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
    spelled = dict(arguments or {})
    inputs = {spelled.get(s.name, snake_case(s.name)): s for s in proto.inputs.values() if not s.extra}
    attrs = {spelled.get(a.name, a.param): a for a in proto.attrs.values() if not (a.extra or a.generated)}
    attrs = {argument: a for argument, a in attrs.items() if "mkldnn" not in argument and "cudnn" not in argument}
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
    layer.__doc__ = _doc(proto, inputs, attrs)
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


def _doc(proto: OpProto, inputs: dict[str, SlotProto], attrs: dict[str, AttrProto]) -> str:
    lines = [proto.doc, ""]
    lines += [f"{name}: {slot.doc}" for name, slot in inputs.items()]
    lines += [f"{name}: {attr.doc}" for name, attr in attrs.items()]
    outs = [f"{s.name}: {s.doc}" for s in proto.outputs.values() if not s.intermediate]
    return "\n".join([*lines, f"Returns {'; '.join(outs)}", f"Op {proto.type}."])


def generated_layers(
    *op_types: str, stop_gradient: bool = False, **renamed: str | tuple[str, Mapping[str, str]]
) -> Callable[[str], Any]:
    """A module's `__getattr__` that makes layers of ops on first use: `__getattr__ = generated_layers("relu")`.

    renamed: name of the layer = op type, or (op type, {slot or attribute: argument}). stop_gradient: of the outputs.
    """
    ops: dict[str, Any] = {t: t for t in op_types} | renamed
    made: dict[str, Any] = {}

    def get(name: str) -> Any:
        if name not in ops:
            raise AttributeError(f"no layer {name!r} here; expected one of {', '.join(sorted(ops))}")
        if name not in made:
            op_type, arguments = (ops[name], None) if isinstance(ops[name], str) else ops[name]
            made[name] = layer_of_op(op_type, name, arguments, stop_gradient)
        return made[name]

    return get
