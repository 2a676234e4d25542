"""Every installed op as a function: `oprack.functional.relu(x)`.

Inputs go in slot order, attributes as keywords; see `help(oprack.functional.relu)`. With tensors a call runs now, with
Variables of a program it appends an op to that program.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module 'oprack.functional' has no attribute {name!r}")
    from oprack.interpreter.functions import function

    return function(name)


def __dir__() -> list[str]:
    from oprack.packs.manager import default_manager

    return default_manager().op_types()
