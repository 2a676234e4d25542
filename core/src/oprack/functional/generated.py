"""The functions of oprack.functional, made from OpProtos."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from typing import Any

from oprack.errors import UnknownOpError
from oprack.functional.op_function import OpFunction, forget, op_function
from oprack.functional.signature import documentation, signature
from oprack.interpreter.current import current_or_none
from oprack.interpreter.op_expr import attr_key
from oprack.op import param_name
from oprack.op.proto import SlotProto
from oprack.packs.changes import on_change

_GIVEN = object()
made: dict[str, Callable[..., Any]] = {}
"""Functions by op, until packs change."""


class UnknownFunctionError(UnknownOpError, AttributeError):
    """No installed pack brings the op of that name."""


def function(op_type: str) -> Callable[..., Any]:
    """The function of an op, made once. Raises UnknownFunctionError, and as `oprack.op_info`."""
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
    params = [s.param for s in op.slots]
    needed = [s for s in op.slots if not s.dispensable]
    many = [s for s in needed if s.duplicable]
    heads = [p if s in needed else f"{p}=None" for p, s in zip(params, op.slots, strict=True)]
    heads = [h for h in heads if "=" not in h] + [h for h in heads if "=" in h]
    name = param_name(op.type)
    values = f"({', '.join(params)}{',' if params else ''})"
    lines = [f"def {name}({', '.join([*heads, '*rest', '**attrs'])}):"]
    lines += [f"    if rest: op.refuse({values}, rest, attrs)", "    key = call = None"]
    if needed and len(many) <= 1:
        lines += _lookup(op, [s for s in op.slots if s not in needed])
    lines += [f"    return op({values}, attrs, key)"]
    source = "\n".join(lines) + "\n"
    filename = f"<oprack.functional.{op.type}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    names = {
        "mode": current_or_none,
        "table": op.table,
        "attr_key": attr_key,
        "given": _GIVEN,
        "op": op,
        "__name__": __name__,
    }
    exec(compile(source, filename, "exec"), names)
    found: Any = names[name]
    found.__module__ = "oprack.functional"
    found.__doc__ = documentation(op.proto)
    found.__signature__ = signature(op.proto)
    return found  # type: ignore[no-any-return]


def _lookup(op: OpFunction, optional: Sequence[SlotProto]) -> list[str]:
    """Lines that find the generated function by mode, metas and attributes, and call it.

    A duplicable input that may be absent, when it is given, goes the long way.
    """
    absent = " and ".join(f"{s.param} is None" for s in optional)
    metas, given, filled, present = [], [], [], []
    for s in op.slots:
        name = s.param
        if s.duplicable:
            metas.append(f"*[a._meta for a in {name}]") if s not in optional else None
            given.append(f"*{name}") if s not in optional else None
        elif s not in optional:
            metas.append(f"{name}._meta")
            given.append(name)
        if not (s.duplicable and s in optional):
            maybe = f"None if {name} is None else {name}._meta"
            filled.append(metas[-1] if s not in optional else maybe)
            present.append(given[-1] if s not in optional else name)
    key, full = f"mode(), {', '.join(metas)}", f"mode(), {', '.join(filled)}"
    lists = " and ".join(f"{s.param} is None" for s in optional if s.duplicable)
    lines = ["    try:"]
    if absent:
        lines += [f"        if {absent}:", f"            key = ({key}, *attr_key(attrs)) if attrs else ({key})"]
        lines += [f"        elif {lists}:" if lists else "        else:"]
        # optional inputs are told from attributes by the marker
        lines += [f"            key = ({full}, given, *attr_key(attrs)) if attrs else ({full}, given)"]
    else:
        lines += [f"        key = ({key}, *attr_key(attrs)) if attrs else ({key})"]
    lines += ["        call = table.get(key)", "    except (AttributeError, TypeError):", "        key = call = None"]
    lines += ["    if call is not None:"]
    if absent:
        lines += [f"        if {absent}:", f"            return call({', '.join(given)})"]
        lines += [f"        return call(*[a for a in ({', '.join(present)},) if a is not None])"]
    else:
        lines += [f"        return call({', '.join(given)})"]
    return lines
