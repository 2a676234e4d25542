"""Parts of networks over sparse tensors that a pack brings: `oprack.sparse.nn.SubmConv3D`.

This module stands for the object `nn` of the namespace `oprack.sparse`, so that `import oprack.sparse.nn` works.
"""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module 'oprack.sparse.nn' has no attribute {name!r}")
    if name == "functional":
        return importlib.import_module("oprack.sparse.nn.functional")
    from oprack.packs.manager import default_manager

    return getattr(default_manager().layer("sparse", "nn"), name)


def __dir__() -> list[str]:
    from oprack.packs.manager import default_manager

    return sorted(default_manager().layer("sparse", "nn").__all__)
