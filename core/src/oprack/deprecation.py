"""Names and arguments of the release before: they work for one release more, and say what to write instead."""

from __future__ import annotations

import warnings

from oprack.errors import InvalidArgumentError


def deprecated(old: str, advice: str, *, stacklevel: int = 1) -> None:
    """Warn that something is deprecated.

    Args:
        old: what was used, as the user wrote it.
        advice: what to write instead.
        stacklevel: 1 points at the caller of the function that calls this one.
    """
    text = f"{old} is deprecated and goes with the next release; {advice}"
    warnings.warn(text, DeprecationWarning, stacklevel=stacklevel + 2)


def refuse_layout(where: str, layout: str, *, stacklevel: int = 1) -> None:
    """Take `layout="any"` with a warning: all arrays are in the layout of the program now.

    Args:
        where: what got the argument, such as LoDTensor.
        layout: its value.
        stacklevel: as in `deprecated`.

    Raises:
        InvalidArgumentError: It is another layout, which no kernel has any more.
    """
    if layout != "any":
        raise InvalidArgumentError(
            f"{where}: layout={layout!r}; expected none: arrays are in the layout of the program, NCHW for images, and "
            "a kernel that works on another one transposes what it reads and returns"
        )
    deprecated(f"{where}(..., layout='any')", "leave layout= out", stacklevel=stacklevel + 1)
