"""Which lines of the user's program called into oprack: recorded with each op, and named by errors."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from oprack.errors import OprackError

DEPTH = 4
"""How many of the user's frames are recorded: the line that called a layer, and its callers."""

# Modules of the standard library that run between our frames, for with blocks and decorators.
_TRANSPARENT = ("contextlib", "functools")


@contextmanager
def errors_at_user_line() -> Iterator[None]:
    """Errors of ours that leave the with block name the line of the user's program, once."""
    try:
        yield
    except OprackError as e:
        name_user_line(e)
        raise


def name_user_line(error: OprackError) -> None:
    """Let an error of ours that was caught name the line of the user's program, once."""
    where, text = user_line(), str(error)
    if where and "\n  at File " not in text:
        error.args = (f"{text}\n  at {where}", *error.args[1:])


def user_line(start: FrameType | None = None) -> str:
    """The innermost line of the user's program, `File "x.py", line 3, in f: code`; "" when there is none.

    Args:
        start: The innermost frame to look at; default: the caller's.
    """
    lines = user_stack(start)
    if not lines:
        return ""
    where, code = lines[-2].strip(), lines[-1].strip()
    return f"{where}: {code}" if code else where


def user_stack(start: FrameType | None = None) -> list[str]:
    """The user's frames as Python's tracebacks show them, outermost first.

    Args:
        start: The innermost frame to look at; default: the caller's.

    Returns:
        For each frame `  File "x.py", line 3, in f` and `    code`.
    """
    frame: FrameType | None = start or sys._getframe(1)
    frames: list[FrameType] = []
    while frame is not None and len(frames) < DEPTH:
        if not is_ours(frame):
            frames.append(frame)
        frame = frame.f_back
    lines = []
    for frame in reversed(frames):
        code = frame.f_code
        lines.append(f'  File "{code.co_filename}", line {frame.f_lineno}, in {code.co_name}')
        # Programs that are written in a shell or a notebook have lines in linecache alone.
        lines.append(f"    {linecache.getline(code.co_filename, frame.f_lineno, frame.f_globals).strip()}")
    return lines


def is_ours(frame: FrameType) -> bool:
    """Whether code of oprack or of a pack runs in a frame."""
    name = frame.f_globals.get("__name__") or ""
    top = name.partition(".")[0]
    if top == "oprack" or top.startswith("oprack_") or name in _TRANSPARENT:
        return True
    return frame.f_code.co_filename.startswith("<frozen ")  # while Python starts or imports
