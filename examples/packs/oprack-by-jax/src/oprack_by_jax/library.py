"""What speaks for the library jax."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager


class Library:
    """The kernel library jax."""

    def status(self) -> str:
        """One line for `oprack doctor`."""
        if importlib.util.find_spec("jax") is None:
            return "not used: jax is not installed"
        from importlib.metadata import version

        return f"jax {version('jax')}"

    @contextmanager
    def limit_threads(self, count: int) -> Iterator[None]:
        """Compute on at most `count` threads, for the length of a with block."""
        yield  # XLA's pool is as large as it is when jax starts


LIBRARY = Library()
