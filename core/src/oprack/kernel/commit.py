"""The last step of a kernel that overwrites memory of its caller and returns more than that."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from operator import call
from typing import Any


class Commit:
    """Writes to memory of the caller and notes that this is done, as one step that Python can't interrupt.

    A kernel that writes a parameter through `out` and returns the optimizer's new state must not be interrupted between
    the two, but `KeyboardInterrupt` may be raised after every call. So it computes everything else first, lets one
    function of C write, and returns the result of the commit:

        commit = Commit((out, new_moment))
        commit(write, ...)
        return commit.result

    Who catches an interruption asks `result_of` whether the kernel had written by then. It finds a commit in the local
    variables of the functions that were running, so one that writes on behalf of another, and has returned by then,
    returns its commit or is given one, and the kernel keeps it until it returns itself.

    Args:
        result: What the kernel returns; it may be set later, before something is written.

    Attributes:
        result: The same.
        done: Whether it is written. Who writes by threads in which nothing is interrupted sets it.
    """

    # as long as __init__ has not ended, which may be interrupted, too
    result: Any = None
    done = False

    def __init__(self, result: Any = None) -> None:
        self.result = result

    def __call__(self, write: Callable[..., Any], *arguments: Any) -> None:
        """Call a function of C that writes.

        Args:
            write: The function. Python code could be interrupted within it.
            *arguments: What it takes.
        """
        # C code makes both calls, and Python handles signals only when deque has returned.
        deque(map(call, (partial(write, *arguments), partial(setattr, self, "done", True))), 0)

    @staticmethod
    def result_of(error: BaseException) -> Any:
        """Find the commit of an interrupted kernel in the frames that an exception came through.

        Args:
            error: The exception.

        Returns:
            What the kernel was about to return, if it had written; else None.
        """
        traceback, result = error.__traceback__, None
        while traceback is not None:
            for value in traceback.tb_frame.f_locals.values():
                if type(value) is Commit and value.done:
                    result = value.result
            traceback = traceback.tb_next
        return result
