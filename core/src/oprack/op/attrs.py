"""Attributes: typed, with defaults and chained checks that print themselves."""

from __future__ import annotations

import ctypes
import numbers
from collections.abc import Callable, Collection, Iterable
from typing import Any, Final, Self

from oprack.errors import AttributeValueError, DefinitionError
from oprack.op.proto import AttrProto
from oprack.types import AttrType


class _Required:
    def __repr__(self) -> str:
        return "required"


REQUIRED: Final = _Required()
"""Default of an attribute that every OpDesc has to give."""

_SCALARS: dict[type, AttrType] = {
    bool: AttrType.BOOLEAN,
    int: AttrType.INT,
    float: AttrType.FLOAT,
    str: AttrType.STRING,
}
_LISTS = {
    AttrType.BOOLEAN: AttrType.BOOLEANS,
    AttrType.INT: AttrType.INTS,
    AttrType.FLOAT: AttrType.FLOATS,
    AttrType.STRING: AttrType.STRINGS,
}

_FLOATS_OF_32_BITS = (AttrType.FLOAT, AttrType.FLOATS)

# Attributes that every op has (OpProtoAndCheckerMaker of Fluid adds them); kernels never see them.
COMMON_ATTRS: dict[str, tuple[AttrType, Any]] = {
    "op_role": (AttrType.INT, 4096),
    "op_role_var": (AttrType.STRINGS, []),
    "op_namescope": (AttrType.STRING, ""),
    "op_callstack": (AttrType.STRINGS, []),
    "op_device": (AttrType.STRING, ""),
    "with_quant_attr": (AttrType.BOOLEAN, False),
}


class Attr:
    """An attribute in a definition class: `Attr(1.0, "Factor.").greater_than(0)`.

    A FLOAT has 32 bits on the wire, where 0.001 is 0.00100000005. Checks see the value as 32 bits hold it, and bounds
    are rounded in the same way.

    Args:
        default: The value of an attribute that an op does not give, or REQUIRED when every op has to give it. It tells
            the type as well, unless `type` does. A list is copied.
        doc: What the attribute means.
        type: Its type on the wire.
        extra: Whether it is a runtime detail that an export may drop.
        support_tensor: Whether a program may name variables instead of a value.
    """

    def __init__(
        self,
        default: Any,
        doc: str,
        *,
        type: AttrType | None = None,
        extra: bool = False,
        generated: bool = False,
        support_tensor: bool = False,
        name: str = "",
    ) -> None:
        self.default, self.doc, self.name = default, doc, name
        self.extra, self.generated, self.support_tensor = extra, generated, support_tensor
        self.type = type if type is not None else _type_of(default)
        self.checks: list[tuple[str, Callable[[Any], bool]]] = []

    def check(self, test: Callable[[Any], bool], text: str) -> Self:
        """Add a check of your own; `text` completes "expected ..."."""
        self.checks.append((text, test))
        return self

    def in_set(self, values: Collection[Any]) -> Self:
        known = [self._as_stored(v) for v in values]
        return self.check(lambda v: v in known, "one of " + ", ".join(repr(v) for v in values))

    def between(self, low: float, high: float) -> Self:
        """low <= value <= high."""
        a, b = self._as_stored(low), self._as_stored(high)
        return self.check(lambda v: a <= v <= b, f"a value between {low} and {high}")

    def greater_than(self, low: float) -> Self:
        bound = self._as_stored(low)
        return self.check(lambda v: v > bound, f"a value greater than {low}")

    def at_least(self, low: float) -> Self:
        bound = self._as_stored(low)
        return self.check(lambda v: v >= bound, f"a value of at least {low}")

    def _as_stored(self, value: Any) -> Any:
        return _in_32_bits(value) if self.type in _FLOATS_OF_32_BITS else value

    def each(self, test: Callable[[Any], bool], text: str) -> Self:
        """As `check`, for every element of a list."""
        return self.check(lambda v: all(test(x) for x in v), f"a list whose elements are each {text}")

    def size(self, *sizes: int) -> Self:
        """The list has one of these lengths."""
        return self.check(lambda v: len(v) in sizes, f"a list of {' or '.join(map(str, sizes))} elements")

    def proto(self, name: str) -> AttrProto:
        required = self.default is REQUIRED
        return AttrProto(
            self.name or name,
            self.type,
            self.doc,
            None if required else self.default,
            required,
            self.extra,
            self.generated,
            self.support_tensor,
            tuple(text for text, _ in self.checks),
        )


def _type_of(default: Any) -> AttrType:
    kind = _SCALARS.get(type(default))
    if kind is not None:
        return kind
    if isinstance(default, list | tuple) and default and type(default[0]) in _SCALARS:
        return _LISTS[_SCALARS[type(default[0])]]
    raise DefinitionError(
        f"Attr({default!r}): the type can't be told from this default; pass it, for example type=AttrType.INTS"
    )


# Python's own types first: an abstract class takes ten times as long to ask, and a load asks thousands of times
def _is_int(v: Any) -> bool:
    return type(v) is int or (isinstance(v, numbers.Integral) and not isinstance(v, bool))


def _is_real(v: Any) -> bool:
    return type(v) is float or (isinstance(v, numbers.Real) and not isinstance(v, bool))


def _is_scalar(v: Any) -> bool:
    return isinstance(v, numbers.Number)


