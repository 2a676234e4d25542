"""The thread of background.c, which runs stretches while the Python thread that it belongs to goes on."""

from __future__ import annotations

from typing import Any

from oprack_onednn.c.runner import RUNNER, NativeStretch, ThreadState


class Background:
    """Runs stretches beside one Python thread, which lends its scratch memory meanwhile.

    Args:
        owner: The state of the Python thread.

    Attributes:
        state: What stretches that run here are made with, in the place of the owner's.
    """

    def __init__(self, owner: ThreadState) -> None:
        self.state, self._owner = ThreadState(), owner
        self._held: tuple[Any, ...] = ()  # what the run under way reads and writes
        self._status = self._lent = 0

    @property
    def busy(self) -> bool:
        """Whether a run is under way."""
        library = RUNNER.library
        return bool(self._held) and library is not None and bool(library.oprack_background_busy())

    def start(self, stretch: NativeStretch, *held: Any) -> bool:
        """Run a stretch once the one under way has ended.

        Args:
            stretch: A stretch that was made with `state`, and needs no more scratch memory than the owner has.
            *held: What it reads and writes.

        Returns:
            Whether there is a thread that does.
        """
        self.settle()
        owner, state, library = self._owner, self.state, RUNNER.library
        state.arena, state.capacity = owner.arena, owner.capacity
        state.threads = 0  # so that the run sets the number, in its own thread
        self._held = stretch, *held
        # the owner would ask for more before it used its scratch memory, and so wait until this run is over
        self._lent, owner.capacity = owner.capacity, 0
        if library is not None and library.oprack_background_start(stretch.pointer):
            return True
        self.settle()
        return False

    def wait(self) -> int:
        """As `settle`; returns the status of the first run that failed since the last call, or 0."""
        self.settle()
        status, self._status = self._status, 0
        return status

    def settle(self) -> None:
        """Wait for the run under way, and help with it; the scratch memory is the owner's again."""
        if not self._held:
            return
        if RUNNER.library is not None:
            status = RUNNER.library.oprack_background_wait()
            self._status = self._status or status
        self._owner.capacity, self._lent, self._held = self._lent, 0, ()
