"""Tells an exception that came from outside, such as a timer's, from one that the code raised which ran just then."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from types import CodeType
from typing import Any


def is_interruption(error: BaseException) -> bool:
    """Whether an exception interrupted the code that it came out of, instead of being raised by it.

    These are KeyboardInterrupt, and whatever the handler of a signal raised, such as a TimeoutError after an alarm.
    Whoever catches errors of packs, ops or kernels lets such an exception pass as it is: it says nothing about them.

    An exception that another thread set by PyThreadState_SetAsyncExc has no frame of its own, and can't be told from
    one of the code.

    Args:
        error: The exception, where it was caught.

    Returns:
        Whether it is one.
    """
    if isinstance(error, KeyboardInterrupt):
        return True
    step, codes = error.__traceback__, set(_handlers())
    while step is not None:
        if step.tb_frame.f_code in codes:
            return True
        step = step.tb_next
    return False


def _handlers() -> Iterator[CodeType]:
    """The code of the signal handlers that are in force; they still are while what they raised is on its way."""
    import signal  # not before something failed

    for number in signal.valid_signals():
        handler: Any = signal.getsignal(number)
        while isinstance(handler, partial):
            handler = handler.func
        handler = getattr(handler, "__func__", handler)
        # of an object that is called like a function, the code of its class
        code = getattr(handler, "__code__", None) or getattr(vars(type(handler)).get("__call__"), "__code__", None)
        if isinstance(code, CodeType):
            yield code


def let_interruptions_pass() -> None:
    """Raise the exception that is being handled once more if it is an interruption; for the start of except clauses."""
    error = sys.exception()
    if error is not None and is_interruption(error):
        raise error
