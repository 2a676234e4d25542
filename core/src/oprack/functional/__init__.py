"""Every installed op as a function: `oprack.functional.relu(x)`.

Inputs go in slot order, attributes as keywords; see `help(oprack.functional.relu)`. With tensors a call runs now, with
Variables of a program it appends an op to that program. Python's keywords take an underscore: `assert_`.
"""

from __future__ import annotations

from typing import Any

_made: set[str] = set()
_listens = False


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module 'oprack.functional' has no attribute {name!r}")
    from keyword import iskeyword

    from oprack.functional.tensor import function
    from oprack.packs.changes import on_change

    global _listens
    found = function(name[:-1] if name.endswith("_") and iskeyword(name[:-1]) else name)
    if not _listens:
        on_change(_forget)
        _listens = True
    _made.add(name)
    globals()[name] = found  # the next time without a question, until packs change
    return found


def _forget() -> None:
    for name in _made:
        globals().pop(name, None)
    _made.clear()


def __dir__() -> list[str]:
    from oprack.op import param_name
    from oprack.packs.manager import default_manager

    return [param_name(op_type) for op_type in default_manager().op_types()]
