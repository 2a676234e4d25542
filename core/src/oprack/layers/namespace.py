"""Modules that packs fill: `oprack.layers`, `oprack.optimizer`, `oprack.initializer` and the like."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def core_and_packs(
    namespace: str, homes: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of the module `oprack.<namespace>`.

    homes: names of the core's own and their modules. What packs bring is asked of the manager each time, so that a
    module follows `use_manager` and packs that are blocked later. `__getattr__` raises UnknownLayerError (an
    AttributeError) with close matches, AlreadyExistsError when two packs bring a name, PackImportError.
    """
    own = dict(homes or {})

    def get(name: str) -> Any:
        if name in own:
            home = importlib.import_module(own[name])
            if home.__name__ == f"oprack.{namespace}":
                return importlib.import_module(f"{home.__name__}.{name}")
            found = getattr(home, name)
            setattr(sys.modules[f"oprack.{namespace}"], name, found)  # asked for once only
            return found
        if name.startswith("_"):
            raise AttributeError(f"module 'oprack.{namespace}' has no attribute {name!r}")
        from oprack.packs.manager import default_manager

        return default_manager().layer(namespace, name)

    def names() -> list[str]:
        from oprack.packs.manager import default_manager

        return sorted({*own, *default_manager().layer_names(namespace)})

    return get, names
