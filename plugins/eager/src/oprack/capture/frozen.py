"""What of a value counts when two are compared: keys of values, and the containers in them that may change."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
from oprack.eager_tensor import Tensor
from oprack.nn.module import Module

_DEPTH = 6  # of lists within lists, and objects within objects; what lies deeper is compared by identity
_BYTES = 4096  # of arrays whose elements are compared
ITEMS = 1024  # of containers whose items are compared; a larger one, such as a data set, is compared by identity
_SETTINGS = ("types", "argparse")  # whose Namespaces hold settings of the user's
_PLAIN = (str, bytes, bool, int, type(None), type(...), np.dtype)


class Same:
    """Stands for an object in a key; equal to that of the same object alone."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value  # held, so that its id can't become another's

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)

    def __repr__(self) -> str:
        return f"<Same {object.__repr__(self.value)}>"


def frozen(value: Any, depth: int = _DEPTH) -> Any:
    """A key of a value, equal only to those of values that a function can't tell from it.

    Args:
        value: Anything.
        depth: How deep to look into containers and objects.

    Returns:
        The key: True is not 1, 0.0 not -0.0, a list no tuple, and NaN is NaN.
    """
    kind = type(value)
    if kind in _PLAIN:
        return (kind, value)
    if kind is float or kind is complex or isinstance(value, np.generic):
        return (kind, repr(value))
    if kind is slice:
        return (kind, frozen((value.start, value.stop, value.step)))
    if isinstance(value, list | tuple | dict | set | frozenset) and len(value) > ITEMS:
        return Same(value)
    if depth and isinstance(value, list | tuple):
        return (kind, tuple([frozen(v, depth - 1) for v in value]))
    if depth and isinstance(value, dict):
        return (kind, tuple([(frozen(k), frozen(v, depth - 1)) for k, v in value.items()]))
    if isinstance(value, set | frozenset):
        return (kind, frozenset([frozen(v) for v in value]))
    if isinstance(value, np.ndarray):
        return (Same(value), value.tobytes() if value.nbytes <= _BYTES and value.dtype.kind != "O" else None)
    attributes = attributes_of(value) if depth else None
    return Same(value) if attributes is None else (Same(value), frozen(attributes, depth - 1))


def attributes_of(value: Any) -> dict[str, Any] | None:
    """Attributes of an object that belongs to the user, such as a configuration; None of all others."""
    kind = type(value)
    if isinstance(value, Module | Tensor | type | ModuleType | FunctionType | BuiltinFunctionType | MethodType):
        return None
    if kind.__module__ not in _SETTINGS and is_foreign(kind.__module__):
        return None
    found = getattr(value, "__dict__", None)
    return found if isinstance(found, dict) else None


def is_foreign(module: str | None) -> bool:
    """Whether code belongs to oprack, its packs, NumPy or the standard library, which nobody changes between calls."""
    top = (module or "").partition(".")[0]
    return top == "numpy" or top.partition("_")[0] == "oprack" or (top in sys.stdlib_module_names and top != "__main__")


def containers(value: Any, depth: int = _DEPTH) -> Iterator[Any]:
    """The containers in a value that can change without being replaced.

    Args:
        value: Anything.
        depth: How deep to look into containers and objects.

    Yields:
        Each container.
    """
    if not depth or (isinstance(value, list | tuple | dict | set | frozenset) and len(value) > ITEMS):
        return
    if isinstance(value, dict):
        yield value
        inside: Any = value.values()
    elif isinstance(value, list | set):
        yield value
        inside = value
    elif isinstance(value, tuple | frozenset):
        inside = value
    elif isinstance(value, np.ndarray):
        if value.nbytes <= _BYTES:
            yield value
        return
    else:
        found = attributes_of(value)
        if found is not None:
            yield from containers(found, depth)
        return
    for v in inside:
        if type(v) not in _PLAIN:
            yield from containers(v, depth - 1)


def items_of(container: Any) -> Sequence[Any]:
    """What a container holds now, of an array its bytes."""
    if isinstance(container, dict):
        return (*container, *container.values())
    return (container.tobytes(),) if isinstance(container, np.ndarray) else tuple(container)
