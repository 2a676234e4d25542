"""Functions that write to their first tensor: `x.tanh_()`."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

from oprack.eager_tensor import Tensor


def in_place_of(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose result takes the place of its first tensor.

    Args:
        name: Its name, such as "tanh_".
        function: The function of the same arguments that makes a new tensor.

    Returns:
        The function.
    """

    @functools.wraps(function)
    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        if name == "where_":  # its first argument is the condition
            y = args[0]
            return take_over(name, y, function(x, _before(y), *args[1:], **kwargs))
        return take_over(name, x, function(_before(x), *args, **kwargs))

    call.__name__ = call.__qualname__ = name
    return call


def _before(x: Any) -> Any:
    """The tensor as it is now, at the same place in the graph, which no write to x reaches."""
    if not isinstance(x, Tensor):
        return x
    twin = copy.copy(x)
    twin.__dict__.pop("_memory", None)
    return twin


def take_over(name: str, x: Any, found: Any) -> Any:
    """Let a tensor be the result of a call: its value, and its place in the graph.

    Args:
        name: The call, for messages.
        x: The tensor.
        found: The result.

    Returns:
        x.
    """
    if isinstance(x, Tensor):
        x._overwrite(found._value, found._node, name)
        return x
    return found
