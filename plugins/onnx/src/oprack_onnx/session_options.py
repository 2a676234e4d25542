"""Errors and options of sessions, by the names that onnxruntime has for them."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from oprack.errors import UnimplementedError


# Errors ---------------------------------------------------------------------------------------------------------------
class Fail(RuntimeError):
    """A model can't be run."""


class InvalidArgument(Fail):
    """What is fed does not fit the model, or it has no such output."""


class InvalidGraph(Fail):
    """The file is a model that contradicts itself."""


class InvalidProtobuf(Fail):
    """The file is no model."""


class NoSuchFile(Fail):
    """There is no such file."""


class RuntimeException(Fail):
    """An op failed."""


class NotImplemented_(Fail):
    """The model has an op that is not there."""


ERRORS: dict[str, Any] = {
    error.__name__.rstrip("_"): error
    for error in (Fail, InvalidArgument, InvalidGraph, InvalidProtobuf, NoSuchFile, RuntimeException, NotImplemented_)
}


# Options --------------------------------------------------------------------------------------------------------------
class GraphOptimizationLevel(IntEnum):
    """How much of a model is rewritten; anything but ORT_DISABLE_ALL runs all passes."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(IntEnum):
    """Whether ops run beside one another; they run one after the other."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class SessionOptions:
    """How a model is run. `intra_op_num_threads`, `graph_optimization_level` and `use_deterministic_compute` count;
    what else onnxruntime has may be set, and changes nothing.
    """

    def __init__(self) -> None:
        self.intra_op_num_threads = 0
        self.inter_op_num_threads = 0
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.execution_order = 0
        self.enable_cpu_mem_arena = True
        self.enable_mem_pattern = True
        self.enable_mem_reuse = True
        self.enable_profiling = False
        self.profile_file_prefix = ""
        self.optimized_model_filepath = ""
        self.logid = ""
        self.log_severity_level = 2
        self.log_verbosity_level = 0
        self.use_deterministic_compute = False
        self._entries: dict[str, str] = {}

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Keep an entry, which changes nothing.

        Args:
            key: Its name.
            value: Its value.
        """
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """An entry that was added. Raises RuntimeError when there is none."""
        if key not in self._entries:
            raise RuntimeError(f"SessionOptions does not have configuration with key: {key}")
        return self._entries[key]

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Do nothing: sizes are those of what is fed.

        Args:
            name: Of a dim.
            size: What it will be.
        """

    add_free_dimension_override_by_denotation = add_free_dimension_override_by_name

    def add_initializer(self, name: str, value: Any) -> None:
        """Raises UnimplementedError: initializers come from the model's files."""
        raise UnimplementedError(f"add_initializer({name!r}, ...): initializers come from the model and its files")

    def register_custom_ops_library(self, path: str) -> None:
        """Raises UnimplementedError: ops of custom domains are op packs here."""
        raise UnimplementedError(
            f"register_custom_ops_library({path!r}): a library of ONNX Runtime's custom ops can't be loaded; ops of "
            "custom domains are op packs here, found once they are installed"
        )


class RunOptions:
    """How one run is done; all of it may be set, and changes nothing."""

    def __init__(self) -> None:
        self.log_severity_level = 2
        self.log_verbosity_level = 0
        self.logid = ""
        self.only_execute_path_to_fetches = False
        self.terminate = False
        self._entries: dict[str, str] = {}

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Keep an entry, which changes nothing.

        Args:
            key: Its name.
            value: Its value.
        """
        self._entries[key] = value
