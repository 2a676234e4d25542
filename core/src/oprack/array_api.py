"""The Python array API standard (2024.12) on tensors, as the pack array_api brings it: `oprack.array_api.sin(x)`.

`x.__array_namespace__()` returns this module, so libraries that are written against the standard take tensors.
"""

from __future__ import annotations

from typing import Any

from oprack.layers.namespace import core_and_packs
from oprack.packs.changes import FoundNames

__array_api_version__ = "2024.12"
_getattr, _dir = core_and_packs("array_api")
_found = FoundNames(globals())


def __getattr__(name: str) -> Any:
    return _found.keep(name, _getattr("array_namespace_info" if name == "__array_namespace_info__" else name))


def __dir__() -> list[str]:
    return ["__array_api_version__", "__array_namespace_info__", *_dir()]
