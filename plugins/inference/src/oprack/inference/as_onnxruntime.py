"""Lets a client that imports `onnxruntime` run on oprack without a change."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType, TracebackType
from typing import Any, Self

from oprack.errors import PreconditionNotMetError
from oprack.inference.plugins import of_plugin

_STATE = "onnxruntime.capi.onnxruntime_pybind11_state"
_NAMES = ("onnxruntime", "onnxruntime.capi", _STATE)


class StandIn(ModuleType):
    """A stand-in for a module of onnxruntime, which says what it lacks.

    Args:
        name: Of the module.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name, f"Stand-in for {name}, served by oprack.")
        self.__file__ = __file__  # "cannot import name ... from 'onnxruntime' (...)" names it
        self.__path__ = []
        # clients ask importlib.util.find_spec whether the library is installed
        self.__spec__ = ModuleSpec(name, None, origin=__file__, is_package="." not in name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        known = ", ".join(n for n in vars(self) if not n.startswith("_"))
        raise AttributeError(
            f"{self.__name__}.{name} is not provided by oprack.inference.as_onnxruntime(), which stands in for its "
            f"sessions only; it has {known}"
        )


class as_onnxruntime:
    """`oprack.inference.as_onnxruntime()` puts a stand-in for `onnxruntime` into sys.modules.

    Call it before the client is imported; as a context manager it takes it out again. Sessions are served by the plugin
    onnx, on predictors of oprack.

    Raises:
        MissingPackError: oprack-onnx is not installed.
        PreconditionNotMetError: onnxruntime itself is imported already.
    """

    def __init__(self) -> None:
        real = sys.modules.get("onnxruntime")
        if real is not None and not isinstance(real, StandIn):
            raise PreconditionNotMetError(
                f"as_onnxruntime(): onnxruntime is imported already from {getattr(real, '__file__', '?')}; call "
                "as_onnxruntime() first, in a process that does not import onnxruntime itself"
            )
        modules = _modules()
        self._before = {name: sys.modules.get(name) for name in modules}
        sys.modules.update(modules)

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


def _modules() -> dict[str, StandIn]:
    """All stand-ins, each an attribute of the one above."""
    sessions = of_plugin("oprack_onnx.sessions", "as_onnxruntime(): models of ONNX are read")
    modules = {name: StandIn(name) for name in _NAMES}
    for name, module in modules.items():
        above, _, own = name.rpartition(".")
        if above:
            setattr(modules[above], own, module)
    names = {name: getattr(sessions, name) for name in sessions.__all__ if name != "ERRORS"}
    vars(modules["onnxruntime"]).update(names, __version__=sessions.ONNXRUNTIME_VERSION)
    vars(modules[_STATE]).update(names | sessions.ERRORS)
    return modules
