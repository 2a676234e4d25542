"""The watchdog: ends a program whose collective waits for longer than the limit, and says what it waited for."""

from __future__ import annotations

import collections
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
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
    """A collective that runs.

    Attributes:
        communicator: Of which communicator.
        what: The collective in words, with dtype and shape.
        number: Its number there.
        thread: The thread that waits for it, or has enqueued it.
        since: When it began to wait, or was enqueued.
        done: Whether it is known to be done.
        ends: Asks the device whether it is done, without waiting, where it was enqueued there; may raise.
    """

    communicator: Communicator
    what: str
    number: int
    thread: int = field(default_factory=threading.get_ident)
    since: float = field(default_factory=time.monotonic)
    done: bool = False
    ends: Callable[[], bool] | None = None

    def over(self) -> bool:
        """Whether it is done. Raises what the device raises when a collective failed there."""
        if not self.done and self.ends is not None and self.ends():
            self.done, self.ends = True, None
        return self.done

    @property
    def place(self) -> str:
        """Which collective it is."""
        return f"collective number {self.number} of {self.communicator.name}: {self.what}"

    def words(self) -> str:
        """The collective, and whether it is done."""
        try:
            marked = "" if self.over() else ", not done"
        except Exception as error:
            marked = f", failed: {error}"
        return f"number {self.number} of {self.communicator.name}: {self.what}{marked}"

    def message(self, why: str, recent: Sequence[str]) -> str:
        """What the user is told when it has waited for too long, or failed."""
        c = self.communicator
        frame = sys._current_frames().get(self.thread)
        line = user_line(frame) if frame is not None else ""
        where = "" if not line else f"; called from {line}" if self.ends is None else f"; its thread is at {line} now"
        last = "\n    ".join(recent)
        saved = last_checkpoint()
        return (
            f"oprack: rank {c.rank} of {c.size} ({os.uname().nodename}, process {os.getpid()}) {why} in "
            f"{self.place}{where}. Another rank hangs, has ended, or runs something else; "
            f"{TIMEOUT} sets the limit. {c.hint}"
            f"The last checkpoint that it saved: {saved}. The last collectives of this rank:\n    {last}"
        )


class Watchdog:
    """Looks after all collectives of the process that run."""

    def __init__(self) -> None:
        self._pending: dict[int, Pending] = {}
        self._enqueued: dict[Communicator, collections.deque[Pending]] = {}  # a device runs those of each in order
        self._recent: collections.deque[Pending] = collections.deque(maxlen=RECENT)
        self._thread: threading.Thread | None = None
        self._limit = 0.0

    def note(self, pending: Pending) -> Pending:
        """Remember a collective, for when the program ends badly; returns it."""
        self._recent.append(pending)
        if self._thread is None:
            self._start()
        return pending

    @contextmanager
    def watching(self, pending: Pending) -> Iterator[None]:
        """Watch a collective for the length of a with block, in which the thread waits for it."""
        pending.thread, pending.since = threading.get_ident(), time.monotonic()
        key = id(pending)
        self._pending[key] = pending
        try:
            yield
        finally:
            pending.done = pending.ends is None
            self._pending.pop(key, None)

    def follow(self, pending: Pending, ends: Callable[[], bool] | None) -> None:
        """Watch a collective that was enqueued on a device, until that says that it is done.

        Args:
            pending: The collective.
            ends: Asks the device, without waiting for it; from any thread. None: it runs nowhere else.
        """
        if ends is None:
            return
        pending.ends, pending.done, pending.since = ends, False, time.monotonic()
        if self._limit:
            self._enqueued.setdefault(pending.communicator, collections.deque()).append(pending)

    def recent(self) -> list[str]:
        """The last collectives of this process, oldest first, and which of them are not done."""
        return [pending.words() for pending in self._recent.copy()]

    def _start(self) -> None:
        self._limit = time_limit()
        self._thread = threading.Thread(target=self._watch, name="oprack collectives", daemon=True)
        if self._limit:
            self._thread.start()

    def _watch(self) -> None:
        while True:
            time.sleep(min(1.0, self._limit / 4))
            for pending in [*self._pending.values(), *self._first_enqueued()]:
                why = ""
                try:
                    late = time.monotonic() - pending.since > self._limit
                    if late and (pending.ends is None or not pending.over()):
                        why = f"waits for more than {self._limit:g} s"
                except Exception as error:  # of the device: a collective failed there
                    why = f"failed ({type(error).__name__}: {error})"
                if why and pending.communicator.timed:
                    print(pending.message(why, self.recent()), file=sys.stderr, flush=True)
                    said = why.replace("waits", "it waited", 1) if why.startswith("waits") else f"it {why}"
                    number, name = pending.number, pending.communicator.name
                    pending.communicator.abort(
                        EXIT_STATUS, f"{said} in collective number {number} of {name}: {pending.what}"
                    )
                    return

    def _first_enqueued(self) -> Iterator[Pending]:
        """Of each communicator the first collective that a device has not done, or that failed there."""
        for queue in list(self._enqueued.values()):
            try:
                while queue and queue[0].over():
                    queue.popleft()
            except Exception:
                queue[0].since = 0.0  # asked again, which says what failed
            if queue:
                yield queue[0]


WATCHDOG = Watchdog()
