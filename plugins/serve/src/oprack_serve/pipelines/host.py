"""The process of one pipeline's functions: it imports the module, forks the workers, and looks after them.

    python -m oprack_serve.pipelines.host FD FOLDER WORKERS THREADS MEMORY_LIMIT CACHE OPTIONS

It speaks with the server as the host of a model does, and its workers as those of a model. What the server asks for as
the output is the number of the stage whose function is to run.
"""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import json
import logging
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from oprack_serve import wire
from oprack_serve.host import Host
from oprack_serve.joining import JoinRule
from oprack_serve.log import JsonLog, log_all
from oprack_serve.pipelines import definition, values
from oprack_serve.pipelines.definition import Definition, Stage
from oprack_serve.probe import Findings
from oprack_serve.signature import Tensor
from oprack_serve.worker import Worker, status_of

REASON = "functions run for each request by itself, models with those of other requests"


class ModuleError(Exception):
    """The module can't serve the pipeline; the text names it, the line and the reason."""


def functions_of(pipeline: Definition) -> dict[str, Callable[..., Any]]:
    """The functions that the stages name. Raises ModuleError."""
    path = pipeline.module
    spec = importlib.util.spec_from_file_location(f"oprack_pipeline_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # a folder with compiled files in it would be one that has changed
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ModuleError(f"{_where(path, error)}: {type(error).__name__}: {error}") from error
    finally:
        sys.dont_write_bytecode = before
    return {stage.name: _function(path, module, stage) for stage in pipeline.stages if not stage.is_model}


def _function(path: Path, module: Any, stage: Stage) -> Callable[..., Any]:
    function: Callable[..., Any] | None = getattr(module, stage.name, None)
    if not callable(function):
        raise ModuleError(f"{path}: {stage}: there is no function {stage.name!r} in the module")
    try:
        inspect.signature(function).bind(*stage.inputs)
    except TypeError as error:
        raise ModuleError(f"{path}: {stage}: it is called with {', '.join(stage.inputs)}: {error}") from None
    return function


def _where(path: Path, error: BaseException) -> str:
    """The module's name with the line of it that failed, where there is one."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f"{path.name}:{error.lineno}"
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path)]
    return f"{path.name}:{lines[-1]}" if lines else path.name


class FunctionWorker(Worker):
    """Runs functions in the place of a predictor."""

    def __init__(
        self,
        sock: socket.socket,
        door: socket.socket,
        pipeline: Definition,
        functions: dict[str, Callable[..., Any]],
    ) -> None:
        super().__init__(sock, door, None, pipeline.signature, None)  # type: ignore[arg-type]
        self._pipeline, self._functions = pipeline, functions

    def _probe(self, header: dict[str, Any], _: list[np.ndarray]) -> wire.Message:
        return Findings(JoinRule(reason=REASON), 0).to_json() | {"ms": 0.0}, []

    def _run(self, header: dict[str, Any], arrays: list[np.ndarray]) -> wire.Message:
        feed = {name: Tensor(array, lod) for (name, lod), array in zip(header["inputs"], arrays, strict=True)}
        answer: dict[str, Any]
        sent: list[np.ndarray] = []
        start = time.perf_counter()
        try:
            found = values.to_feed(self._call(header["outputs"][0], feed))
            answer = {"outputs": [[name, tensor.lod] for name, tensor in found.items()]}
            sent = [tensor.array for tensor in found.values()]
        except Exception as error:
            answer = {"error": [status_of(error), self._described(error)]}
        answer["run_ms"] = round((time.perf_counter() - start) * 1e3, 3)
        answer["memory"] = self._memory() - self._shared
        return answer, sent

    def _call(self, number: str, feed: dict[str, Tensor]) -> dict[str, values.Value]:
        stage = self._pipeline.stages[int(number) - 1]
        given = values.from_feed(tuple(dict.fromkeys(stage.inputs)), feed)
        found = self._functions[stage.name](*(values.to_python(given[n]) for n in stage.inputs))
        results = found if isinstance(found, tuple) else (found,)
        if len(results) != len(stage.outputs):
            raise values.ValueTypeError(
                f"it returned {len(results)} values; expected {len(stage.outputs)}: {', '.join(stage.outputs)}"
            )
        return {n: values.from_python(n, result) for n, result in zip(stage.outputs, results, strict=True)}

    def _described(self, error: Exception) -> str:
        """What a client hears: its own mistakes in the function's words, else where in the module it was."""
        if status_of(error) != 500:
            return str(error)
        where = _where(self._pipeline.module, error)
        logging.getLogger(__name__).error("%s failed", where, exc_info=error)
        return f"{where}: {type(error).__name__}: {error}"


class FunctionHost(Host):
    """Forks workers that run functions."""

    def __init__(self, control: socket.socket, pipeline: Definition, functions: dict[str, Callable[..., Any]]) -> None:
        super().__init__(control, None, pipeline.signature, None, 1)
        self._pipeline, self._functions = pipeline, functions

    def _work(self, sock: socket.socket, door: socket.socket) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server says when to end
        with contextlib.suppress(ConnectionError):
            FunctionWorker(sock, door, self._pipeline, self._functions).serve()


def main(arguments: Sequence[str]) -> int:
    """Import the module, say so, and look after the workers."""
    fd, folder, workers = arguments[:3]
    log_all(JsonLog())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=int(fd)) as control:
        try:
            pipeline = definition.load(Path(folder))
            functions = functions_of(pipeline)
        except Exception as error:
            text = str(error) if isinstance(error, ModuleError) else f"{type(error).__name__}: {error}"
            control.send(json.dumps({"failed": text[:10_000]}).encode())
            return 1
        control.send(json.dumps({"loaded": pipeline.signature.to_json()}).encode())
        FunctionHost(control, pipeline, functions).run(int(workers))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (BrokenPipeError, ConnectionError):
        sys.exit(1)
