"""The arguments of a call that is captured: tensors, which the program reads, and what belongs to the program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from oprack.capture.frozen import Same, frozen
from oprack.errors import InvalidArgumentError
from oprack.functional.tensor import Tensor

_TENSOR: Any = type("a_tensor", (), {})()  # stands where the call had a tensor


class SplitCall:
    """What a call has beside tensors.

    Args:
        positional: The positional arguments, with `_TENSOR` for each tensor.
        named: The keyword arguments in the same way.

    Attributes:
        key: Equal only to that of calls with the same arguments, of the same types.
    """

    def __init__(self, positional: Sequence[Any], named: Mapping[str, Any]) -> None:
        self._positional, self._named = positional, named
        self.key = (
            tuple([Same(a) if a is _TENSOR else frozen(a) for a in positional]),
            tuple([(name, Same(a) if a is _TENSOR else frozen(a)) for name, a in named.items()]),
        )

    def joined(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function of the tensors alone, which calls another one with the rest of this call.

        Args:
            function: The other one.

        Returns:
            The function.
        """

        def call(*tensors: Any) -> Any:
            left = iter(tensors)
            args = [next(left) if a is _TENSOR else a for a in self._positional]
            return function(*args, **{n: next(left) if a is _TENSOR else a for n, a in self._named.items()})

        return call


def split_call(args: Sequence[Any], kwargs: Mapping[str, Any], owner: str) -> tuple[tuple[Any, ...], SplitCall]:
    """The tensors of a call in order, and the rest of it.

    Args:
        args: Positional arguments; None and text are no tensors.
        kwargs: Keyword arguments, of which tensors and arrays are tensors.
        owner: The function, for messages.

    Returns:
        The tensors, and the rest.

    Raises:
        InvalidArgumentError: An argument is neither a tensor nor something that can be compared between calls.
    """
    tensors: list[Any] = []
    positional: list[Any] = []
    for a in args:
        if a is None or isinstance(a, str):
            positional.append(a)
        else:
            positional.append(_TENSOR)
            tensors.append(a)
    named: dict[str, Any] = {}
    for name, value in sorted(kwargs.items()):
        if isinstance(value, Tensor) or hasattr(value, "__array_interface__"):
            named[name] = _TENSOR
            tensors.append(value)
        else:
            _require_constant(value, name, owner)
            named[name] = value
    return tuple(tensors), SplitCall(positional, named)


def _require_constant(value: Any, name: str, owner: str) -> None:
    for item in _leaves(value):
        try:
            hash(item)
        except TypeError as error:
            has = "is" if item is value else "has"
            raise InvalidArgumentError(
                f"{owner}: argument {name} {has} a {type(item).__name__}; while a function runs as a program its "
                "arguments are tensors, or numbers, text, None, and lists, tuples and dicts of them, which become part "
                "of the program"
            ) from error


def _leaves(value: Any) -> Iterator[Any]:
    """What is in lists, tuples and dicts."""
    if isinstance(value, list | tuple | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _leaves(item)
    else:
        yield value
