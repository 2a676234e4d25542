"""The last step of a kernel that overwrites memory of its caller and returns more than that."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from operator import call
from typing import Any


class Commit:
    """Writes to memory of the caller, and notes that it is done, without a point between at which Python can stop.

    A kernel that gets a parameter's memory through `out` and returns the new state of the optimizer beside it must not
    be interrupted when one is written and the other is on its way: `KeyboardInterrupt` may come behind every call. So
    it works out all else first, has one function of C write, and returns the result of the commit:

        commit = Commit((out, new_moment))
        commit(write, ...)
        return commit.result

    Whoever catches an interruption finds the commit in the frames that it came through.

    Args:
        result: What the kernel returns.
        done: Whether it is written already, by threads in which nothing is interrupted.
    """

    _done: Sequence[bool] = ()  # of one whose making was interrupted

    def __init__(self, result: Any, done: bool = False) -> None:
        self.result = result
        if done:
            self._done = (True,)

    def __call__(self, write: Callable[..., Any], *arguments: Any) -> None:
        """Call a function of C that writes.

        Args:
            write: The function. Python code could be interrupted within it.
            *arguments: What it takes.
        """
        done: list[bool] = []
        self._done = done
        # Both calls are made by C, and signals are handled behind the call of deque.
        deque(map(call, (partial(write, *arguments), partial(done.append, True))), 0)

    @staticmethod
    def result_of(error: BaseException) -> Any:
        """The result of the kernel that an interruption came through behind its commit; None of any other one."""
        step, found = error.__traceback__, None
        while step is not None:
            for value in step.tb_frame.f_locals.values():
                if type(value) is Commit and value._done:
                    found = value.result
            step = step.tb_next
        return found
