"""Lets a client that imports `onnxruntime` run on oprack without a change."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from oprack.errors import MissingPackError
from oprack.inference.stand_ins import StandIn, StandIns

_SESSIONS = "oprack_onnx.sessions"
_STATE = "onnxruntime.capi.onnxruntime_pybind11_state"


class as_onnxruntime(StandIns):
    """`oprack.inference.as_onnxruntime()` puts a stand-in for `onnxruntime` into sys.modules.

    Call it before the client is imported; as a context manager it takes it out again. Sessions are served by the plugin
    onnx, on predictors of oprack.

    Raises:
        MissingPackError: oprack-onnx is not installed.
        PreconditionNotMetError: onnxruntime itself is imported already.
    """

    library = "onnxruntime"
    serves = "its sessions"
    names = ("onnxruntime", "onnxruntime.capi", _STATE)

    def _fill(self, modules: dict[str, StandIn]) -> None:
        sessions = _sessions()
        names = {name: getattr(sessions, name) for name in sessions.__all__ if name != "ERRORS"}
        vars(modules["onnxruntime"]).update(names, __version__=sessions.ONNXRUNTIME_VERSION)
        vars(modules[_STATE]).update(names | sessions.ERRORS)


def _sessions() -> Any:
    try:
        return import_module(_SESSIONS)
    except ModuleNotFoundError as error:
        if error.name != _SESSIONS.partition(".")[0]:
            raise
        raise MissingPackError(
            "as_onnxruntime(): models of ONNX are read by oprack-onnx, which is not installed: pip install oprack-onnx"
        ) from None
