"""The names of Paddle, and where they lead: the table paddle_names.toml and the list paddle_signatures.txt beside this.

The plugin paddle serves the namespace `paddle` by them. oprack itself has those names that need nothing of the plugin,
so that `oprack.static.Program` and `oprack.regularizer.L2Decay` are what they are in Paddle, and says of the others
where they are.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import Any

from oprack.names.tables import homes, text

ABSENT: Any = object()
"""What `found` gives for a name that oprack does not have without the plugin."""

_SPACES = {
    "oprack": "", "functional": "nn.functional", "lr": "optimizer.lr", "initializer": "nn.initializer",
    "metrics": "metric", "tensor": "Tensor",
}  # fmt: skip
"""Namespaces that oprack calls otherwise than Paddle."""


@cache
def table() -> dict[str, Any]:
    """The table; paddle_names.toml says what is in it."""
    import tomllib

    return tomllib.loads(text("paddle_names.toml"))


@cache
def missing() -> dict[str, str]:
    """Paddle's names that are not served: name -> the reason."""
    return {name: row["why"] for row in table()["missing"] for name in row["names"].split()}


@cache
def signatures() -> dict[str, str]:
    """Paddle's public names: name -> the text of its parameters; a value has none."""
    found = {}
    for line in text("paddle_signatures.txt").splitlines():
        if not line.startswith("#"):
            name, bracket, rest = line.partition("(")
            found[name] = rest[:-1] if bracket else ""
    return found


@cache
def listed(space: str) -> tuple[str, ...]:
    """Paddle's public names in a module.

    Args:
        space: The module below `paddle`; "" for `paddle` itself.

    Returns:
        The names, those that are not served among them.
    """
    return tuple(name.rpartition(".")[2] for name in signatures() if name.rpartition(".")[0] == space)


def door(space: str) -> tuple[str, ...] | None:
    """Which names of a module of Paddle oprack has without the plugin.

    Args:
        space: The module below `paddle`; "" for `paddle` itself.

    Returns:
        The names; None for a module of which it has none.
    """
    row = table()["modules"].get(space, {})
    names = row.get("without_plugin")
    if names != "*":
        return None if names is None else tuple(names.split())
    return tuple(dict.fromkeys(n for home in row["same"] for n in dir(importlib.import_module(home)) if n[0] != "_"))


def is_door(space: str) -> bool:
    """Whether oprack has names of a module of Paddle without the plugin."""
    return "without_plugin" in table()["modules"].get(space, {})


def found(space: str, name: str) -> Any:
    """What a name of Paddle is in oprack, without the plugin.

    Args:
        space: Where it was looked for: "oprack", "nn" or another namespace, or a module of Paddle.
        name: The name.

    Returns:
        The function, class, module or value; ABSENT when the table does not lead from there to oprack.
    """
    module = _SPACES.get(space, space)
    room = f"{module}.{name}".lstrip(".")
    if is_door(room):
        return importlib.import_module(f"oprack.{room}")
    if not is_door(module):
        return ABSENT
    row = table()["modules"][module]
    asked = {f"oprack.{module}".rstrip("."), f"oprack.{space}"}  # it does not have the name, and would ask here again
    if row["without_plugin"] != "*" and name not in row["without_plugin"].split():
        return ABSENT
    if name in (elsewhere := table()["renamed"].get(module, {})):
        return pkgutil.resolve_name(elsewhere[name])
    for home in row["same"]:
        if home not in asked:
            try:
                return getattr(importlib.import_module(home), name)
            except (AttributeError, LookupError):
                continue
    return ABSENT


def where(space: str, name: str) -> str:
    """The end of a message about a name of Paddle that oprack does not have without the plugin.

    Args:
        space: Where it was looked for, as for `found`.
        name: The name.

    Returns:
        "; ..."; "" for a name that is none of Paddle's, or that another distribution of oprack brings.
    """
    module = _SPACES.get(space, space)
    full = f"{module}.{name}".lstrip(".")
    if full not in signatures() or any(name in names for kinds in homes().values() for names in kinds.values()):
        return ""
    if full in missing():
        return f"; Paddle's is not served: {missing()[full]}"
    return f"; Paddle's is oprack_paddle.{full}, which the plugin oprack-paddle brings"
