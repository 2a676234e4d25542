"""What a call passes: tests that count functions would else count those that the collector happens to call."""

from __future__ import annotations

import gc
import sys
from types import CodeType, FrameType
from typing import Any


class PassedCalls(list[CodeType]):
    """The Python functions that this thread entered inside, by their code, as they followed each other.

    The collector rests: what it ends, of earlier tests as well, makes calls in whichever thread it runs.

    Args:
        builtins: Whether calls of functions written in C count, too, each by its caller's code.
    """

    def __init__(self, builtins: bool = False) -> None:
        super().__init__()
        self._events = ("call", "c_call") if builtins else ("call",)

    def __enter__(self) -> PassedCalls:
        self._before, self._collects = sys.getprofile(), gc.isenabled()
        gc.disable()
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(self._before)
        if self._collects:
            gc.enable()
        while self and self[-1] is PassedCalls.__exit__.__code__:
            self.pop()

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        if event in self._events:
            self.append(frame.f_code)
