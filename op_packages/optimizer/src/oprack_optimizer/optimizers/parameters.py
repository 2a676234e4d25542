"""The parameters that an optimizer is made for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from oprack.errors import InvalidArgumentError
from oprack.layers import Variable


def checked_parameters(given: Any, owner: str) -> tuple[list[Any] | None, list[str] | None]:
    """(parameters, their paths): names, Variables or eager tensors; paths when they come in (path, tensor) pairs.

    Raises InvalidArgumentError for anything else.
    """
    if given is None:
        return None, None
    single = isinstance(given, str) or _is_parameter(given)
    if single or hasattr(given, "parameters") or not isinstance(given, Iterable):
        raise InvalidArgumentError(
            f"{owner}: parameters is {_shown(given)}; expected a list of parameters: "
            + ("put it into a list" if single else "net.parameters()")
        )
    items, paths = list(given), None
    if items and all(isinstance(i, tuple) and len(i) == 2 and isinstance(i[0], str) for i in items):
        paths = [path for path, _ in items]
        items = [p for _, p in items]
        _require_paths(paths, owner)
    for i in items:
        _require_parameter(i, owner)
    return items, paths


def _require_paths(paths: list[str], owner: str) -> None:
    """Paths name the state of an optimizer, so each stands for one parameter."""
    twice = sorted({path for path in paths if paths.count(path) > 1 or not path})
    if twice:
        raise InvalidArgumentError(
            f"{owner}: parameters has the path {twice[0]!r} several times, or an empty one; expected one path "
            "for each parameter, as net.named_parameters() gives them; put a word before those of each network"
        )


def _require_parameter(item: Any, owner: str) -> None:
    if not (isinstance(item, str) or _is_parameter(item)):
        raise InvalidArgumentError(
            f"{owner}: parameters has {_shown(item)}; expected parameters, as net.parameters() gives them, or "
            "names of parameters of a program"
        )


def _is_parameter(value: Any) -> bool:
    return isinstance(value, Variable) or hasattr(value, "__oprack_value__")


def _shown(value: Any) -> str:
    return value.describe() if hasattr(value, "describe") else f"{repr(value)[:60]} ({type(value).__name__})"
