"""Python values of attributes and their types on the wire."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

from oprack.errors import AttributeValueError
from oprack.types import AttrType

_LISTS = {
    AttrType.INTS: AttrType.INT,
    AttrType.FLOATS: AttrType.FLOAT,
    AttrType.STRINGS: AttrType.STRING,
    AttrType.BOOLEANS: AttrType.BOOLEAN,
    AttrType.LONGS: AttrType.LONG,
    AttrType.FLOAT64S: AttrType.FLOAT64,
    AttrType.BLOCKS: AttrType.BLOCK,
    AttrType.VARS: AttrType.VAR,
    AttrType.SCALARS: AttrType.SCALAR,
}
_LIST_OF = {one: many for many, one in _LISTS.items()}


def _is_int(value: Any) -> bool:
    return type(value) is int or (isinstance(value, numbers.Integral) and not isinstance(value, bool))


def _fits(value: Any, bits: int) -> bool:
    return _is_int(value) and -(1 << (bits - 1)) <= value < 1 << (bits - 1)


def _is_bool(value: Any) -> bool:
    # numpy.bool_ is no numbers.Number, and this module does not import NumPy
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")


def _is_real(value: Any) -> bool:
    return type(value) is float or (isinstance(value, numbers.Real) and not _is_bool(value))


def _scalar(value: Any) -> bool | int | float | complex:
    for test, convert in ((_is_bool, bool), (_is_int, int), (_is_real, float)):
        if test(value):
            return convert(value)
    return complex(value)


# (what the value must be, in words; the test; the conversion), for one element
_RULES: dict[AttrType, tuple[str, Callable[[Any], bool], Callable[[Any], Any]]] = {
    AttrType.INT: ("an int of 32 bits", lambda v: _fits(v, 32), int),
    AttrType.LONG: ("an int of 64 bits", lambda v: _fits(v, 64), int),
    AttrType.FLOAT: ("a float", _is_real, float),
    AttrType.FLOAT64: ("a float", _is_real, float),
    AttrType.STRING: ("a str", lambda v: isinstance(v, str), str),
    AttrType.BOOLEAN: ("a bool", _is_bool, bool),
    AttrType.BLOCK: ("the index of a block, or a BlockDesc", lambda v: _fits(v, 32), int),
    AttrType.VAR: ("a variable's name", lambda v: isinstance(v, str), str),
    AttrType.SCALAR: ("a bool, int of 64 bits, float or complex", lambda v: _is_scalar(v), _scalar),
}


def _is_scalar(value: Any) -> bool:
    return _fits(value, 64) or (not _is_int(value) and (_is_bool(value) or isinstance(value, numbers.Complex)))


def attr_type_of(value: Any) -> AttrType:
    """The AttrType that a Python value stands for: float is FLOAT, an int is INT where 32 bits are enough, else LONG.

    Raises:
        AttributeValueError: When there is none or (an empty list) when it can't be told.
    """
    if _is_block(value):
        return AttrType.BLOCK
    if isinstance(value, list | tuple):
        kinds = {attr_type_of(v) for v in value}
        if kinds == {AttrType.INT, AttrType.LONG}:
            kinds = {AttrType.LONG}
        elif kinds in ({AttrType.INT, AttrType.FLOAT}, {AttrType.LONG, AttrType.FLOAT}):
            kinds = {AttrType.FLOAT}
        if len(kinds) == 1 and (kind := kinds.pop()) in _LIST_OF:
            return _LIST_OF[kind]
        raise AttributeValueError(
            f"the attribute type of {value!r} can't be told; pass it, for example type=AttrType.INTS for an empty list"
        )
    for kind in (AttrType.BOOLEAN, AttrType.INT, AttrType.LONG, AttrType.FLOAT, AttrType.STRING, AttrType.SCALAR):
        if _RULES[kind][1](value) and not (kind is AttrType.FLOAT and _is_int(value)):
            return kind
    raise AttributeValueError(
        f"{value!r} ({type(value).__name__}) can't be an attribute; expected bool, int of 64 bits, float, complex, "
        "str, a BlockDesc, or a list of one of these"
    )


def _is_block(value: Any) -> bool:
    return hasattr(value, "parent_idx") and hasattr(value, "idx")


_PLAIN: dict[AttrType, type] = {
    AttrType.FLOAT: float,
    AttrType.FLOAT64: float,
    AttrType.STRING: str,
    AttrType.BOOLEAN: bool,
    AttrType.VAR: str,
}
"""Python types of which every value is one of the attribute's type."""


def converted(value: Any, kind: AttrType) -> Any:
    """`value` as the Python value of an attribute of type `kind`; a BlockDesc becomes its index.

    Raises:
        AttributeValueError: The message says what was expected.
    """
    element = _LISTS.get(kind)
    if element is None:
        if type(value) is _PLAIN.get(kind) or (kind is AttrType.INT and type(value) is int and _fits(value, 32)):
            return value
    elif type(value) is list and set(map(type, value)) == {_PLAIN.get(element)}:
        return value.copy()
    words, test, convert = _RULES[kind if element is None else element]
    if element is None:
        value = value.idx if _is_block(value) else value
        if test(value):
            return convert(value)
        raise AttributeValueError(f"{value!r} can't be an attribute of type {kind.name}; expected {words}")
    if isinstance(value, list | tuple):
        items = [v.idx if _is_block(v) else v for v in value]
        if all(test(v) for v in items):
            return [convert(v) for v in items]
    raise AttributeValueError(f"{value!r} can't be an attribute of type {kind.name}; expected a list, each {words}")