def _in_32_bits(value: Any) -> Any:
    """A float, or each float of a list, as 32 bits hold it; anything else as it is."""
    if isinstance(value, float):
        return ctypes.c_float(value).value
    return [_in_32_bits(v) for v in value] if isinstance(value, list) else value


Checks = list[tuple[str, Callable[[Any], bool]]]

# (what a value must be, in words; the test of one element; the conversion of one element; whether it is a list)
_RULES: dict[AttrType, tuple[str, Callable[[Any], bool], Callable[[Any], Any], bool]] = {
    AttrType.INT: ("an int of 32 bits", lambda v: _is_int(v) and -(2**31) <= v < 2**31, int, False),
    AttrType.LONG: ("an int of 64 bits", lambda v: _is_int(v) and -(2**63) <= v < 2**63, int, False),
    AttrType.FLOAT: ("a float", _is_real, float, False),
    AttrType.FLOAT64: ("a float", _is_real, float, False),
    AttrType.STRING: ("a str", lambda v: isinstance(v, str), str, False),
    AttrType.BOOLEAN: ("a bool", lambda v: isinstance(v, bool) or v in (0, 1), bool, False),
    AttrType.INTS: ("a list of ints of 32 bits", lambda v: _is_int(v) and -(2**31) <= v < 2**31, int, True),
    AttrType.LONGS: ("a list of ints of 64 bits", lambda v: _is_int(v) and -(2**63) <= v < 2**63, int, True),
    AttrType.FLOATS: ("a list of floats", _is_real, float, True),
    AttrType.FLOAT64S: ("a list of floats", _is_real, float, True),
    AttrType.STRINGS: ("a list of str", lambda v: isinstance(v, str), str, True),
    AttrType.BOOLEANS: ("a list of bools", lambda v: isinstance(v, bool) or v in (0, 1), bool, True),
    AttrType.BLOCK: ("the index of a block", _is_int, int, False),
    AttrType.BLOCKS: ("a list of block indices", _is_int, int, True),
    AttrType.SCALAR: ("a number", _is_scalar, lambda v: v, False),
    AttrType.SCALARS: ("a list of numbers", _is_scalar, lambda v: v, True),
    AttrType.VAR: ("a variable's name", lambda v: isinstance(v, str), str, False),
    AttrType.VARS: ("a list of variable names", lambda v: isinstance(v, str), str, True),
}


def expected_of(kind: AttrType, value: Any) -> str:
    """What a value of this type must be, in words; "" when the value is so."""
    words, test, _, is_list = _RULES[kind]
    fits = isinstance(value, list | tuple) and all(test(v) for v in value) if is_list else test(value)
    return "" if fits else words


class OpAttrChecker:
    """Fills defaults and checks types and ranges of an op's attributes."""

    def __init__(self, op_type: str, attrs: Iterable[tuple[AttrProto, Checks]]) -> None:
        self.op_type = op_type
        self._attrs = list(attrs)
        self._floats = [p.name for p, _ in self._attrs if p.type in _FLOATS_OF_32_BITS]

    def check(self, attrs: dict[str, Any], tensor_attrs: Collection[str] = ()) -> dict[str, Any]:
        """A new dict: every declared attribute, checked and converted; then the others, as they are.

        Args:
            tensor_attrs: Names of attributes whose value is the name of a variable (support_tensor), which is read when
                the op runs.

        Raises:
            AttributeValueError: The message names the op, the attribute, the value and what is expected.
        """
        checked: dict[str, Any] = {}
        for proto, checks in self._attrs:
            name = proto.name
            if name not in attrs:
                if proto.required:
                    raise AttributeValueError(
                        f"op {self.op_type}: attribute {name!r} is missing; expected {_RULES[proto.type][0]}: "
                        f"{proto.doc}"
                    )
                checked[name] = list(proto.default) if isinstance(proto.default, list | tuple) else proto.default
                continue
            if name in tensor_attrs:
                if not proto.support_tensor:
                    raise AttributeValueError(
                        f"op {self.op_type}: attribute {name!r} is given as variable {attrs[name]!r}; "
                        f"expected {_RULES[proto.type][0]}, since this attribute takes no tensor"
                    )
                checked[name] = attrs[name]
                continue
            checked[name] = self._checked(proto, checks, attrs[name])
        for name, value in attrs.items():
            if name not in checked:
                checked[name] = value
        return checked

    def stored(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """`attrs` with each FLOAT as its 32 bits hold it, so that a program runs alike before and after it is saved."""
        for name in self._floats:
            attrs[name] = _in_32_bits(attrs[name])
        return attrs

    def _checked(self, proto: AttrProto, checks: Checks, value: Any) -> Any:
        words, test, convert, is_list = _RULES[proto.type]
        if is_list:
            if not isinstance(value, list | tuple) or not all(map(test, value)):
                raise self._error(proto, value, words)
            value = list(map(convert, value))
        else:
            if not test(value):
                raise self._error(proto, value, words)
            value = convert(value)
        if checks:
            held = _in_32_bits(value) if proto.type in _FLOATS_OF_32_BITS else value
            for text, passes in checks:
                if not passes(held):
                    raise self._error(proto, value, text)
        return value

    def _error(self, proto: AttrProto, value: Any, expected: str) -> AttributeValueError:
        return AttributeValueError(
            f"op {self.op_type}: attribute {proto.name!r} is {value!r}; expected {expected}. {proto.doc}"
        )
