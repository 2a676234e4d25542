"""Differential fuzzing: generated ops and nets, run on the reference path and on every other path, which must agree.

See docs/fuzzing.md. Hypothesis is imported when examples are searched for; replaying them needs none.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oprack.testing.fuzz.calls import OpCall, seeds
    from oprack.testing.fuzz.check import Checker, Tally
    from oprack.testing.fuzz.example import Example, load_all, save
    from oprack.testing.fuzz.nets import Net, block, net_examples
    from oprack.testing.fuzz.ops import op_examples
    from oprack.testing.fuzz.outcome import Difference
    from oprack.testing.fuzz.paths import without_size_limits
    from oprack.testing.fuzz.scripts import script
    from oprack.testing.fuzz.searching import Failure, Known, read_known, search

_HOMES = {
    "calls": ("OpCall", "seeds"),
    "check": ("Checker", "Tally"),
    "example": ("Example", "load_all", "save"),
    "nets": ("Net", "block", "net_examples"),
    "ops": ("op_examples",),
    "outcome": ("Difference",),
    "paths": ("without_size_limits",),
    "scripts": ("script",),
    "searching": ("Failure", "Known", "read_known", "search"),
}
_MODULES = {name: module for module, names in _HOMES.items() for name in names}
__all__ = [
    "Checker",
    "Difference",
    "Example",
    "Failure",
    "Known",
    "Net",
    "OpCall",
    "Tally",
    "block",
    "load_all",
    "net_examples",
    "op_examples",
    "read_known",
    "save",
    "script",
    "search",
    "seeds",
    "without_size_limits",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'oprack.testing.fuzz' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"oprack.testing.fuzz.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
