"""`save` and `load`: nested states of an eager training in one file, such as a net, its optimizer and the epoch."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from oprack.errors import CorruptParameterError, InvalidArgumentError
from oprack.io.state import check_array, load_state, save_state

_TREE = "tree"
_SEPARATOR = "\x1f"  # joins the keys of a path; no name that is typed has it
_DEEPEST = 100  # levels, far from what recursion allows
_LARGEST = 1 << 4096  # Python reads no integers of many digits
_KINDS = {"dict": dict, "list": list, "tuple": tuple}


def save(obj: Any, path: str | os.PathLike[str]) -> None:
    """Write dicts and lists of tensors, arrays, numbers and text to one file, complete or not at all, without pickle.

    `oprack.save({"net": net.state_dict(), "optimizer": adam.state_dict(), "epoch": 3}, "checkpoint.npz")`

    Args:
        obj: What to save.
        path: The file; NumPy's own .npz with an entry of JSON.

    Raises:
        InvalidArgumentError: There is something else in it, such as an array of text or of objects, a key that is no
            text, or it is nested deeper than 100 levels.
        IsADirectoryError: The path names a directory.
    """
    arrays: dict[str, Any] = {}
    tree = _described(obj, (), arrays)
    save_state(path, {**arrays, _TREE: tree})


def load(path: str | os.PathLike[str]) -> Any:
    """Read what `save` wrote, with NumPy arrays for tensors. Nothing is unpickled; sizes are checked first.

    Args:
        path: The file.

    Returns:
        The object.

    Raises:
        NotFoundError: There is no such file.
        CorruptParameterError: Its contents are broken; OversizedTensorError when they ask for more than there is.
    """
    found = load_state(path)
    if _TREE not in found:
        raise CorruptParameterError(
            f"{os.fspath(path)!r} is no file of oprack.save; oprack.io.load_state reads those of oprack.io.save_state"
        )
    tree = found.pop(_TREE)
    try:
        return _rebuilt(tree, (), found)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise CorruptParameterError(f"{os.fspath(path)!r}: its entry of JSON was altered: {error}") from error


def _described(value: Any, path: tuple[str, ...], arrays: dict[str, Any]) -> Any:
    """The value for JSON: [kind, parts]; arrays go by their path."""
    if len(path) > _DEEPEST:
        raise InvalidArgumentError(
            f"save: {_where(path[:3])}... is nested deeper than {_DEEPEST} levels, or contains itself; expected fewer"
        )
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str) or not _is_text(key) or _SEPARATOR in key or "\0" in key:
                raise InvalidArgumentError(
                    f"save: {_where(path)} has the key {key!r}; expected text without zeros and separators"
                )
        return ["dict", {k: _described(v, (*path, k), arrays) for k, v in value.items()}]
    if isinstance(value, list | tuple):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return [kind, [_described(v, (*path, str(i)), arrays) for i, v in enumerate(value)]]
    if isinstance(value, str):  # NumPy's text is text, too
        if not _is_text(value):
            raise InvalidArgumentError(f"save: {_where(path)} is {value!r}, half a character; expected whole text")
        return ["value", str(value)]
    if hasattr(value, "__array__"):
        check_array(value, f"save: {_where(path)}")
        arrays[_SEPARATOR.join(("", *path))] = value
        return ["array", None]
    if value is None or isinstance(value, bool | float) or (isinstance(value, int) and abs(value) < _LARGEST):
        return ["value", value]
    raise InvalidArgumentError(
        f"save: {_where(path)} is a {type(value).__name__}; expected tensors, arrays, numbers, text, and dicts and "
        "lists of them; of a net or an optimizer save its state_dict()"
    )


def _is_text(text: str) -> bool:
    """Whether it has no halves of characters, two of which JSON would make one."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _where(path: tuple[str, ...]) -> str:
    return "obj" + "".join(f"[{key!r}]" for key in path)


def _rebuilt(tree: Any, path: tuple[str, ...], arrays: Mapping[str, Any]) -> Any:
    kind, content = tree
    if kind == "array":
        return arrays[_SEPARATOR.join(("", *path))]
    if kind == "value":
        return content
    if kind == "dict":
        return {k: _rebuilt(v, (*path, k), arrays) for k, v in content.items()}
    return _KINDS[kind](_rebuilt(v, (*path, str(i)), arrays) for i, v in enumerate(content))
