"""Values of attributes: which ones each AttrType takes, and which type a Python value stands for."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any, NamedTuple

from oprack.errors import AttributeValueError
from oprack.types import AttrType


def convert(value: Any, kind: AttrType) -> Any:
    """As `convert_or_none`, but raise where that returns None.

    Args:
        value: The value.
        kind: The type of the attribute.

    Returns:
        The value in Python's own types.

    Raises:
        AttributeValueError: It is no value of that type; the message says what was expected.
    """
    converted = convert_or_none(value, kind)
    if converted is None:
        raise AttributeValueError(f"{value!r} can't be an attribute of type {kind.name}; expected {RULES[kind].words}")
    return converted


def convert_or_none(value: Any, kind: AttrType) -> Any:
    """Convert a value to the form in which an attribute of some type holds it.

    Args:
        value: A BlockDesc stands for its index, 0 and 1 stand for bools, and a tuple for a list.
        kind: The type of the attribute.

    Returns:
        The value in Python's own types, a new list for a list; None when it is no value of that type.
    """
    _, test, convert_one, is_list, exact_type = RULES[kind]
    if not is_list:
        if type(value) is exact_type or (type(value) is int and kind in _INTS and -(2**31) <= value < 2**31):
            return value
        return convert_one(value) if test(value) else None
    types = set(map(type, value)) if type(value) is list else None
    if types == {exact_type} or (types == {int} and kind in _INTS and -(2**31) <= min(value) <= max(value) < 2**31):
        return value.copy()
    return list(map(convert_one, value)) if isinstance(value, list | tuple) and all(map(test, value)) else None


def attr_type_of(value: Any) -> AttrType:
    """Choose the AttrType for a Python value: FLOAT for a float, INT for an int of 32 bits, LONG for a longer one.

    Raises:
        AttributeValueError: No type fits, or the value is an empty list, which fits several.
    """
    if type(value) in _TYPES:
        return _TYPES[type(value)]
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
    if _is_bool(value):
        return AttrType.BOOLEAN
    for kind in (AttrType.INT, AttrType.LONG, AttrType.FLOAT, AttrType.STRING, AttrType.SCALAR):
        if RULES[kind].test(value) and not (kind is AttrType.FLOAT and _is_int(value)):
            return kind
    raise AttributeValueError(
        f"{value!r} ({type(value).__name__}) can't be an attribute; expected bool, int of 64 bits, float, complex, "
        "str, a BlockDesc, or a list of one of these"
    )


class Rule(NamedTuple):
    """Which values an attribute of one type may have.

    Attributes:
        words: What a value must be, for messages.
        test: Whether a value, or an element of a list, is valid.
        convert_one: Converts a valid value, or element, to Python's own types.
        is_list: Whether values are lists.
        exact_type: A Python type all of whose values are valid and need no conversion; None where there is none.
    """

    words: str
    test: Callable[[Any], bool]
    convert_one: Callable[[Any], Any]
    is_list: bool = False
    exact_type: type | None = None


# Each test asks for Python's own type first: asking an abstract class takes ten times as long, and loading a model asks
# thousands of times.
def _is_int(value: Any) -> bool:
    return type(value) is int or (isinstance(value, numbers.Integral) and not isinstance(value, bool))


def _is_int32(value: Any) -> bool:
    return (type(value) is int or _is_int(value)) and -(2**31) <= value < 2**31


def _is_int64(value: Any) -> bool:
    return (type(value) is int or _is_int(value)) and -(2**63) <= value < 2**63


def _is_bool(value: Any) -> bool:
    # numpy.bool_ is no numbers.Number, and this module does not import NumPy
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")


def _is_real(value: Any) -> bool:
    return type(value) is float or (isinstance(value, numbers.Real) and not _is_bool(value))


def _scalar(value: Any) -> bool | int | float | complex:
    for test, python_type in ((_is_bool, bool), (_is_int, int), (_is_real, float)):
        if test(value):
            return python_type(value)
    return complex(value)


def _is_scalar(value: Any) -> bool:
    return _is_int64(value) or (not _is_int(value) and (_is_bool(value) or isinstance(value, numbers.Complex)))


def _is_str(value: Any) -> bool:
    return isinstance(value, str)


def _is_bool_or_bit(value: Any) -> bool:
    return _is_bool(value) or (isinstance(value, numbers.Complex) and value in (0, 1))


def _is_block(value: Any) -> bool:
    return hasattr(value, "parent_idx") and hasattr(value, "idx")


def _is_index(value: Any) -> bool:
    return _is_int32(value) or _is_block(value)


def _index(value: Any) -> int:
    return int(value.idx if _is_block(value) else value)


# Each row: type of one value, type of a list of them, one and several in words, then Rule's last fields but is_list
_KINDS: tuple[tuple[AttrType, AttrType, str, str, Callable[[Any], bool], Callable[[Any], Any], type | None], ...] = (
    (AttrType.BOOLEAN, AttrType.BOOLEANS, "a bool", "bools", _is_bool_or_bit, bool, bool),
    (AttrType.INT, AttrType.INTS, "an int of 32 bits", "ints of 32 bits", _is_int32, int, None),
    (AttrType.LONG, AttrType.LONGS, "an int of 64 bits", "ints of 64 bits", _is_int64, int, None),
    (AttrType.FLOAT, AttrType.FLOATS, "a float", "floats", _is_real, float, float),
    (AttrType.FLOAT64, AttrType.FLOAT64S, "a float", "floats", _is_real, float, float),
    (AttrType.STRING, AttrType.STRINGS, "a str", "str", _is_str, str, str),
    (AttrType.BLOCK, AttrType.BLOCKS, "a block or its index", "blocks or their indices", _is_index, _index, None),
    (AttrType.VAR, AttrType.VARS, "a variable's name", "names of variables", _is_str, str, str),
    (
        AttrType.SCALAR,
        AttrType.SCALARS,
        "a bool, int of 64 bits, float or complex",
        "bools, ints of 64 bits, floats or complex numbers",
        _is_scalar,
        _scalar,
        None,
    ),
)
_TYPES = {bool: AttrType.BOOLEAN, float: AttrType.FLOAT, str: AttrType.STRING}
_INTS = frozenset({AttrType.INT, AttrType.INTS, AttrType.LONG, AttrType.LONGS})
RULES: dict[AttrType, Rule] = {}
"""The rule of every AttrType."""
_LIST_OF: dict[AttrType, AttrType] = {}
for _one, _list, _words, _several, _test, _convert_one, _exact_type in _KINDS:
    RULES[_one] = Rule(_words, _test, _convert_one, exact_type=_exact_type)
    RULES[_list] = Rule(f"a list of {_several}", _test, _convert_one, is_list=True, exact_type=_exact_type)
    _LIST_OF[_one] = _list
