"""Names that no other variable of the program has: `fc_0`, `fc_0.w_0`, `fc_0.tmp_0`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class UniqueNameGenerator:
    """Numbers the names that it makes, for each key from 0 on.

    Args:
        prefix: Goes before every name.
    """

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self._next: dict[str, int] = {}

    def __call__(self, key: str) -> str:
        number = self._next.get(key, 0)
        self._next[key] = number + 1
        return f"{self.prefix}{key}_{number}"


_process_wide = UniqueNameGenerator()
_of_guard: ContextVar[UniqueNameGenerator | None] = ContextVar("oprack_unique_names", default=None)


def generate(key: str) -> str:
    """`key` with a number that no earlier call for it got."""
    return (_of_guard.get() or _process_wide)(key)


def switch(new_generator: UniqueNameGenerator | None = None) -> UniqueNameGenerator:
    """Replace the current generator and return it.

    Args:
        new_generator: The generator from now on; default: one that starts from 0.
    """
    global _process_wide
    new, current = new_generator or UniqueNameGenerator(), _of_guard.get()
    if current is not None:
        _of_guard.set(new)
        return current
    current, _process_wide = _process_wide, new
    return current


@contextmanager
def guard(new_generator: UniqueNameGenerator | str | None = None) -> Iterator[UniqueNameGenerator]:
    """Names start from 0 inside the with block; a str goes before each of them.

    Build the same network twice under a guard of its own each, and parameters have the same names in both.
    """
    if new_generator is None or isinstance(new_generator, str):
        new_generator = UniqueNameGenerator(new_generator or "")
    token = _of_guard.set(new_generator)
    try:
        yield new_generator
    finally:
        _of_guard.reset(token)
