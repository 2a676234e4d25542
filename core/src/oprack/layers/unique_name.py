"""Names that no other variable of the program has: `fc_0`, `fc_0.w_0`, `fc_0.tmp_0`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class UniqueNameGenerator:
    """Counts how often each key was asked for. prefix: goes before every name."""

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self._next: dict[str, int] = {}

    def __call__(self, key: str) -> str:
        number = self._next.get(key, 0)
        self._next[key] = number + 1
        return f"{self.prefix}{key}_{number}"


_process_wide = UniqueNameGenerator()
_guarded: ContextVar[UniqueNameGenerator | None] = ContextVar("oprack_unique_names", default=None)


def generate(key: str) -> str:
    """`key` with a number that no earlier call for it got."""
    return (_guarded.get() or _process_wide)(key)


def switch(new_generator: UniqueNameGenerator | None = None) -> UniqueNameGenerator:
    """Take another generator (default: one that starts from 0) and return the one until now."""
    global _process_wide
    new, old = new_generator or UniqueNameGenerator(), _guarded.get()
    if old is not None:
        _guarded.set(new)
        return old
    old, _process_wide = _process_wide, new
    return old


@contextmanager
def guard(new_generator: UniqueNameGenerator | str | None = None) -> Iterator[UniqueNameGenerator]:
    """Names start from 0 inside the with block; a str goes before each of them.

    Build the same network twice under a guard of its own each, and parameters have the same names in both.
    """
    if new_generator is None or isinstance(new_generator, str):
        new_generator = UniqueNameGenerator(new_generator or "")
    token = _guarded.set(new_generator)
    try:
        yield new_generator
    finally:
        _guarded.reset(token)
