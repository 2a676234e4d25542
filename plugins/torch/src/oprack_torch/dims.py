"""Dim: a size that torch knows as a symbol, for shape rules that were written for integers."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch


class Dim(int):
    """A symbol that is an integer to a rule: what it computes stays a symbol, and what it compares becomes a guard.

    Whatever has no symbol in torch, such as an index of Python, makes the size a constant of the graph.

    Attributes:
        symbol: What torch has.
    """

    symbol: torch.SymInt

    def __new__(cls, symbol: torch.SymInt) -> Dim:
        hint = symbol.node.hint if symbol.node.has_hint() else 0
        found = super().__new__(cls, hint)
        found.symbol = symbol
        return found

    def __hash__(self) -> int:
        # equal sizes have equal hints, and what a set then compares becomes a guard
        return int.__hash__(self) if self.symbol.node.has_hint() else hash(int(self.symbol))

    def __bool__(self) -> bool:
        return bool(self.symbol != 0)

    def __int__(self) -> int:
        return int(self.symbol)

    __index__ = __int__

    def __float__(self) -> float:
        return float(int(self.symbol))

    def __repr__(self) -> str:
        return str(self.symbol)

    __str__ = __repr__

    def __neg__(self) -> Any:
        return as_dim(-self.symbol)

    def __pos__(self) -> Any:
        return self


def as_dim(size: Any) -> Any:
    """A size of torch as rules take it."""
    if not isinstance(size, torch.SymInt):
        return size
    constant = size.node.maybe_as_int()
    return Dim(size) if constant is None else constant


def of_torch(dim: Any) -> Any:
    """Back from `as_dim`."""
    return dim.symbol if isinstance(dim, Dim) else int(dim)


def _symbolic(name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    compute = getattr(operator, name)

    def forward(self: Dim, other: Any) -> Any:
        return as_dim(compute(self.symbol, of_torch(other))) if isinstance(other, int) else NotImplemented

    def reflected(self: Dim, other: Any) -> Any:
        return as_dim(compute(of_torch(other), self.symbol)) if isinstance(other, int) else NotImplemented

    return forward, reflected


def _compared(name: str) -> Callable[..., Any]:
    compute = getattr(operator, name)

    def compare(self: Dim, other: Any) -> Any:
        return bool(compute(self.symbol, of_torch(other))) if isinstance(other, int) else NotImplemented

    return compare


def _constant(name: str) -> Callable[..., Any]:
    plain = getattr(int, name)
    return lambda self, *rest: plain(int(self.symbol), *[int(r) if isinstance(r, Dim) else r for r in rest])


for _name in ("add", "sub", "mul", "floordiv", "mod"):
    _forward, _reflected = _symbolic(_name)
    setattr(Dim, f"__{_name}__", _forward)
    setattr(Dim, f"__r{_name}__", _reflected)
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Dim, f"__{_name}__", _compared(_name))
_OTHERS = (
    "truediv rtruediv divmod rdivmod pow rpow and rand or ror xor rxor lshift rlshift rshift rrshift abs invert "
    "round ceil floor trunc format"
)
for _name in _OTHERS.split():
    setattr(Dim, f"__{_name}__", _constant(f"__{_name}__"))
