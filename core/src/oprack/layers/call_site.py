"""Which line of the user's program is building: recorded with every op, named in every error."""

from __future__ import annotations

import linecache
import sys
from types import FrameType

DEPTH = 4
"""How many frames of the user's are recorded: the line that called a layer, and who called that."""

# with blocks and decorators of ours run through these
_BETWEEN = ("contextlib", "functools")


def is_ours(frame: FrameType) -> bool:
    """Whether code of oprack or of a pack runs in a frame."""
    name = frame.f_globals.get("__name__") or ""
    top = name.partition(".")[0]
    if top == "oprack" or top.startswith("oprack_") or name in _BETWEEN:
        return True
    return frame.f_code.co_filename.startswith("<frozen ")  # while Python starts or imports


def call_site(start: FrameType | None = None) -> list[str]:
    """Lines `  File "x.py", line 3, in f` and `    code`, outermost frame first; frames of oprack and packs skipped.

    start: the innermost frame; default: the caller's.
    """
    frame: FrameType | None = start or sys._getframe(1)
    while frame is not None and is_ours(frame):
        frame = frame.f_back
    found: list[FrameType] = []
    while frame is not None and len(found) < DEPTH:
        if not is_ours(frame):
            found.append(frame)
        frame = frame.f_back
    lines = []
    for frame in reversed(found):
        code = frame.f_code
        lines.append(f'  File "{code.co_filename}", line {frame.f_lineno}, in {code.co_name}')
        # Programs that are written in a shell or a notebook have lines in linecache alone.
        lines.append(f"    {linecache.getline(code.co_filename, frame.f_lineno, frame.f_globals).strip()}")
    return lines


def user_line(start: FrameType | None = None) -> str:
    """The innermost line of the user's program, `File "x.py", line 3, in f: code`; "" when there is none."""
    lines = call_site(start)
    if not lines:
        return ""
    where, code = lines[-2].strip(), lines[-1].strip()
    return f"{where}: {code}" if code else where
