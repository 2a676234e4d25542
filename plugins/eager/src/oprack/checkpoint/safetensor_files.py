"""Files of safetensors: a header of JSON and the bytes of tensors, which other libraries read and write as well.

The library safetensors, which Hugging Face keeps, reads and writes them: it compares every size in a header with the
file before any is believed, and maps files into memory, so that a slice costs what it holds.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import IO, Any

import numpy as np
from oprack.errors import CorruptParameterError, InvalidArgumentError, NotFoundError
from oprack.python.interruption import let_interruptions_pass
from oprack.types import dtype_name

SUFFIX = ".safetensors"


def _library() -> ModuleType:
    try:
        import safetensors
    except ImportError as error:
        raise NotFoundError(
            "files of safetensors are read and written by the library of that name, which is not installed: "
            'pip install "safetensors>=0.8"'
        ) from error
    return safetensors


def write_tensors(file: IO[bytes], arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> None:
    """Write arrays to a file of safetensors, without another copy of them where the file has a path.

    Args:
        file: An open file; what it holds is replaced, and at its path another file may lie then, with its mode.
        arrays: The arrays, in host memory.
        metadata: Texts for the header.

    Raises:
        NotFoundError: The library safetensors is not installed.
        InvalidArgumentError: The format has no such dtype (complex128), or keeps the name for itself.
    """
    library = _library()
    if "__metadata__" in arrays:
        raise InvalidArgumentError(f"{SUFFIX}: '__metadata__' is the name of the header's texts; rename the tensor")
    # The specification holds addresses, so the arrays have to stay until it was written.
    dense = {name: _little_endian(array) for name, array in arrays.items()}
    path = getattr(file, "name", None)
    try:
        specs = {
            name: library.TensorSpec(dtype=a.dtype.name, shape=a.shape, data_ptr=a.ctypes.data, data_len=a.nbytes)
            for name, a in dense.items()
        }
        if isinstance(path, str | os.PathLike):
            library.serialize_file(specs, os.fspath(path), metadata=dict(metadata))
            _make_alike(path, os.fstat(file.fileno()))
        else:  # what waits in memory for a pipe
            file.write(library.serialize(specs, metadata=dict(metadata)))
    except library.SafetensorError as error:
        raise InvalidArgumentError(
            f"{SUFFIX}: {error}; oprack.io.save_state writes other dtypes to a file whose name ends in .npz"
        ) from error


def _make_alike(path: str | os.PathLike[str], old: os.stat_result) -> None:
    """Give what the library put in the place of a file that file's mode and owner, and see to it that it is on disk."""
    with open(path, "rb+") as written:
        if hasattr(os, "fchown"):
            with contextlib.suppress(OSError):  # only root may give files away
                os.fchown(written.fileno(), old.st_uid, old.st_gid)
        os.chmod(path, stat.S_IMODE(old.st_mode))
        os.fsync(written.fileno())


def _little_endian(array: np.ndarray) -> np.ndarray:
    found = array if array.flags.c_contiguous else array.copy(order="C")  # keeps 0-D arrays as they are
    return found.astype(found.dtype.newbyteorder("<"), copy=False)


class TensorFile:
    """An open file of safetensors; `open_tensors` makes it.

    Args:
        opened: The library's file.
        where: Names it, for errors.

    Attributes:
        metadata: The texts of its header.
        names: Of its tensors.
    """

    def __init__(self, opened: Any, where: str) -> None:
        self._opened, self._where = opened, where
        self.metadata: dict[str, str] = opened.metadata() or {}
        self.names: list[str] = list(opened.keys())

    def shape(self, name: str) -> tuple[int, ...]:
        """The dims of a tensor, which fit into the file. Raises CorruptParameterError if it is not there."""
        if name not in self.names:
            raise CorruptParameterError(f"{self._where} has no tensor {name!r}; it has {', '.join(self.names[:5])} ...")
        return tuple(self._opened.get_slice(name).get_shape())

    def read(self, name: str, rows: tuple[int, int] | None = None) -> np.ndarray:
        """A copy of a tensor, or of some of its rows.

        Args:
            name: Its name.
            rows: (start, stop) of dim 0; None: all of it.

        Returns:
            The array.

        Raises:
            CorruptParameterError: It is not there, or has a dtype that no tensor here has.
        """
        shape = self.shape(name)
        try:
            if rows is None or not shape or 0 in shape:
                found = self._opened.get_tensor(name)
            else:
                found = self._opened.get_slice(name)[slice(*rows)]
            dtype_name(found.dtype)
        except Exception as error:  # the library has its own, and KeyError for a dtype
            let_interruptions_pass()
            raise CorruptParameterError(f"{self._where}: tensor {name!r} can't be read: {error}") from error
        array: np.ndarray = found
        return array


@contextmanager
def open_tensors(path: str | os.PathLike[str]) -> Iterator[TensorFile]:
    """Open a file of safetensors; its header is checked, and nothing else is read.

    Yields:
        The file.

    Raises:
        NotFoundError: There is no such file, or the library safetensors is not installed.
        CorruptParameterError: It is no such file, or its header promises other sizes than the file has.
    """
    library, where = _library(), repr(os.fspath(path))
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise CorruptParameterError(f"{where} is no regular file; expected one of safetensors")
        opened = library.safe_open(os.fspath(path), framework="np")
    except FileNotFoundError as error:
        raise NotFoundError(f"there is no file {where}") from error
    except library.SafetensorError as error:
        raise CorruptParameterError(f"{where} is no file of safetensors, or it was altered: {error}") from error
    with opened as file:
        yield TensorFile(file, where)


def read_all(path: str | os.PathLike[str]) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """All tensors of a file, and the texts of its header; see `open_tensors`."""
    with open_tensors(path) as file:
        return {name: file.read(name) for name in file.names}, file.metadata
