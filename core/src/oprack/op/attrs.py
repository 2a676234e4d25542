"""Attributes: typed, with defaults and chained checks that print themselves."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection, Iterable, Set
from typing import Any, Final, Self

from oprack.desc.attr_values import RULES, attr_type_of, convert_or_none
from oprack.errors import AttributeValueError, DefinitionError
from oprack.op.proto import AttrProto
from oprack.types import AttrType


class _Required:
    def __repr__(self) -> str:
        return "required"


REQUIRED: Final = _Required()
"""Default of an attribute that every OpDesc has to give."""

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
    are rounded in the same way. Each method that adds a check returns the attribute itself.

    Args:
        default: The value of an attribute that an op does not give, or REQUIRED when every op has to give it. It tells
            the type as well, unless `type` does. A list is copied.
        doc: What the attribute means.
        type: Its type on the wire.
        extra: Whether it is a runtime detail that an export may drop.
        generated: Whether the core adds it to every op.
        support_tensor: Whether a program may name variables instead of a value.
        name: The attribute, when Python can't spell it.
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
        """Add a check of your own.

        Args:
            test: Whether a value is right.
            text: What completes "expected ...".

        Returns:
            The attribute itself.
        """
        self.checks.append((text, test))
        return self

    def in_set(self, values: Collection[Any]) -> Self:
        """The value is one of these."""
        known = [self._as_stored(v) for v in values]
        # sets are sorted, so that the text is the same in every run
        shown = sorted(map(repr, values)) if isinstance(values, Set) else map(repr, values)
        return self.check(lambda v: v in known, "one of " + ", ".join(shown))

    def between(self, low: float, high: float) -> Self:
        """low <= value <= high.

        Args:
            low: The smallest value.
            high: The largest value.

        Returns:
            The attribute itself.
        """
        a, b = self._as_stored(low), self._as_stored(high)
        return self.check(lambda v: a <= v <= b, f"a value between {low} and {high}")

    def greater_than(self, low: float) -> Self:
        """value > low."""
        bound = self._as_stored(low)
        return self.check(lambda v: v > bound, f"a value greater than {low}")

    def at_least(self, low: float) -> Self:
        """low <= value."""
        bound = self._as_stored(low)
        return self.check(lambda v: v >= bound, f"a value of at least {low}")

    def _as_stored(self, value: Any) -> Any:
        return _in_32_bits(value) if self.type in _FLOATS_OF_32_BITS else value

    def each(self, test: Callable[[Any], bool], text: str) -> Self:
        """As `check`, for every element of a list.

        Args:
            test: Whether an element is right.
            text: What completes "a list whose elements are each ...".

        Returns:
            The attribute itself.
        """
        return self.check(lambda v: all(test(x) for x in v), f"a list whose elements are each {text}")

    def size(self, *sizes: int) -> Self:
        """The list has one of these lengths."""
        return self.check(lambda v: len(v) in sizes, f"a list of {' or '.join(map(str, sizes))} elements")

    def proto(self, name: str) -> AttrProto:
        """What the attribute is in an OpProto.

        Args:
            name: Its name in the definition class.

        Returns:
            The AttrProto.
        """
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
    try:
        return attr_type_of(default)
    except AttributeValueError:
        raise DefinitionError(
            f"Attr({default!r}): the type can't be told from this default; pass it, for example type=AttrType.INTS"
        ) from None


def _in_32_bits(value: Any) -> Any:
    """A float, or each float of a list, as 32 bits hold it; anything else as it is."""
    if isinstance(value, float):
        return ctypes.c_float(value).value
    return [_in_32_bits(v) for v in value] if isinstance(value, list) else value


Checks = list[tuple[str, Callable[[Any], bool]]]


class OpAttrChecker:
    """Fills defaults and checks types and ranges of an op's attributes.

    Args:
        op_type: The op, for errors.
        attrs: Each attribute with its checks: (text, test).
    """

    def __init__(self, op_type: str, attrs: Iterable[tuple[AttrProto, Checks]]) -> None:
        self.op_type = op_type
        rows = [(proto, checks, RULES[proto.type]) for proto, checks in attrs]
        # with the Python type all of whose values are right as they are, where there is one
        self._attrs = {p.name: (p, c, None if c or rule.is_list else rule.exact_type) for p, c, rule in rows}
        self._defaults = {p.name: p.default for p, _, _ in rows}
        self._lists = [name for name, default in self._defaults.items() if isinstance(default, list | tuple)]
        self._required = [p for p, _, _ in rows if p.required]
        self._floats = [p.name for p, _, _ in rows if p.type in _FLOATS_OF_32_BITS]

    def check(self, attrs: dict[str, Any], tensor_attrs: Collection[str] = ()) -> dict[str, Any]:
        """A new dict: every declared attribute, checked and converted; then the others, as they are.

        Args:
            attrs: Attributes of an op, by name.
            tensor_attrs: Names of attributes whose value is the name of a variable (support_tensor), which is read when
                the op runs.

        Returns:
            The new dict.

        Raises:
            AttributeValueError: The message names the op, the attribute, the value and what is expected.
        """
        checked = self._defaults.copy()
        for name in self._lists:
            checked[name] = list(checked[name])
        for name, value in attrs.items():
            if (declared := self._attrs.get(name)) is not None:
                proto, checks, right_type = declared
                if name not in tensor_attrs:
                    value = value if type(value) is right_type else self._checked(proto, checks, value)
                elif not proto.support_tensor:
                    raise AttributeValueError(
                        f"op {self.op_type}: attribute {name!r} is given as variable {value!r}; "
                        f"expected {RULES[proto.type].words}, since this attribute takes no tensor"
                    )
            checked[name] = value
        for proto in self._required:
            if proto.name not in attrs:
                raise AttributeValueError(
                    f"op {self.op_type}: attribute {proto.name!r} is missing; expected {RULES[proto.type].words}: "
                    f"{proto.doc}"
                )
        return checked

    def stored(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """`attrs` with each FLOAT as its 32 bits hold it, so that a program runs alike before and after it is saved.

        Args:
            attrs: Attributes of an op, which are changed in place.

        Returns:
            The same dict.
        """
        for name in self._floats:
            attrs[name] = _in_32_bits(attrs[name])
        return attrs

    def _checked(self, proto: AttrProto, checks: Checks, value: Any) -> Any:
        found = convert_or_none(value, proto.type)
        if found is None:
            raise self._error(proto, value, RULES[proto.type].words)
        if checks:
            held = _in_32_bits(found) if proto.type in _FLOATS_OF_32_BITS else found
            for text, passes in checks:
                if not passes(held):
                    raise self._error(proto, found, text)
        return found

    def _error(self, proto: AttrProto, value: Any, expected: str) -> AttributeValueError:
        return AttributeValueError(
            f"op {self.op_type}: attribute {proto.name!r} is {value!r}; expected {expected}. {proto.doc}"
        )
