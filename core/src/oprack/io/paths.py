"""From the name of a variable to a file inside a model's directory; a name is untrusted."""

from __future__ import annotations

import os
import re
from pathlib import Path

from oprack.errors import UnsafeNameError

_MAX_PART = 255  # bytes of one file name on common file systems
_MAX_PARTS = 64


def variable_path(directory: str | os.PathLike[str], name: str) -> Path:
    """The file of variable `name` inside `directory`; slashes in the name make directories, as in Paddle.

    Raises:
        UnsafeNameError: For a name that leads out of the directory (`..`, an absolute path, a drive, a symbolic link)
            or can't be a file name.
    """
    why = _objection(name)
    if why is not None:
        raise UnsafeNameError(
            f"variable {name[:200]!r} can't be a file in {os.fspath(directory)!r}: {why}; expected a plain name such "
            "as 'fc_0.w_0', so rename the variable or use a combined parameter file"
        )
    base = Path(directory)
    path = base / name
    try:
        inside = _resolved(path).is_relative_to(base.resolve())
    except (OSError, RuntimeError):  # symbolic links that run in a circle
        inside = False
    if not inside:
        raise UnsafeNameError(
            f"variable {name!r}: {os.fspath(path)!r} is a symbolic link that leads out of {os.fspath(directory)!r}; "
            "expected a file inside the model's directory, so copy the file there"
        )
    return path


def _resolved(path: Path) -> Path:
    """Where a path leads; an error for links in a circle, about which `resolve()` says nothing from Python 3.13 on."""
    try:
        return path.resolve(strict=True)
    except (FileNotFoundError, NotADirectoryError):
        return path.resolve()


def _objection(name: str) -> str | None:
    if not name:
        return "the name is empty"
    if "\0" in name:
        return "the name has a NUL character"
    # Backslashes and drives mean something on Windows only, but a model should be safe wherever it goes
    if name[0] in "/\\":
        return "the name is an absolute path"
    if re.match("[A-Za-z]:", name):
        return "the name begins with a drive"
    parts = re.split(r"[/\\]", name)
    if ".." in parts or "." in parts:
        return "the name has a part '..' or '.'"
    if len(parts) > _MAX_PARTS:
        return f"the name has {len(parts)} parts; expected at most {_MAX_PARTS}"
    if "" in parts:
        return "the name has an empty part"
    if any(len(part.encode("utf-8", "surrogatepass")) > _MAX_PART for part in parts):
        return f"the name has a part of more than {_MAX_PART} bytes"
    return None
