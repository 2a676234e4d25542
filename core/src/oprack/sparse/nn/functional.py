"""Functions of networks over sparse tensors that a pack brings: `oprack.sparse.nn.functional.relu`."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module 'oprack.sparse.nn.functional' has no attribute {name!r}")
    from oprack.packs.manager import default_manager

    return getattr(default_manager().layer("sparse", "nn").functional, name)


def __dir__() -> list[str]:
    from oprack.packs.manager import default_manager

    return sorted(default_manager().layer("sparse", "nn").functional.__all__)
