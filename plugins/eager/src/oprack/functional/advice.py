"""What to write instead, when a call of an op has a value where a tensor belongs."""

from __future__ import annotations

import math
import numbers
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise, product
from typing import Any

from oprack.errors import InvalidArgumentError
from oprack.functional.trial import call_fits
from oprack.op.proto import AttrProto, SlotProto
from oprack.op.signature import OpSignature
from oprack.packs.manager import default_manager
from oprack.types import AttrType, VarType, dtype_name

_COMBINATIONS, _TRIALS, _LONGEST = 4096, 32, 240

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


def no_tensor(
    signature: OpSignature,
    slot: SlotProto,
    value: Any,
    given: Sequence[Any],
    named: Mapping[str, Any],
    *,
    one_dtype: bool,
) -> Exception:
    """An error for a value in an input slot.

    Args:
        signature: How the op is called.
        slot: The slot.
        value: What it got.
        given: All inputs, in slot order.
        named: The attributes of the call, by how they are spelled.
        one_dtype: Whether all inputs of the op have one dtype.

    Returns:
        The error, which says what to write instead.
    """
    proto, name = signature.proto, next(n for n, s in signature.slots.items() if s is slot)
    problem = f"op {proto.type}: {name} is {shown(value)} ({type(value).__name__}); expected a tensor or an array"
    problem += _beside(signature)
    if slot.dispensable:
        values = _meant_as_attributes(signature, given)
        if all(_fitting(signature.attrs.values(), v) for _, v in values):
            by_keyword = _by_keyword(signature, values, given, named)
            return InvalidArgumentError(f"{problem}; {by_keyword}")
    if isinstance(value, str) or not _is_plain(value):
        return InvalidArgumentError(problem)
    dtype = next((v.dtype for v in given if isinstance(getattr(v, "dtype", None), str)), None)
    alike = one_dtype or isinstance(value, float)  # an integer beside floats may be an index
    beside = f", {dtype!r}" if dtype and alike and isinstance(value, numbers.Number) else ""
    return InvalidArgumentError(f"{problem}; oprack.to_tensor({_source(value) or name}{beside}) makes one")


def too_many(signature: OpSignature, given: Sequence[Any], rest: Sequence[Any], named: Mapping[str, Any]) -> Exception:
    """An error for positional values after all inputs.

    Args:
        signature: How the op is called.
        given: All inputs, in slot order.
        rest: The values after them.
        named: The attributes of the call, by how they are spelled.

    Returns:
        The error, which says what to write instead.
    """
    problem = (
        f"op {signature.proto.type} takes {len(given)} input{'s' if len(given) != 1 else ''}, "
        f"{', '.join(signature.slots) or 'none'}; got {', '.join(map(shown, rest))} besides{_beside(signature)}"
    )
    values = [*_meant_as_attributes(signature, given), *((None, v) for v in rest)]
    return InvalidArgumentError(f"{problem}; {_by_keyword(signature, values, given, named)}")


def _beside(signature: OpSignature) -> str:
    """The function that a pack writes under the op's name, which may be called in the way that was tried."""
    if not default_manager().has_layer("functional", signature.name):
        return ""
    return f"; oprack.nn.functional.{signature.name} takes arguments as Paddle 2 has them"


def _is_plain(value: Any) -> bool:
    """Whether it is something that an attribute may be."""
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return isinstance(value, str | numbers.Number) and not hasattr(value, "__array_interface__")


def _meant_as_attributes(signature: OpSignature, given: Sequence[Any]) -> list[tuple[SlotProto | None, Any]]:
    """Slots that may be absent and hold numbers or text; [] is a list of no tensors where a slot holds several."""
    slots = signature.proto.inputs.values()
    pairs = [(s, v) for s, v in zip(slots, given, strict=True) if s.dispensable and _is_plain(v)]
    return [(s, v) for s, v in pairs if not (s.duplicable and isinstance(v, list | tuple) and not v)]


def _by_keyword(
    signature: OpSignature,
    values: Sequence[tuple[SlotProto | None, Any]],
    given: Sequence[Any],
    named: Mapping[str, Any],
) -> str:
    """The likeliest call with these values as attributes that the op's rules take; else how it is called at all."""
    tensors = {
        name: value
        for (name, _), value in zip(_in_slot_order(signature), given, strict=True)
        if value is not None and not _is_plain(value)
    }
    filled = _known_dtypes(signature, tensors, named)
    for attrs in islice(_assignments(signature, values, named), _TRIALS):
        attrs = {**attrs, **named, **{n: v for n, v in filled.items() if n not in attrs}}
        if all(n in attrs for n, a in signature.attrs.items() if a.required) and call_fits(signature, tensors, attrs):
            return f"attributes go by keyword: {_written(signature, tensors, attrs)}"
    return f"attributes go by keyword: {signature}" if signature.attrs else "the op has no attributes"


