"""The watchdog: ends a program whose collective waits for longer than the limit, and says what it waited for."""

from __future__ import annotations

import collections
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING

from oprack.errors import InvalidArgumentError
from oprack.layers.user_line import user_line

if TYPE_CHECKING:
    from oprack.parallel.communicator import Communicator

TIMEOUT = "OPRACK_COLLECTIVE_TIMEOUT"
"""Environment variable: seconds that a collective may wait for other ranks; 300 unless it is set, 0 for ever."""
EXIT_STATUS = 75
RECENT = 64
"""So many collectives of all communicators are known when a program ends badly."""


def time_limit() -> float:
    """Seconds that a collective may wait. Raises InvalidArgumentError when the variable holds no number."""
    text = os.environ.get(TIMEOUT, "300")
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if seconds < 0 or seconds != seconds:
        raise InvalidArgumentError(f"{TIMEOUT}={text!r}; expected a number of seconds, 0 to wait for ever")
    return seconds


def last_checkpoint() -> str:
    """The checkpoint that this process saved last; "none" before the first one."""
    # Without importing what writes checkpoints, which a program may never do.
    return getattr(sys.modules.get("oprack.checkpoint"), "last_saved", [""])[0] or "none"


def failure(world: Communicator, reason: str, trace: TracebackType | None = None) -> str:
    """What the user is told when a rank fails: which one, where, why, at which line, and what was saved last."""
    line = line_of(trace)
    saved = last_checkpoint()
    return (
        f"oprack: rank {world.rank} of {world.size} ({os.uname().nodename}, process {os.getpid()}) failed: {reason}"
        + (f"; at {line}" if line else "")
        + f". The last checkpoint that it saved: {saved}. All ranks end"
    )


def line_of(trace: TracebackType | None) -> str:
    """The user's line at which an exception was raised; "" when there is none."""
    frame = None
    while trace is not None:
        frame, trace = trace.tb_frame, trace.tb_next
    return user_line(frame) if frame is not None else ""


@dataclass(eq=False)
class Pending:
    """A collective that runs: of which communicator, what in words, its number there, and the thread that waits."""

    communicator: Communicator
    what: str
    number: int
    thread: int
    since: float = field(default_factory=time.monotonic)
    done: bool = False

    def message(self, limit: float) -> str:
        """What the user is told when the limit is over."""
        c = self.communicator
        frame = sys._current_frames().get(self.thread)
        line = user_line(frame) if frame is not None else ""
        where = f"; called from {line}" if line else ""
        last = "\n    ".join(c.record)
        saved = last_checkpoint()
        return (
            f"oprack: rank {c.rank} of {c.size} ({os.uname().nodename}, process {os.getpid()}) waits for more than "
            f"{limit:g} s in collective number {self.number} of {c.name}: {self.what}{where}. Another rank hangs, has "
            f"ended, or runs something else; {TIMEOUT} sets the limit. {c.hint}"
            f"The last checkpoint that it saved: {saved}. The last collectives of this rank:\n    {last}"
        )


class Watchdog:
    """Looks after all collectives of the process that run."""

    def __init__(self) -> None:
        self._pending: dict[int, Pending] = {}
        self._recent: collections.deque[Pending] = collections.deque(maxlen=RECENT)
        self._thread: threading.Thread | None = None
        self._limit = 0.0

    @contextmanager
    def watching(self, pending: Pending) -> Iterator[None]:
        """Watch a collective for the length of a with block."""
        key = id(pending)
        self._pending[key] = pending
        self._recent.append(pending)
        if self._thread is None:
            self._start()
        try:
            yield
        finally:
            pending.done = True
            self._pending.pop(key, None)

    def recent(self) -> list[str]:
        """The last collectives of this process, oldest first, and which of them it waits in."""
        found = [(p.done, f"number {p.number} of {p.communicator.name}: {p.what}") for p in self._recent.copy()]
        return [what if done else f"{what}, not done" for done, what in found]

    def _start(self) -> None:
        self._limit = time_limit()
        self._thread = threading.Thread(target=self._watch, name="oprack collectives", daemon=True)
        if self._limit:
            self._thread.start()

    def _watch(self) -> None:
        while True:
            time.sleep(min(1.0, self._limit / 4))
            now = time.monotonic()
            for pending in list(self._pending.values()):
                if now - pending.since > self._limit and pending.communicator.timed:
                    print(pending.message(self._limit), file=sys.stderr, flush=True)
                    number, name = pending.number, pending.communicator.name
                    waited = f"it waited for more than {self._limit:g} s in collective number {number} of {name}"
                    pending.communicator.abort(EXIT_STATUS, f"{waited}: {pending.what}")
                    return


WATCHDOG = Watchdog()
