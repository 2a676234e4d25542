"""ONNX Runtime as the core knows it: whether it serves, how many threads it takes, and its sessions."""

from __future__ import annotations

import os
import re
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from oprack.errors import CorruptModelError, InvalidArgumentError
from oprack.kernel import Array, Predicate
from oprack.packs.manager import default_manager
from oprack.python.interruption import let_interruptions_pass
from oprack.python.threads import ThreadLimit

if TYPE_CHECKING:
    import onnxruntime

_ERRORS_ALONE = 3
"""The level of ONNX Runtime's log."""


_Entry = tuple[Callable[[], Array | None], tuple[int, ...], "Session | None"]
_NONE: _Entry = (lambda: None), (), None


class Session:
    """A model that ONNX Runtime has loaded. Python threads share it.

    Args:
        model: Its bytes; its last inputs are the parameters.
        parameters: What these are, which become part of what is loaded.
        threads: How many threads a run takes; 0: it is not going to run, only to be judged.

    Raises:
        CorruptModelError: The bytes are no model that may run, or ONNX Runtime can't load it.
    """

    def __init__(self, model: Array, parameters: Sequence[Array], threads: int) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads or 1, 1
        options.log_severity_level = _ERRORS_ALONE
        options.use_deterministic_compute = True
        # between runs the CPUs are for others
        options.add_session_config_entry("session.force_spinning_stop", "1")
        if not threads:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
            options.add_session_config_entry("session.disable_prepacking", "1")
        text, names = _with_parameters(model, parameters)
        values = [onnxruntime.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(p)) for p in parameters]
        with _told("can't load the model", CorruptModelError):
            options.add_external_initializers(names, values)
            providers = ["CPUExecutionProvider"]
            self._session: onnxruntime.InferenceSession = onnxruntime.InferenceSession(text, options, providers)
        self._held = values  # whose memory it may read
        self._names = [i.name for i in self._session.get_inputs()]
        self._given_back = onnxruntime.RunOptions()
        self._given_back.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
        self._shapes: list[tuple[int, ...]] = []

    def run(self, values: Sequence[Array]) -> list[Array]:
        """What the model gives for these values."""
        if len(values) != len(self._names):
            raise CorruptModelError(f"the model of the op reads {len(self._names)} values, and Xs has {len(values)}")
        shapes = [v.shape for v in values]
        # memory for a size that comes again stays; what other sizes took goes
        options = None if shapes == self._shapes else self._given_back
        self._shapes = shapes
        with _told("can't run the model", InvalidArgumentError):
            found: list[Array] = self._session.run(None, dict(zip(self._names, values, strict=True)), options)
        return found


def _with_parameters(model: Array, parameters: Sequence[Array]) -> tuple[bytes, list[str]]:
    """The bytes of a model whose last inputs are initializers, which lie outside, and their names.

    Raises CorruptModelError for bytes that no pass of this plugin wrote.
    """
    from onnx import TensorProto, helper
    from oprack_onnx.model import external_locations, parse, without_functions

    read = parse(model.tobytes())
    without_functions(read)
    domains = sorted({o.domain for o in read.opset_import} - {"", "ai.onnx"})
    count = len(read.graph.input) - len(parameters)
    if (files := external_locations(read)) or domains or count < 0:
        raise CorruptModelError(
            f"the model of op onnxruntime_engine has {len(read.graph.input)} inputs, names files {files} and has ops "
            f"of domains {domains}; expected an input for each of {len(parameters)} parameters, no file, and ops of "
            "ONNX alone, as oprack-onnxruntime writes it"
        )
    names = [i.name for i in read.graph.input[count:]]
    del read.graph.input[count:]
    for name, array in zip(names, parameters, strict=True):
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        outside = read.graph.initializer.add(name=name, dims=array.shape, data_type=kind)
        outside.data_location = TensorProto.EXTERNAL
        outside.external_data.add(key="location", value="given")
    return read.SerializeToString(), names


@contextmanager
def _told(what: str, kind: type[Exception]) -> Iterator[None]:
    """Errors of ONNX Runtime, which name the node, as ours, with the op and the plugin that they come from."""
    try:
        yield
    except Exception as error:  # its classes derive from nothing else
        let_interruptions_pass()
        raise kind(f"op onnxruntime_engine of oprack-onnxruntime: ONNX Runtime {what}: {error}") from error


class Library:
    """What `register.library` names."""

    def __init__(self) -> None:
        self._limit = ThreadLimit()
        # by the id of a model's bytes, which live as long as the program that has them
        self._sessions: dict[int, _Entry] = {}
        self._lost: list[Any] = []
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def usable(self) -> bool:
        """Whether onnxruntime is installed, and no stand-in of `as_onnxruntime` takes its name."""
        found = sys.modules.get("onnxruntime")
        return find_spec("onnxruntime") is not None if found is None else type(found) is ModuleType

    def status(self) -> str:
        """One line for `oprack doctor`."""
        if not self.usable():
            return "not used: onnxruntime is not installed, or oprack stands in for it"
        other = default_manager().extensions.libraries().get("onednn")
        serves = other is not None and not isinstance(other, Exception) and other.usable()
        asked = "runs models for which Config.enable_onnxruntime() asks, as oneDNN serves the others"
        return f"{self.identity()}, threads: {self.threads()}; {asked if serves else 'runs models'}"

    def identity(self) -> str:
        """The version, by which optimised models are kept on disk."""
        return f"ONNX Runtime {_version()}" if self.usable() else "no ONNX Runtime"

    def threads(self) -> int:
        """How many threads a call of this Python thread may take."""
        return self._limit.threads()

    def limit_threads(self, count: int) -> AbstractContextManager[None]:
        """Let calls of this Python thread take at most `count` threads, for the length of a with block."""
        return self._limit.of(count)

    def session(self, model: Array, parameters: Sequence[Array]) -> Session:
        """The session of a model, which all share who have the same arrays.

        Args:
            model: Its bytes.
            parameters: Its parameters; a session is kept only where nobody can write to these arrays.

        Raises:
            CorruptModelError: It is no model that may run, or ONNX Runtime can't load it.
        """
        key, threads = id(model), self.threads()
        which = threads, *map(id, parameters)
        alive, kept, found = self._sessions.get(key, _NONE)
        if found is not None and alive() is model and kept == which:
            return found
        session = Session(model, parameters, threads)
        if not any(a.flags.writeable for a in (model, *parameters)):
            self._sessions[key] = weakref.ref(model, lambda _: self._sessions.pop(key, None)), which, session
        return session

    def _forget(self) -> None:
        """In a child of a fork: the threads of sessions are gone, and to end such a session would wait for them."""
        self._lost.append(self._sessions)
        self._sessions = {}


@cache
def _version() -> str:
    """As its module says it, which takes long to import."""
    spec = find_spec("onnxruntime")
    text = Path(spec.origin).read_text("utf-8") if spec is not None and spec.origin else ""
    found = re.search(r'^__version__ = "([^"]+)"', text, re.MULTILINE)
    return found[1] if found else "of unknown version"


LIBRARY = Library()

usable = Predicate(lambda query: LIBRARY.usable(), "onnxruntime is installed")
"""Predicate of the kernel of this library."""
