"""The functions of oprack.functional, made from OpProtos."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from oprack.eager_tensor import Tensor
from oprack.errors import UnknownOpError
from oprack.functional.op_function import OpFunction, forget, op_function
from oprack.interpreter.current import current_or_none
from oprack.interpreter.op_expr import attr_key
from oprack.op.proto import SlotProto
from oprack.packs.changes import on_change
from oprack.runtime.plan.codegen import generated_function

_GIVEN = object()
made: dict[str, Callable[..., Any]] = {}
"""Functions by op, until packs change."""


class UnknownFunctionError(UnknownOpError, AttributeError):
    """No installed pack brings the op of that name."""


def function(op_type: str) -> Callable[..., Any]:
    """The function of an op, made once.

    Args:
        op_type: The op.

    Returns:
        The function.

    Raises:
        UnknownFunctionError: No installed pack brings the op; otherwise as `oprack.op_info`.
    """
    found = made.get(op_type)
    if found is None:
        try:
            op = op_function(op_type)
        except UnknownOpError as error:
            raise UnknownFunctionError(*error.args) from error.__cause__
        found = made[op_type] = _make(op)
    return found


def _forget() -> None:
    forget()
    made.clear()


on_change(_forget)


def _make(op: OpFunction) -> Callable[..., Any]:
    """Python code for one op: it looks for the generated function of its arguments' metas, and only then for more."""
    names = op.names
    needed = [s for s in op.slots if not s.dispensable]
    optional = [s for s in op.slots if s.dispensable]
    many = [s for s in needed if s.duplicable]
    # None of an input that has to be there is found by what comes after the look-up
    heads = [f"{names[s.name]}=None" for s in (*needed, *optional)]
    function_name = op.signature.name
    values = f"({''.join(f'{names[s.name]}, ' for s in op.slots)})"
    lines = [f"def {function_name}({', '.join([*heads, '*_rest', '**_attrs'])}):"]
    lines += [f"    if _rest: return _op.with_rest({values}, _rest, _attrs)", "    _key = _call = None"]
    if needed and len(many) <= 1:
        lines += _lookup(op, optional)
    lines += [f"    return _op({values}, _attrs, _key)"]
    source = "\n".join(lines) + "\n"
    known = {  # inputs have no names like these
        "_mode": current_or_none,
        "_table": op.table,
        "_attr_key": attr_key,
        "_given": _GIVEN,
        "_op": op,
        "_Tensor": Tensor,
        "__name__": __name__,
    }
    found = generated_function(source, function_name, f"oprack.functional.{op.type}", known)
    op.signature.describe(found, "oprack.functional")
    return found


def _lookup(op: OpFunction, optional: Sequence[SlotProto]) -> list[str]:
    """Lines that find the generated function by mode, metas and attributes, and call it.

    A duplicable input that may be absent, when it is given, goes the long way.
    """
    absent = _all_absent(op, optional)
    needed = [s for s in op.slots if s not in optional]
    one_by_one = [s for s in op.slots if s in needed or not s.duplicable]
    metas, given = [_metas(op, s) for s in needed], [_passed(op, s) for s in needed]
    filled = [_metas(op, s, maybe=s in optional) for s in one_by_one]
    present = [_passed(op, s) for s in one_by_one]
    many = [op.names[s.name] for s in needed if s.duplicable]
    key, full = f"_mode(), {', '.join(metas)}", f"_mode(), {', '.join(filled)}"
    lists = _all_absent(op, [s for s in optional if s.duplicable])
    # A tensor by itself is a list of one, as in the long way; its rows are none.
    lines = [f"    if {n}.__class__ is not list and isinstance({n}, _Tensor): {n} = [{n}]" for n in many]
    lines += ["    try:"]
    if absent:
        lines += [f"        if {absent}:", f"            _key = ({key}, *_attr_key(_attrs)) if _attrs else ({key})"]
        lines += [f"        elif {lists}:" if lists else "        else:"]
        # optional inputs are told from attributes by the marker
        lines += [f"            _key = ({full}, _given, *_attr_key(_attrs)) if _attrs else ({full}, _given)"]
    else:
        lines += [f"        _key = ({key}, *_attr_key(_attrs)) if _attrs else ({key})"]
    lines += [
        "        _call = _table[_key]",
        "    except (AttributeError, TypeError):",
        "        _key = _call = None",
    ]
    lines += ["    if _call is not None:"]
    if absent:
        lines += [f"        if {absent}:", f"            return _call({', '.join(given)})"]
        lines += [f"        return _call(*[a for a in ({', '.join(present)},) if a is not None])"]
        return lines
    return [*lines, f"        return _call({', '.join(given)})"]


def _all_absent(op: OpFunction, slots: Sequence[SlotProto]) -> str:
    """Text of the test that none of these is passed; "" when there are none."""
    return " and ".join(f"{op.names[s.name]} is None" for s in slots)


def _metas(op: OpFunction, slot: SlotProto, maybe: bool = False) -> str:
    """Text of the metas of a slot's arguments. maybe: it may be None."""
    name = op.names[slot.name]
    if slot.duplicable:
        return f"*[a._meta for a in {name}]"
    return f"None if {name} is None else {name}._meta" if maybe else f"{name}._meta"


def _passed(op: OpFunction, slot: SlotProto) -> str:
    return f"*{op.names[slot.name]}" if slot.duplicable else op.names[slot.name]
