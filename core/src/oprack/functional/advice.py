"""What to write instead, when a call of an op has a value where a tensor belongs."""

from __future__ import annotations

import numbers
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from oprack.errors import InvalidArgumentError
from oprack.op import OpProto
from oprack.op.arguments import input_names, shown_attrs
from oprack.op.proto import AttrProto, SlotProto
from oprack.types import AttrType, dtype_name

_INTEGERS = {AttrType.INT, AttrType.LONG}
_FLOATS = {AttrType.FLOAT, AttrType.FLOAT64}
_LISTS = {
    AttrType.INTS: _INTEGERS,
    AttrType.LONGS: _INTEGERS,
    AttrType.FLOATS: _FLOATS,
    AttrType.FLOAT64S: _FLOATS,
    AttrType.STRINGS: {AttrType.STRING},
    AttrType.BOOLEANS: {AttrType.BOOLEAN},
}


def no_tensor(proto: OpProto, slot: SlotProto, value: Any, given: Sequence[Any], named: Mapping[str, Any]) -> Exception:
    """An error for a value in an input slot. given: all inputs in slot order; named: the attributes of the call."""
    name = input_names(proto)[slot.name]
    problem = f"op {proto.type}: {name} is {shown(value)} ({type(value).__name__}); expected a tensor or an array"
    odd = [(s, v) for s, v in zip(proto.inputs.values(), given, strict=True) if _is_plain(v)]
    if slot.dispensable:
        advice = _as_attributes(proto, [(s, v) for s, v in odd if s.dispensable], given, named)
        if advice:
            return InvalidArgumentError(f"{problem}; attributes go by keyword: {advice}")
    if isinstance(value, str) or not _is_plain(value):
        return InvalidArgumentError(problem)
    dtype = next((v.dtype for v in given if isinstance(getattr(v, "dtype", None), str)), None)
    beside = f", {dtype!r}" if dtype and isinstance(value, numbers.Number) else ""
    return InvalidArgumentError(f"{problem}; oprack.to_tensor({shown(value)}{beside}) makes one")


def too_many(proto: OpProto, given: Sequence[Any], rest: Sequence[Any], named: Mapping[str, Any]) -> Exception:
    """An error for positional values after all inputs."""
    problem = (
        f"op {proto.type} takes {len(given)} input{'s' if len(given) != 1 else ''}, "
        f"{', '.join(input_names(proto).values()) or 'none'}; got {', '.join(map(shown, rest))} besides"
    )
    odd = [(s, v) for s, v in zip(proto.inputs.values(), given, strict=True) if _is_plain(v) and s.dispensable]
    advice = _as_attributes(proto, [*odd, *((None, v) for v in rest)], given, named)
    return InvalidArgumentError(f"{problem}; attributes go by keyword{': ' + advice if advice else ''}")


def _is_plain(value: Any) -> bool:
    """Whether it is something that an attribute may be."""
    if isinstance(value, list | tuple):
        return bool(value) and all(map(_is_plain, value))
    return isinstance(value, str | numbers.Number) and not hasattr(value, "__array_interface__")


def _as_attributes(
    proto: OpProto,
    values: Sequence[tuple[SlotProto | None, Any]],
    given: Sequence[Any],
    named: Mapping[str, Any],
) -> str:
    """The call with these values as attributes; "" when one of them suits none."""
    free = [a for name, a in shown_attrs(proto).items() if name not in named]
    names = input_names(proto).values()
    texts = [name for name, v in zip(names, given, strict=True) if v is not None and not _is_plain(v)]
    for slot, value in values:
        attr = _suiting(free, slot, value)
        if attr is None:
            return ""
        free.remove(attr)
        listed = attr.type in _LISTS and not isinstance(value, list | tuple)
        texts.append(f"{attr.param}={shown([value] if listed else value)}")
    texts += [f"{name}={shown(value)}" for name, value in named.items()]
    texts += [f"{a.param}=..." for a in free if a.required]
    return f"{proto.type}({', '.join(texts)})"


def _suiting(attrs: Collection[AttrProto], slot: SlotProto | None, value: Any) -> AttrProto | None:
    """The attribute that a value was meant for: that of the slot's name, or the first of its type."""
    suiting = [a for a in attrs if _suits(a, value)]
    wanted = _plain_name(slot.name) if slot is not None else ""
    return next((a for a in suiting if _plain_name(a.name) == wanted), suiting[0] if suiting else None)


def _plain_name(name: str) -> str:
    """RepeatTimes, repeat_times; AxisTensor, axis; FactorTensor, factor; OutShape, shape."""
    return name.lower().replace("_", "").removesuffix("list").removesuffix("tensor")


def _suits(attr: AttrProto, value: Any) -> bool:
    items = list(value) if isinstance(value, list | tuple) else [value]
    if attr.type in _LISTS:
        return all(_is_of(_LISTS[attr.type], v) for v in items)
    if isinstance(value, list | tuple):
        return False
    if isinstance(value, str) and attr.type in _INTEGERS and attr.name.endswith("dtype"):
        return _is_dtype(value)
    return _is_of({attr.type}, value)


def _is_of(types: Collection[AttrType], value: Any) -> bool:
    if isinstance(value, bool):
        return AttrType.BOOLEAN in types
    if isinstance(value, str):
        return AttrType.STRING in types
    if isinstance(value, numbers.Integral):
        return bool((_INTEGERS | _FLOATS) & set(types))
    return isinstance(value, numbers.Real) and bool(_FLOATS & set(types))


def _is_dtype(text: str) -> bool:
    try:
        dtype_name(text)
    except InvalidArgumentError:
        return False
    return True


def shown(value: Any) -> str:
    """A value for a message, in a few words."""
    if hasattr(value, "describe"):
        return str(value.describe())
    if hasattr(value, "__array_interface__"):
        return f"{value.dtype}{list(value.shape)}"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
