"""Predicates over what is known before an op runs; they compose with & | ~ and carry their text.

They may look at attributes, dtypes, containers, which slots are present and the kind of place, never at shapes or
values, because the choice of a kernel is cached by exactly these. Operations that Python would evaluate on its own
(`and`, `or`, `not`, `in`, `a < b < c`, the truth value of a predicate) raise an error that suggests & | ~ and isin.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, NoReturn

from oprack.errors import DefinitionError
from oprack.python.records import dataclass

Names = frozenset[tuple[str, str]]
"""What a predicate reads, as ("attribute", name) and ("input", slot); registration checks these for misspelt names."""


@dataclass(frozen=True)
class KernelQuery:
    """The properties of a call on which the choice of a kernel depends.

    Attributes:
        op_type: The op.
        attrs: All attributes.
        dtypes: For each present input slot, the dtype of its first variable.
        kinds: For each present input slot, the container of its first variable, the name of a class of
            `oprack.tensor.kinds`: "LoDTensor", "SelectedRows" ...
        place: Kind of place of the run, such as "cpu".
    """

    op_type: str
    attrs: Mapping[str, Any] = field(default_factory=dict)
    dtypes: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)
    place: str = "cpu"


class Predicate:
    """A condition and its text: "attribute groups == 1"; `p & q`, `p | q`, `~p`, `p == q`, `p == True`.

    Args:
        test: The condition, a function of a KernelQuery.
        text: The condition in words.
        names: Slots and attributes that it reads.
    """

    __slots__ = ("names", "test", "text")
    # `==` builds a predicate, so hashing and the detection of ties between kernels go by identity.
    __hash__ = object.__hash__

    def __init__(self, test: Callable[[KernelQuery], bool], text: str, names: Names = frozenset()) -> None:
        self.test, self.text, self.names = test, text, names

    def __call__(self, query: KernelQuery) -> bool:
        return bool(self.test(query))

    def __and__(self, other: Predicate) -> Predicate:
        q = _predicate(self, "&", other)
        return Predicate(lambda x: self(x) and q(x), f"{self.text} and {q.text}", self.names | q.names)

    def __or__(self, other: Predicate) -> Predicate:
        q = _predicate(self, "|", other)
        return Predicate(lambda x: self(x) or q(x), f"({self.text} or {q.text})", self.names | q.names)

    def __invert__(self) -> Predicate:
        return Predicate(lambda q: not self(q), f"not ({self.text})", self.names)

    def __eq__(self, other: object) -> Predicate:  # type: ignore[override]
        if isinstance(other, bool):
            return self if other else ~self
        q = _predicate(self, "==", other)
        return Predicate(lambda x: self(x) == q(x), f"(({self.text}) == ({q.text}))", self.names | q.names)

    def __ne__(self, other: object) -> Predicate:  # type: ignore[override]
        return ~(self == other)

    def _refuse(self, other: object) -> NoReturn:
        raise DefinitionError(f"{self!r} has no order and takes no number: got {other!r}; combine predicates by & | ~")

    __lt__ = __le__ = __gt__ = __ge__ = __rand__ = __ror__ = __xor__ = __rxor__ = _refuse

    def __bool__(self) -> NoReturn:
        _refuse_truth_value(self)

    def __repr__(self) -> str:
        return f"<predicate: {self.text}>"


def _predicate(left: Predicate, symbol: str, other: object) -> Predicate:
    """Return `other`, which must be a predicate."""
    if isinstance(other, Predicate):
        return other
    raise DefinitionError(
        f"{left!r} {symbol} {other!r}: expected a predicate on the right; compare first, and put brackets around each "
        'comparison: (attr("groups") == 1) & has_input("Bias")'
    )


def _refuse_truth_value(what: object) -> NoReturn:
    raise DefinitionError(
        f"{what!r} is neither true nor false until a kernel is chosen; combine predicates by & | ~ instead of and, or, "
        "not, use .isin(a, b) instead of in, and (low < x) & (x < high) instead of low < x < high"
    )


class _Value:
    """A property of a query; comparing it with a constant or with another property builds a Predicate."""

    __slots__ = ("_get", "_names", "_text")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, get: Callable[[KernelQuery], Any], text: str, names: Names = frozenset()) -> None:
        self._get, self._text, self._names = get, text, names

    def _compared(self, symbol: str, compare: Callable[[Any, Any], bool], other: Any) -> Predicate:
        if isinstance(other, Predicate):
            raise DefinitionError(
                f"{self!r} {symbol} {other!r}: a value compares with values; combine predicates by & |"
            )
        text = f"{self._text} {symbol} {other._text if isinstance(other, _Value) else repr(other)}"

        def test(q: KernelQuery) -> bool:
            a, b = self._get(q), other._get(q) if isinstance(other, _Value) else other
            try:
                return bool(compare(a, b))
            except TypeError as error:
                raise DefinitionError(
                    f"op {q.op_type}: a kernel's predicate `{text}` can't compare {a!r} with {b!r}: {error}; an absent "
                    "attribute or slot is None, so ask for it first: has_input(slot) & ..."
                ) from error

        return Predicate(test, text, self._names | (other._names if isinstance(other, _Value) else frozenset()))

    def __eq__(self, value: object) -> Predicate:  # type: ignore[override]
        return self._compared("==", operator.eq, value)

    def __ne__(self, value: object) -> Predicate:  # type: ignore[override]
        return self._compared("!=", operator.ne, value)

    def __lt__(self, value: Any) -> Predicate:
        return self._compared("<", operator.lt, value)

    def __le__(self, value: Any) -> Predicate:
        return self._compared("<=", operator.le, value)

    def __ge__(self, value: Any) -> Predicate:
        return self._compared(">=", operator.ge, value)

    def __gt__(self, value: Any) -> Predicate:
        return self._compared(">", operator.gt, value)

    def isin(self, *values: Any) -> Predicate:
        """Whether it is one of `values`, which may also be passed as one list."""
        if len(values) == 1 and isinstance(values[0], list | tuple | set | frozenset):
            values = tuple(values[0])
        if any(isinstance(v, _Value | Predicate) for v in values):
            raise DefinitionError(f"{self!r}.isin{values!r}: expected constants; compare values by == and combine by |")
        return Predicate(lambda q: self._get(q) in values, f"{self._text} in {values!r}", self._names)

    def _refuse(self, other: object) -> NoReturn:
        raise DefinitionError(
            f"{self!r} is no predicate yet, and {other!r} can't be combined with it; compare it first, with brackets: "
            '(attr("groups") == 1) & has_input("Bias")'
        )

    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _refuse

    def __invert__(self) -> NoReturn:
        self._refuse("~")

    def __contains__(self, item: object) -> NoReturn:
        self._refuse(item)

    def __bool__(self) -> NoReturn:
        _refuse_truth_value(self)

    def __repr__(self) -> str:
        return f"<value: {self._text}>"


def attr(name: str) -> Any:
    """An attribute of the op: `attr("groups") == 1`.

    Args:
        name: The attribute.

    Returns:
        Something to compare, which makes a Predicate.
    """
    return _Value(lambda q: q.attrs.get(name), f"attribute {name}", frozenset([("attribute", name)]))


def dtype(slot: str) -> Any:
    """dtype of an input slot: `dtype("Ids") == "int64"`, `dtype("X") == dtype("Y")`; None when it is absent.

    Args:
        slot: The input slot.

    Returns:
        Something to compare, which makes a Predicate.
    """
    return _Value(lambda q: q.dtypes.get(slot), f"dtype of {slot}", frozenset([("input", slot)]))


def kind(slot: str) -> Any:
    """Container of an input slot: `kind("Grad") == "SelectedRows"`; None when it is absent.

    Args:
        slot: The input slot.

    Returns:
        Something to compare, which makes a Predicate.
    """
    return _Value(lambda q: q.kinds.get(slot), f"kind of {slot}", frozenset([("input", slot)]))


def place() -> Any:
    """Kind of place of the run: `place() == "cuda"`, for a kernel that serves several places.

    Returns:
        Something to compare, which makes a Predicate.
    """
    return _Value(lambda q: q.place, "place")


def has_input(slot: str) -> Predicate:
    """Whether an input slot is present.

    Args:
        slot: The input slot.

    Returns:
        The predicate.
    """
    return Predicate(lambda q: slot in q.kinds, f"{slot} is given", frozenset([("input", slot)]))


def predicate(text: str) -> Callable[[Callable[[KernelQuery], bool]], Predicate]:
    """Turn a function into a predicate: `@predicate("the machine has AVX2")`.

    Args:
        text: What it tests, for errors.

    Returns:
        A decorator that turns a function of a KernelQuery into a Predicate.

    Raises:
        DefinitionError: The text is missing, so that errors could not say what a kernel needs.
    """
    if not isinstance(text, str) or not text.strip():
        raise DefinitionError(f'@predicate({text!r}): expected a text for errors: @predicate("the machine has AVX2")')
    return lambda test: Predicate(test, text)
