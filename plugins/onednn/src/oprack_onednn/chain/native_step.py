"""A function of the compiled library in the place of a primitive, for what oneDNN has none for."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import Structure, addressof, c_int64, c_void_p, cast
from typing import Any

from oprack_onednn.c.runner import RUNNER, array_type
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.native import MemoryDesc


class _Native(Structure):
    """As runner.c has it."""

    _fields_ = (("run", c_void_p), ("get_handle", c_void_p), ("settings", c_void_p))


class _NoMemory:
    nbytes = 0


class NativeStep:
    """What a chain takes for a primitive's descriptor, and for the primitive.

    Its arguments are memory in the order in which the function takes it. Only where `RUNNER.library` serves.

    Args:
        function: Name of the exported function.
        settings: Numbers that it gets in each run, the fields of its struct.

    Attributes:
        pointer: The address of its struct and 1 more, by which what executes chains tells it from a primitive.
    """

    given: tuple[tuple[int, ...], tuple[MemoryDesc, ...]] = ((), ())
    seconds = 0.0

    def __init__(self, function: str, settings: Sequence[int]) -> None:
        self.impl = f"oprack:{function}"
        self._settings = array_type(c_int64, len(settings))(*settings)
        functions = getattr(RUNNER.library, function), LIBRARY.lib.dnnl_memory_get_data_handle
        self._struct = _Native(*(cast(f, c_void_p).value for f in functions), addressof(self._settings))
        self.pointer = addressof(self._struct) | 1

    def desc(self, query: int) -> Any:
        """It wants no scratch memory, and chooses no layouts."""
        assert query == _c.QUERY_SCRATCHPAD_MD
        return _NoMemory

    def argument_bytes(self, argument: int) -> int:
        """Who makes the step gives memory that fits its settings."""
        return 0

    def compile_ahead(self, threads: int, cores: int) -> None:
        """Nothing: it is compiled."""

    def primitive(self) -> NativeStep:
        return self
