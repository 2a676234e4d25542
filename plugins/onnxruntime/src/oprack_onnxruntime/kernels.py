"""Kernels of onnxruntime_engine: by a session, and by oprack's own ops, which is the reference."""

from __future__ import annotations

import numpy as np
from oprack import Scope
from oprack.errors import CorruptModelError
from oprack.kernel import Array, kernel
from oprack.packs.manager import default_manager
from oprack.runtime import Executor
from oprack_onnx.reader import read_model

from oprack_onnxruntime.library import LIBRARY, usable

_BYTES = {"uint8"}


@kernel("onnxruntime_engine", place="cpu", dtypes=_BYTES, library="onnxruntime", priority=10, when=usable)
def by_session(Xs: list[Array], Params: list[Array] | None, Model: Array) -> list[Array]:
    return LIBRARY.session(Model, Params or ()).run(Xs)


@kernel("onnxruntime_engine", place="cpu", dtypes=_BYTES)
def by_ops(Xs: list[Array], Params: list[Array] | None, Model: Array) -> list[Array]:
    read = read_model(Model.tobytes(), None)
    block, scope = read.program.desc.blocks[0], Scope()
    feeds = [op.output("Out")[0] for op in block.ops if op.type == "feed"]
    fetches = [op.input("X")[0] for op in block.ops if op.type == "fetch"]
    values = [*Xs, *(Params or ())]
    if len(feeds) != len(values):
        raise CorruptModelError(f"the model of the op reads {len(feeds)} values; the op has {len(values)}")
    for name, array in (read.parameters or {}).items():
        scope.var(name).set(array)
    executor = Executor(prepared=False, excluded_libraries=list(default_manager().extensions.libraries()))
    found = executor.run(read.program, dict(zip(feeds, values, strict=True)), fetches, scope)
    return [np.asarray(value) for value in found]
