"""The parameters of a predictor, which may lie in a file of its own: pages that nobody reads take no memory then."""

from __future__ import annotations

import mmap
import os
from typing import Any

import numpy as np
from oprack.io.inference_model import freeze_parameters
from oprack.python.interruption import let_interruptions_pass
from oprack.python.logs import get_logger
from oprack.tensor import LoDTensor, Scope, Variable

_LOG = get_logger(__name__)
# Bytes from which on a parameter lies in a file, and those that one file has room for: what nothing was written to
# takes no space.
_SMALLEST, _ROOM = 1 << 16, 1 << 28
_PAGE = mmap.ALLOCATIONGRANULARITY


class _File:
    """A file without a name: nobody else can write to it, nor cut it short, which would end who maps it.

    Args:
        nbytes: For how many bytes it has room.

    Attributes:
        pages: All of it, which nobody can write to.
        end: Where the next array begins.

    Raises:
        OSError: It can't be made.
    """

    def __init__(self, nbytes: int) -> None:
        self.end, self._fd = 0, -1
        # /tmp is memory on many systems; and to import tempfile takes as long as ten modules of ours
        path = os.path.join(os.environ.get("TMPDIR") or "/var/tmp", f"oprack-{os.getpid()}-{os.urandom(8).hex()}")
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        os.unlink(path)
        os.truncate(self._fd, nbytes)
        self.pages = mmap.mmap(self._fd, nbytes, access=mmap.ACCESS_READ)

    def close(self) -> None:
        """Write nothing more."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    __del__ = close

    def write(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The row-major array as it is in the file then. Raises OSError, as where the disk is full."""
        begin, rest = self.end, array.reshape(-1).view(np.uint8).data
        while rest:
            rest = rest[os.pwrite(self._fd, rest, begin + array.nbytes - len(rest)) :]
        self.end = begin + -(-array.nbytes // _PAGE) * _PAGE
        return np.ndarray(array.shape, array.dtype, self.pages, begin)


class _Files:
    """The files of a scope, which its variables know, too: by the scope they would keep each other alive.

    Args:
        is_open: Whether arrays may be put there.
    """

    def __init__(self, is_open: bool) -> None:
        self._files = list[_File]()
        self._is_open = is_open and hasattr(os, "pwrite")

    def keep(self, value: Any) -> bool:
        """Put the array of a value into a file, unless it is small, or no file can be written; whether it is in one."""
        if not isinstance(value, LoDTensor) or not isinstance(value.array, np.ndarray):
            return False
        array = value.array
        if self._is_open and array.nbytes >= _SMALLEST and array.flags.c_contiguous and not self._has(array):
            value.array = self._written(array)
        return self._has(value.array)

    def close(self) -> None:
        """Let what is set later stay in memory."""
        self._is_open = False
        for file in self._files:
            file.close()

    def _written(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The array in a file; itself where none can be written."""
        try:
            if not self._files or self._files[-1].end + array.nbytes > len(self._files[-1].pages):
                self._files.append(_File(max(_ROOM, array.nbytes)))
            return self._files[-1].write(array)
        except OSError as error:
            let_interruptions_pass()
            self._is_open = False
            _LOG.info("parameters stay in memory, as no file can be written: %s", error)
            return array

    def _has(self, array: Any) -> bool:
        return any(array.base is file.pages for file in self._files)


class _Parameter(Variable):
    """A variable of a ParameterScope; what passes set is what kernels read later, so it is put where it stays."""

    __slots__ = ("_files",)

    def __init__(self, name: str, files: _Files) -> None:
        super().__init__(name)
        self._files = files

    def set(self, value: Any) -> None:
        """As Variable."""
        super().set(value)
        self._files.keep(self.value)


class ParameterScope(Scope):
    """A scope of parameters.

    Kernel libraries pack parameters into layouts of their own and read them again for other shapes alone, if ever. The
    pages of a file may go meanwhile, and come back when they are read.

    Args:
        in_files: Whether large parameters lie in files.
    """

    __slots__ = ("_files",)

    def __init__(self, in_files: bool) -> None:
        super().__init__()
        self._files = _Files(in_files)

    def var(self, name: str) -> Variable:
        """As Scope."""
        return self._vars.get(name) or self._vars.setdefault(name, _Parameter(name, self._files))

    def freeze(self) -> None:
        """Make all parameters read-only; what is set later stays in memory."""
        in_files = []
        for name, variable in self._vars.items():
            if self._files.keep(variable.value):
                variable.value.shared = True  # an op in place makes memory of its own first
                in_files.append(name)
        freeze_parameters(self, in_files)
        self._files.close()
