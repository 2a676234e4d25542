"""How modules that packs fill look up names: `oprack.layers`, `oprack.optimizer`, `oprack.initializer` and the like."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

from oprack.errors import UnknownLayerError
from oprack.names.spellings import ABSENT, same
from oprack.packs.changes import kept_names


def core_and_packs(
    namespace: str, own: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make `__getattr__` and `__dir__` of the module `oprack.<namespace>`.

    The manager is asked for the names of packs each time, so that the module follows `use_manager` and packs that are
    blocked later.

    Args:
        namespace: The name of the module.
        own: The core's own names, each with the module that defines it; a name whose module is `oprack.<namespace>`
            itself is a submodule.

    Returns:
        (`__getattr__`, `__dir__`). The first raises UnknownLayerError (an AttributeError) with close matches,
        AlreadyExistsError when two packs bring a name, and PackImportError.
    """
    own = dict(own or {})

    def get(name: str) -> Any:
        if name in own:
            module = importlib.import_module(own[name])
            if module.__name__ == f"oprack.{namespace}":
                return importlib.import_module(f"{module.__name__}.{name}")
            value = getattr(module, name)
            setattr(sys.modules[f"oprack.{namespace}"], name, value)  # the next look-up does not come here
            return value
        if name.startswith("_"):
            raise AttributeError(f"module 'oprack.{namespace}' has no attribute {name!r}")
        from oprack.packs.manager import default_manager

        try:
            return default_manager().layer(namespace, name)
        except UnknownLayerError:
            found = same(namespace, name)
            if found is ABSENT:
                raise
            return kept_names(vars(sys.modules[f"oprack.{namespace}"])).keep(name, found)

    def names() -> list[str]:
        from oprack.packs.manager import default_manager

        return sorted({*own, *default_manager().layer_names(namespace)})

    return get, names
