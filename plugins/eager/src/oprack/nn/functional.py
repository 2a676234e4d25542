"""Functions of networks with the signatures of Paddle 2: `oprack.nn.functional.cross_entropy(logits, label)`.

They are those that packs write, methods of tensors, and ops under their own type; see oprack.functional.written.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module 'oprack.nn.functional' has no attribute {name!r}")
    from oprack.errors import NotFoundError
    from oprack.functional.tensor import public
    from oprack.names.spellings import ABSENT, same

    try:
        return public(name)
    except NotFoundError:
        if (other := same("functional", name)) is ABSENT:
            raise
        return other


def __dir__() -> list[str]:
    from oprack.functional.tensor import public_names

    return public_names()
