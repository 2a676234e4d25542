"""For pack authors: the conformance suite, op cases, and the pytest plugin (fixtures without discovery).

Names are imported on first use: pytest loads the plugin in this package wherever oprack is installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what _HOMES says, for editors and type checkers; a test compares
    # isort: off
    from oprack.testing.case_folder import collect_cases as collect_cases
    from oprack.testing.cases import (
        Expected as Expected,
        FileCase as FileCase,
        compare as compare,
        load_cases as load_cases,
    )
    from oprack.testing.conformance import Conformance as Conformance, Limitation as Limitation
    from oprack.testing.op_case import OpCase as OpCase
    from oprack.testing.op_test import OpTest as OpTest
    from oprack.testing.passes import PassCase as PassCase, check_passes as check_passes
    from oprack.testing.runner import check_case as check_case, missing_ops as missing_ops, run_case as run_case
    # isort: on

LIMITATION = "oprack limitation"
"""Property of a test report: a known gap that was met; the pytest plugin prints all of them as a table."""

FUZZED = "oprack fuzzed"
"""Property of a test report: how many generated examples were compared; the pytest plugin prints their number."""

_HOMES = {
    "case_folder": ("collect_cases",),
    "cases": ("Expected", "FileCase", "compare", "load_cases"),
    "conformance": ("Conformance", "Limitation"),
    "op_case": ("OpCase",),
    "op_test": ("OpTest",),
    "passes": ("PassCase", "check_passes"),
    "runner": ("check_case", "missing_ops", "run_case"),
}
_MODULES = {name: module for module, names in _HOMES.items() for name in names}
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    import importlib

    if name not in _MODULES:
        raise AttributeError(f"module 'oprack.testing' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"oprack.testing.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