def _in_slot_order(signature: OpSignature) -> list[tuple[str, SlotProto]]:
    by_slot = {slot.name: (name, slot) for name, slot in signature.slots.items()}
    return [by_slot[slot] for slot in signature.proto.inputs]


def _known_dtypes(signature: OpSignature, tensors: Mapping[str, Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes that every call has to give and that repeat the dtype of the first tensor."""
    dtype = next((v.dtype for v in tensors.values() if isinstance(getattr(v, "dtype", None), str)), None)
    wanted = [n for n, a in signature.attrs.items() if a.required and a.name == "in_dtype" and n not in named]
    return dict.fromkeys(wanted, dtype) if dtype else {}


def _assignments(
    signature: OpSignature, values: Sequence[tuple[SlotProto | None, Any]], named: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Attributes that the values may have been meant for, the likeliest first: those of a value's own type, then all
    that are named as the slots in which the values were, then those in the order in which the op declares them.
    """
    free = [(name, attr) for name, attr in signature.attrs.items() if name not in named]
    places = {name: i for i, (name, _) in enumerate(free)}
    ranked = []
    for names in islice(product(*([n for n, a in free if _suits(a, v)] for _, v in values)), _COMBINATIONS):
        if len(set(names)) == len(names):
            pairs = list(zip(names, values, strict=True))
            lists = [_wants_list(signature.attrs[n], v) for n, (_, v) in pairs]
            assigned = {n: [v] if one else v for one, (n, (_, v)) in zip(lists, pairs, strict=True)}
            ranked.append(((sum(lists), *_strangeness(pairs, places)), assigned))
    yield from (found for _, found in sorted(ranked, key=lambda item: item[0]))


def _wants_list(attr: AttrProto, value: Any) -> bool:
    """Whether an attribute is a list and a value is one element of it."""
    return attr.type in _LISTS and not isinstance(value, list | tuple)


def _strangeness(
    pairs: Sequence[tuple[str, tuple[SlotProto | None, Any]]], places: Mapping[str, int]
) -> tuple[bool, int, int, list[int]]:
    """How unlikely it is that these attributes were meant: by other names than the slots', and in another order."""
    names = [name for name, _ in pairs]
    others = [n for n, (slot, _) in pairs if slot is not None and _plain_name(slot.name) != _plain_name(n)]
    swaps = sum(places[a] > places[b] for a, b in pairwise(names))
    return bool(others), swaps, len(others), [places[n] for n in names]


def _written(signature: OpSignature, tensors: Mapping[str, Any], attrs: Mapping[str, Any]) -> str:
    """A call as source; tensors, and values that are too long to read, are written as the names of their parameters."""
    texts, gap = [], False
    for name in signature.slots:
        if name in tensors:
            texts.append(f"{name}={name}" if gap else name)
        gap = gap or name not in tensors
    return f"{signature.name}({', '.join([*texts, *(f'{n}={_source(v) or n}' for n, v in attrs.items())])})"


def _fitting(attrs: Iterable[AttrProto], value: Any) -> bool:
    return any(_suits(attr, value) for attr in attrs)


def _plain_name(name: str) -> str:
    """RepeatTimes, repeat_times; AxisTensor, axis; FactorTensor, factor; OutShape, shape."""
    return name.lower().replace("_", "").removesuffix("list").removesuffix("tensor")


def _suits(attr: AttrProto, value: Any) -> bool:
    items = list(value) if isinstance(value, list | tuple) else [value]
    if attr.type in _LISTS:
        return all(_is_of(_LISTS[attr.type], v) for v in items)
    if isinstance(value, list | tuple):
        return False
    if attr.type in _INTEGERS and attr.name.endswith("dtype"):  # a plain number was hardly meant for a dtype
        return isinstance(value, VarType) or (isinstance(value, str) and _is_dtype(value))
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


def _source(value: Any) -> str:
    """A value as Python writes it, "" when it is too long to read."""
    if isinstance(value, list | tuple):
        items = list(map(_source, value)) if len(value) < _LONGEST else [""]
        text = f"[{', '.join(items)}]" if all(items) else ""
    elif isinstance(value, float) and not math.isfinite(value):
        text = f"float({str(value)!r})"
    else:
        text = repr(value.item() if hasattr(value, "item") else value)
    return text if len(text) <= _LONGEST else ""


def shown(value: Any) -> str:
    """A value for a message, in a few words."""
    if hasattr(value, "describe"):
        return str(value.describe())
    if hasattr(value, "__array_interface__"):
        return f"{value.dtype}{list(value.shape)}"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
