"""What speaks for the library torch."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager


class Library:
    """The kernel library torch."""

    def status(self) -> str:
        """One line for `oprack doctor`."""
        if importlib.util.find_spec("torch") is None:
            return "not used: torch is not installed"
        from importlib.metadata import version

        return f"torch {version('torch')}"

    @contextmanager
    def limit_threads(self, count: int) -> Iterator[None]:
        """Compute on at most `count` threads, for the length of a with block."""
        import torch

        before = torch.get_num_threads()
        torch.set_num_threads(count)
        try:
            yield
        finally:
            torch.set_num_threads(before)


LIBRARY = Library()
