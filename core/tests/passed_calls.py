"""What a call passes: tests that count functions would else count those that the collector happens to call."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any


@contextmanager
def no_collection() -> Iterator[None]:
    """The collector rests inside: what it ends, of earlier tests as well, makes calls in whichever thread it runs."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


class PassedCalls(list[CodeType]):
    """The Python functions that this thread entered inside, by their code, as they followed each other.

    Args:
        builtins: Whether calls of functions written in C count, too, each by its caller's code.
    """

    def __init__(self, builtins: bool = False) -> None:
        super().__init__()
        self._events = ("call", "c_call") if builtins else ("call",)
        self._collector = no_collection()

    def __enter__(self) -> PassedCalls:
        self._collector.__enter__()
        self._before = sys.getprofile()
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(self._before)
        self._collector.__exit__(None, None, None)
        while self and self[-1] is PassedCalls.__exit__.__code__:
            self.pop()

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        if event in self._events:
            self.append(frame.f_code)
