"""Modules that stand in sys.modules for those of another library, so that its clients run on oprack unchanged."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType, TracebackType
from typing import Any, Self

from oprack.errors import PreconditionNotMetError


class StandIn(ModuleType):
    """A stand-in module that says what it lacks.

    Args:
        name: Of the module.
        made_by: What put it there, for messages, such as "oprack.inference.as_paddle()".
        serves: What of the library it has.
        file: Where the code lies that serves it; "cannot import name 'nn' from 'paddle' (...)" then says so.
    """

    def __init__(self, name: str, made_by: str, serves: str, file: str) -> None:
        super().__init__(name, f"Stand-in for {name}, served by oprack.")
        self._lacks = f"is not provided by {made_by}, which stands in for {serves} only"
        self.__file__ = file
        # clients ask importlib.util.find_spec whether the library is installed
        self.__spec__ = ModuleSpec(name, None, origin=file, is_package="." not in name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        known = ", ".join(n for n in vars(self) if not n.startswith("_"))
        raise AttributeError(f"{self.__name__}.{name} {self._lacks}; it has {known}")


class StandIns:
    """What puts stand-ins into sys.modules, and takes them out again; `library` and `serves` are a subclass's own.

    Raises:
        PreconditionNotMetError: The library itself is imported already.
    """

    library = ""
    serves = ""
    names: Sequence[str] = ()

    def __init__(self) -> None:
        call = f"{type(self).__name__}()"
        real = sys.modules.get(self.library)
        if real is not None and not isinstance(real, StandIn):
            raise PreconditionNotMetError(
                f"{call}: {self.library} is imported already from {getattr(real, '__file__', '?')}; call {call} "
                f"first, in a process that does not import {self.library} itself"
            )
        modules = self._modules()
        self._before = {name: sys.modules.get(name) for name in self.names}
        sys.modules.update(modules)

    def _modules(self) -> dict[str, StandIn]:
        """All stand-ins, each an attribute of the one above."""
        made_by = f"oprack.inference.{type(self).__name__}()"
        file = sys.modules[type(self).__module__].__file__ or ""
        modules = {name: StandIn(name, made_by, self.serves, file) for name in self.names}
        for name, module in modules.items():
            above, _, own = name.rpartition(".")
            if above:
                setattr(modules[above], own, module)
                modules[above].__path__ = []
        modules[self.library].__path__ = []
        self._fill(modules)
        return modules

    def _fill(self, modules: dict[str, StandIn]) -> None:
        """Put what the library has into its stand-ins."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.uninstall()

    def uninstall(self) -> None:
        """Put back what sys.modules held before."""
        for name, module in self._before.items():
            if module is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = module
