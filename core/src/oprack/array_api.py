"""The Python array API standard (2024.12) on tensors, as the pack array_api brings it: `oprack.array_api.sin(x)`.

`x.__array_namespace__()` returns this module, so libraries that are written against the standard take tensors.
"""

from __future__ import annotations

from typing import Any

from oprack.layers.namespace import core_and_packs

__array_api_version__ = "2024.12"
_getattr, _dir = core_and_packs("array_api")
_found: set[str] = set()
_listens = False


def __getattr__(name: str) -> Any:
    from oprack.packs.changes import on_change

    global _listens
    found = _getattr("array_namespace_info" if name == "__array_namespace_info__" else name)
    if not _listens:
        on_change(_forget)
        _listens = True
    _found.add(name)
    globals()[name] = found  # the next time without a question, until packs change
    return found


def _forget() -> None:
    for name in _found:
        globals().pop(name, None)
    _found.clear()


def __dir__() -> list[str]:
    return ["__array_api_version__", "__array_namespace_info__", *_dir()]
