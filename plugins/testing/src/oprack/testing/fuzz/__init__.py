"""Differential fuzzing: generated ops and nets, run on the reference path and on every other path, which must agree.

See docs/fuzzing.md. Hypothesis is imported when examples are searched for; replaying them needs none.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what _HOMES says, for editors and type checkers; a test compares
    # isort: off
    from oprack.testing.fuzz.examples.calls import OpCall as OpCall, seeds as seeds
    from oprack.testing.fuzz.runs.check import Checker as Checker, Tally as Tally
    from oprack.testing.fuzz.examples.example import Example as Example, load_all as load_all, save as save
    from oprack.testing.fuzz.lives.life import FoundLife as FoundLife, Life as Life, search_lives as search_lives
    from oprack.testing.fuzz.examples.nets import Net as Net, block as block, net_examples as net_examples
    from oprack.testing.fuzz.examples.ops import op_examples as op_examples
    from oprack.testing.fuzz.runs.outcome import Difference as Difference
    from oprack.testing.fuzz.runs.paths import without_size_limits as without_size_limits
    from oprack.testing.fuzz.scripts import script as script
    from oprack.testing.fuzz.searching import (
        Failure as Failure,
        Known as Known,
        read_known as read_known,
        search as search,
    )
    # isort: on

_HOMES = {
    "examples.calls": ("OpCall", "seeds"),
    "runs.check": ("Checker", "Tally"),
    "examples.example": ("Example", "load_all", "save"),
    "lives.life": ("FoundLife", "Life", "search_lives"),
    "examples.nets": ("Net", "block", "net_examples"),
    "examples.ops": ("op_examples",),
    "runs.outcome": ("Difference",),
    "runs.paths": ("without_size_limits",),
    "scripts": ("script",),
    "searching": ("Failure", "Known", "read_known", "search"),
}
_MODULES = {name: module for module, names in _HOMES.items() for name in names}
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'oprack.testing.fuzz' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"oprack.testing.fuzz.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
