"""Predicates over what is known before an op runs; they compose with & | ~ and carry their text.

They may look at attributes, dtypes, kinds of variables and which slots are present, never at shapes or values: the
choice of a kernel is cached by exactly these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class KernelQuery:
    """What the choice of a kernel depends on. dtypes, kinds: of the first variable of each present input slot.

    kinds: "LoDTensor", "SelectedRows" or "LoDTensorArray".
    """

    op_type: str
    attrs: Mapping[str, Any] = field(default_factory=dict)
    dtypes: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)


class Predicate:
    """A condition and its text: "attribute groups == 1"."""

    __slots__ = ("test", "text")

    def __init__(self, test: Callable[[KernelQuery], bool], text: str) -> None:
        self.test, self.text = test, text

    def __call__(self, query: KernelQuery) -> bool:
        return bool(self.test(query))

    def __and__(self, other: Predicate) -> Predicate:
        return Predicate(lambda q: self(q) and other(q), f"{self.text} and {other.text}")

    def __or__(self, other: Predicate) -> Predicate:
        return Predicate(lambda q: self(q) or other(q), f"({self.text} or {other.text})")

    def __invert__(self) -> Predicate:
        return Predicate(lambda q: not self(q), f"not ({self.text})")

    def __repr__(self) -> str:
        return f"<predicate: {self.text}>"


class _Value:
    """Something of a query that compares into a Predicate."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, get: Callable[[KernelQuery], Any], text: str) -> None:
        self._get, self._text = get, text

    def __eq__(self, value: object) -> Predicate:  # type: ignore[override]
        return Predicate(lambda q: self._get(q) == value, f"{self._text} == {value!r}")

    def __ne__(self, value: object) -> Predicate:  # type: ignore[override]
        return Predicate(lambda q: self._get(q) != value, f"{self._text} != {value!r}")

    def __lt__(self, value: Any) -> Predicate:
        return Predicate(lambda q: self._get(q) < value, f"{self._text} < {value!r}")

    def __le__(self, value: Any) -> Predicate:
        return Predicate(lambda q: self._get(q) <= value, f"{self._text} <= {value!r}")

    def __ge__(self, value: Any) -> Predicate:
        return Predicate(lambda q: self._get(q) >= value, f"{self._text} >= {value!r}")

    def __gt__(self, value: Any) -> Predicate:
        return Predicate(lambda q: self._get(q) > value, f"{self._text} > {value!r}")

    def isin(self, *values: Any) -> Predicate:
        return Predicate(lambda q: self._get(q) in values, f"{self._text} in {values!r}")


def attr(name: str) -> Any:
    """An attribute of the op: `attr("groups") == 1`."""
    return _Value(lambda q: q.attrs.get(name), f"attribute {name}")


def dtype(slot: str) -> Any:
    """dtype of an input slot: `dtype("Ids") == "int64"`; None when it is absent."""
    return _Value(lambda q: q.dtypes.get(slot), f"dtype of {slot}")


def kind(slot: str) -> Any:
    """Kind of an input slot: `kind("Grad") == "SelectedRows"`; None when it is absent."""
    return _Value(lambda q: q.kinds.get(slot), f"kind of {slot}")


def has_input(slot: str) -> Predicate:
    """Whether an input slot is present."""
    return Predicate(lambda q: slot in q.kinds, f"{slot} is given")


def predicate(text: str) -> Callable[[Callable[[KernelQuery], bool]], Predicate]:
    """Decorator for a predicate of your own: `@predicate("the machine has AVX2")`."""
    return lambda test: Predicate(test, text)
