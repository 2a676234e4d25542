"""The arguments of a call that is captured: tensors, which the program reads, and what belongs to the program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from oprack.errors import InvalidArgumentError
from oprack.functional.tensor import Tensor

Form = tuple[tuple[Any, ...], tuple[tuple[str, Any], ...]]
_TENSOR = "a tensor"  # stands in a form where the call had one; constants stand in tuples


def split_call(args: Sequence[Any], kwargs: Mapping[str, Any], owner: str) -> tuple[tuple[Any, ...], Form]:
    """The tensors of a call in order, and the rest of it.

    Args:
        args: Positional arguments; None and text are no tensors.
        kwargs: Keyword arguments, of which tensors and arrays are tensors.
        owner: The function, for messages.

    Returns:
        The tensors, and a form that can be a key.

    Raises:
        InvalidArgumentError: An argument is neither a tensor nor something that can be a key.
    """
    tensors: list[Any] = []
    positional: list[Any] = []
    for a in args:
        if a is None or isinstance(a, str):
            positional.append((a,))
        else:
            positional.append(_TENSOR)
            tensors.append(a)
    named: list[tuple[str, Any]] = []
    for name, value in sorted(kwargs.items()):
        if isinstance(value, Tensor) or hasattr(value, "__array_interface__"):
            named.append((name, _TENSOR))
            tensors.append(value)
        else:
            named.append((name, (type(value), _key(value, name, owner))))
    return tuple(tensors), (tuple(positional), tuple(named))


def joined_call(function: Callable[..., Any], form: Form) -> Callable[..., Any]:
    """A function of the tensors alone, which calls another one with the rest of a form."""
    positional, named = form

    def call(*tensors: Any) -> Any:
        left = iter(tensors)
        args = [next(left) if p is _TENSOR else p[0] for p in positional]
        kwargs = {name: next(left) if value is _TENSOR else value[1] for name, value in named}
        return function(*args, **kwargs)

    return call


def _key(value: Any, name: str, owner: str) -> Any:
    value = tuple(value) if isinstance(value, list) else value
    try:
        hash(value)
    except TypeError as error:
        raise InvalidArgumentError(
            f"{owner}: argument {name} is a {type(value).__name__}; while a function runs as a program its arguments "
            "are tensors, or numbers, text, None and lists of them, which become part of the program"
        ) from error
    return value
