"""The modules of Paddle's namespace, whose names are found on their first use by the table of oprack.names.paddle."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from functools import cache
from types import ModuleType
from typing import Any

from oprack.errors import NotFoundError, did_you_mean
from oprack.names.paddle import ABSENT, listed, missing, table


class Namespace(ModuleType):
    """A module of Paddle.

    Args:
        space: Its name below `paddle`; "" for `paddle` itself.
    """

    def __init__(self, space: str) -> None:
        super().__init__(f"paddle.{space}".rstrip("."), f"Paddle's module {space or 'paddle'}, served by oprack.")
        self.__path__: list[str] = []  # modules below it are found by import, too
        self.__file__ = __file__
        self._space = space

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__version__":
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        found = value = lookup(self._space, name)
        if found is ABSENT:
            raise AttributeError(self._advice(name))
        vars(self)[name] = value
        return value

    def _advice(self, name: str) -> str:
        full = f"{self._space}.{name}".lstrip(".")
        said = f"module {self.__name__!r}, served by oprack, has no attribute {name!r}"
        if reason := missing().get(full):
            return f"{said}: {reason}"
        return said + did_you_mean(name, names_of(self._space))

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *names_of(self._space)})


_modules: dict[str, Namespace] = {}


def module(space: str) -> Namespace:
    """The module of a space, made once.

    Args:
        space: Its name below `paddle`; "" for `paddle` itself.

    Returns:
        The module.

    Raises:
        KeyError: There is none.
    """
    if space not in _modules:
        if space not in table()["modules"]:
            raise KeyError(space)
        _modules[space] = Namespace(space)
    return _modules[space]


def is_module(space: str) -> bool:
    """Whether Paddle's namespace has a module of that name here."""
    return space in table()["modules"]


@cache
def names_of(space: str) -> tuple[str, ...]:
    """Paddle's public names in a space that are served, sorted."""
    head = f"{space}." if space else ""
    full = (f"{head}{name}" for name in listed(space))
    served = [name.removeprefix(head) for name in full if name not in missing()]
    below = (m.removeprefix(head) for m in table()["modules"] if m.startswith(head) and m != space)
    return tuple(sorted({n for n in (*served, *below) if n and "." not in n}))


def lookup(space: str, name: str) -> Any:
    """What a name of Paddle is.

    Args:
        space: The module below `paddle`; "" for `paddle` itself.
        name: The name in it.

    Returns:
        The function, class, module or value; ABSENT for a name that is not served.
    """
    full = f"{space}.{name}".lstrip(".")
    if is_module(full) and full not in table()["callable_modules"]:
        return module(full)
    if full in missing():
        return ABSENT
    place, found = _found(space, name)
    if found is ABSENT:
        return in_place(space, name)
    if place not in table()["plain"]:
        _install_members()
        if space.split(".")[0] in _OF_LAYERS or name in _NEED_LAYERS:
            _install_layers()
    return found if place in table()["modules"][space].get("written", ()) else _made(full, found)


def _found(space: str, name: str) -> tuple[str, Any]:
    """Where a name is, and what; ABSENT where no place of its module has it."""
    row = table()["modules"][space]
    for path in row.get("written", ()):
        home = importlib.import_module(f"{__package__}.{path}")
        found = vars(home).get(name, ABSENT)
        if found is not ABSENT and (name in getattr(home, "__all__", ()) or _is_of(found, home)):
            return path, found
    target = table()["renamed"].get(space, {}).get(name)
    if target is not None:
        return target, pkgutil.resolve_name(target)
    for path in row.get("same", ()):
        try:
            return path, getattr(_home(path), name)
        except (AttributeError, NotFoundError):
            continue
    return "", ABSENT


def _is_of(found: Any, home: ModuleType) -> bool:
    """Whether a module defines what it has under a name, and did not import it."""
    return getattr(found, "__module__", None) == home.__name__


@cache
def _install_members() -> None:
    """Give Paddle's methods to tensors, before the first function is found that makes or takes one."""
    from oprack_paddle.members import install

    install(_function)


def _function(space: str, name: str) -> Any:
    """A function of a space; None for a name that is not served, or not as a method of tensors."""
    found = ABSENT if f"Tensor.{name}" in missing() else lookup(space, name)
    return None if found is ABSENT else found


_OF_LAYERS = frozenset(["nn", "optimizer", "vision", "amp", "jit"])
_NEED_LAYERS = frozenset(["Model", "DataParallel", "summary", "flops", "save", "load"])


@cache
def _install_layers() -> None:
    """Give Paddle's methods to layers and optimizers, before the first of them is found."""
    from oprack_paddle.members import install_layers

    install_layers()


def _home(path: str) -> Any:
    try:
        return sys.modules[path]
    except KeyError:
        return pkgutil.resolve_name(path)


def _made(full: str, found: Any) -> Any:
    from oprack_paddle.adapter import adapted

    return adapted(full, found) if callable(found) else found


def in_place(space: str, name: str) -> Any:
    """The function `tanh_` of `tanh`: its result takes the tensor's place."""
    if not name.endswith("_") or name.startswith("_"):
        return ABSENT
    function = lookup(space, name[:-1])
    if function is ABSENT:
        return ABSENT
    from oprack_paddle.members.in_place import in_place_of

    return in_place_of(name, function)
