"""State of modules and optimizers as one .npz file: arrays by path, and what else there is as JSON."""

from __future__ import annotations

import io
import json
import math
import os
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from oprack.errors import CorruptParameterError, InvalidArgumentError, NotFoundError, OversizedTensorError
from oprack.io.atomic import AtomicSave
from oprack.tensor import numpy_dtype
from oprack.types import dtype_name

_OTHER = "__other__"


def save_state(path: str | os.PathLike[str], state: Mapping[str, Any]) -> None:
    """Write a state: names with tensors, arrays, or values of JSON's kinds; complete or not at all.

    Arrays are stored as NumPy's own .npz has them, bfloat16 ones as their bits. Raises InvalidArgumentError for a value
    that is neither.
    """
    arrays: dict[str, np.ndarray] = {}
    other: dict[str, Any] = {}
    bits: dict[str, str] = {}
    for name, value in state.items():
        if hasattr(value, "__array__"):
            array = np.asarray(value)
            if array.dtype.name == "bfloat16":
                bits[name] = "bfloat16"
                array = array.view(np.int16)
            arrays[name] = array
        else:
            other[name] = value
    try:
        text = json.dumps({"values": other, "bits": bits})
    except TypeError as error:
        raise InvalidArgumentError(
            f"save_state: {error}; expected tensors, arrays, or values of JSON's kinds"
        ) from None
    with AtomicSave() as save, save.open(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in [*arrays.items(), (_OTHER, np.frombuffer(text.encode(), np.uint8))]:
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.asanyarray(array), allow_pickle=False)


def load_state(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read what `save_state` wrote. Nothing is unpickled, and sizes are checked before memory is taken.

    Raises NotFoundError when there is no such file, CorruptParameterError and OversizedTensorError for its contents.
    """
    if not os.path.exists(path):
        raise NotFoundError(f"load_state: there is no file {os.fspath(path)!r}")
    size = os.path.getsize(path)
    found: dict[str, Any] = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                if info.compress_type != zipfile.ZIP_STORED or info.file_size > size:
                    raise CorruptParameterError(
                        f"{os.fspath(path)!r}: entry {info.filename!r} is compressed or too long"
                    )
                found[info.filename.removesuffix(".npy")] = _array(archive.read(info), info.filename)
        meta = json.loads(found.pop(_OTHER).tobytes())
        for name, dtype in meta["bits"].items():
            found[name] = found[name].view(numpy_dtype(dtype))
        return found | dict(meta["values"])
    except (zipfile.BadZipFile, ValueError, KeyError, EOFError, AttributeError, TypeError) as error:
        if isinstance(error, CorruptParameterError):
            raise
        raise CorruptParameterError(f"{os.fspath(path)!r} is no file of save_state: {error}") from error


def _array(data: bytes, name: str) -> np.ndarray:
    stream = io.BytesIO(data)
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(stream)
    dtype_name(dtype)
    wanted, left = math.prod(shape) * dtype.itemsize, len(data) - stream.tell()
    if min(shape, default=0) < 0 or wanted != left:
        raise OversizedTensorError(f"entry {name!r}: dims {list(shape)} need {wanted} bytes, the file has {left}")
    flat = np.frombuffer(data, dtype, offset=stream.tell()).copy()
    return flat.reshape(shape, order="F" if fortran else "C")
