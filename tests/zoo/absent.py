"""Stand-ins for modules that packages of nets import at their top and no definition of a net needs."""

from __future__ import annotations

import sys
import types
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

ABSENT = set(Path(__file__).with_name("absent.txt").read_text("utf-8").split())
"""What these packages import for data, metrics, downloads and plots."""


class _Lenient(type):
    """Classes whose every attribute is there, and is another such class."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Lenient(name, (), {"__init__": _take_anything, "__call__": _decorated})


def _take_anything(self: Any, *args: Any, **kwargs: Any) -> None:
    pass


def _decorated(self: Any, function: Any = None, *args: Any, **kwargs: Any) -> Any:
    return function


class _Nothing(types.ModuleType):
    """A module that is not installed: its names are there, as long as nobody needs them."""

    __path__: list[str] = []
    __version__ = "0"

    def __getattr__(self, name: str) -> Any:
        return getattr(_Lenient("absent", (), {}), name)


class _Absent(MetaPathFinder, Loader):
    """Finds what is absent."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return ModuleSpec(name, self, is_package=True) if name.partition(".")[0] in ABSENT else None

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        return _Nothing(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def install() -> None:
    """Let imports of absent modules succeed."""
    sys.meta_path.append(_Absent())
