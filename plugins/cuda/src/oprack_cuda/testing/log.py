"""What a kernel costs besides computing: waits for the device, copies from the host, sums in no order."""

from __future__ import annotations

import sys
from collections import Counter

_HERE = __package__.replace(".", "/")


class Log:
    """Counts, per function of a kernel's file, the steps that wait for the device and those that copy from the host."""

    def __init__(self) -> None:
        self.waits: Counter[str] = Counter()
        self.copies: Counter[str] = Counter()
        self.atomics: Counter[str] = Counter()

    def clear(self) -> None:
        self.waits.clear()
        self.copies.clear()
        self.atomics.clear()

    def wait(self, what: str) -> None:
        """A value or a shape is needed on the host."""
        self.waits[f"{_caller()}: {what}"] += 1

    def atomic(self, what: str) -> None:
        """Floats meet in one place in any order, so that the bits of their sum differ from run to run."""
        self.atomics[f"{_caller()}: {what}"] += 1

    def copy(self, what: str) -> None:
        """Memory of the host is copied to the device."""
        self.copies[f"{_caller()}: {what}"] += 1


def _caller() -> str:
    frame = sys._getframe(2)
    while frame.f_back is not None and _HERE in frame.f_code.co_filename:
        frame = frame.f_back
    return f"{frame.f_globals.get('__name__', '?')}.{frame.f_code.co_name}"


LOG = Log()
