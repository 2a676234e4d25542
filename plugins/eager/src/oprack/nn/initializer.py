"""The names of oprack.initializer, where Paddle 2 has them: `oprack.nn.initializer.XavierUniform()`."""

from __future__ import annotations

from typing import Any

from oprack import initializer


def __getattr__(name: str) -> Any:
    return getattr(initializer, name)


def __dir__() -> list[str]:
    return dir(initializer)
