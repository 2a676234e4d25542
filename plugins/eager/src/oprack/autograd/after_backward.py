"""What runs at the end of backward passes, such as the average of gradients over ranks."""

from __future__ import annotations

from collections.abc import Callable

_after: list[Callable[[], bool]] = []


def after_backward(function: Callable[[], bool]) -> Callable[[], None]:
    """Call a function at the end of every `backward`, when the gradients of all leaves are there.

    Args:
        function: Returns whether it wants to be called again.

    Returns:
        A function that ends this.
    """
    _after.append(function)

    def remove() -> None:
        if function in _after:
            _after.remove(function)

    return remove


def run_after_backward() -> None:
    """Call what waits for the end of a backward pass; what does not want to be called again is dropped."""
    for function in list(_after):
        if not function() and function in _after:
            _after.remove(function)
