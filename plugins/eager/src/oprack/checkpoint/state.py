"""State of modules and optimizers as one file, .npz or .safetensors: arrays by path, and what else there is as JSON."""

from __future__ import annotations

import io
import json
import math
import os
import stat
import zipfile
from collections.abc import Mapping
from typing import IO, Any

import numpy as np
from oprack.checkpoint.safetensor_files import SUFFIX, read_all, write_tensors
from oprack.errors import CorruptParameterError, InvalidArgumentError, NotFoundError, OversizedTensorError
from oprack.io.atomic import AtomicSave, refuse_directory
from oprack.python.interruption import let_interruptions_pass
from oprack.tensor import numpy_dtype
from oprack.types import DTYPE_NAMES, dtype_name

_OTHER = "__other__"
_LONGEST = 60_000  # bytes of a name; an archive counts them by 16 bits


def save_state(path: str | os.PathLike[str], state: Mapping[str, Any]) -> None:
    """Write a state: names with tensors, arrays, or values that JSON can hold; complete or not at all.

    Arrays are stored as NumPy's own .npz has them, bfloat16 ones as their bits; in a file whose name ends in
    ".safetensors", as the library safetensors has them, which other frameworks read. Of tensors that lie on several
    ranks the whole is written, once; all ranks must call this then, and any number of ranks may read the file.

    Args:
        path: The file.
        state: Values by name.

    Raises:
        InvalidArgumentError: The state is no mapping, or it has a value that is neither, an array of a dtype that no
            tensor has, or a name that can't be stored.
        IsADirectoryError: The path names a directory.
    """
    arrays: dict[str, np.ndarray] = {}
    other: dict[str, Any] = {}
    bits: dict[str, str] = {}
    if not isinstance(state, Mapping):
        raise InvalidArgumentError(
            f"save_state: state is a {type(state).__name__}; expected a dict, as in save_state(path, "
            "net.state_dict()); oprack.save(value, path) writes other values"
        )
    for name, value in state.items():
        _check_name(name)
        if hasattr(value, "__array__") and not isinstance(value, str):  # NumPy's text is text, too
            check_array(value, f"save_state: {name!r}")
            array = np.asarray(value)
            if array.dtype.name == "bfloat16" and not _is_safetensors(path):
                bits[name] = "bfloat16"
                array = array.view(np.int16)
            arrays[name] = array
        else:
            other[name] = value
    try:
        text = json.dumps({"values": other, "bits": bits})
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgumentError(
            f"save_state: {error}; expected tensors, arrays, or values of JSON's kinds"
        ) from None
    ranks = next((v.layout.placement.world for v in state.values() if getattr(v, "is_global", False)), None)
    if ranks is None or ranks.rank == 0:
        _write(path, arrays, text)
    if ranks is not None:
        ranks.barrier()  # no rank reads the file before it is complete


def check_array(value: Any, what: str) -> None:
    """Refuse what could not be read back from a file of arrays.

    Args:
        value: A tensor or an array.
        what: Names it, for the error.

    Raises:
        InvalidArgumentError: It has a dtype that no tensor has, or a mask.
    """
    dtype = getattr(value, "dtype", None) or np.asarray(value).dtype
    try:
        dtype_name(dtype)
    except InvalidArgumentError:
        known = ", ".join(DTYPE_NAMES.values())
        raise InvalidArgumentError(
            f"{what} is an array of {dtype}; expected a dtype of tensors: {known}; save text as a list of str, "
            "value.tolist()"
        ) from None
    if isinstance(value, np.ma.MaskedArray):
        raise InvalidArgumentError(
            f"{what} is a masked array, whose mask would be lost; expected value.filled(number), or data and mask by "
            "themselves"
        )


def _check_name(name: Any) -> None:
    """Refuse names that an archive of arrays can't hold, or that this file needs."""
    if not isinstance(name, str) or "\0" in name or name == _OTHER or len(name.encode("utf-8", "replace")) > _LONGEST:
        raise InvalidArgumentError(
            f"save_state: {str(name)[:80]!r} can't be the name of a value; expected text of at most {_LONGEST} bytes, "
            f"without zeros, and not {_OTHER!r}"
        )


def _is_safetensors(path: str | os.PathLike[str]) -> bool:
    return os.fsdecode(path).endswith(SUFFIX)


def _write(path: str | os.PathLike[str], arrays: Mapping[str, np.ndarray], text: str) -> None:
    if _is_safetensors(path):
        with AtomicSave() as save, save.open(path) as file:
            write_tensors(file, arrays, {"format": "np", _OTHER: text})
        return
    with AtomicSave() as save, save.open(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in [*arrays.items(), (_OTHER, np.frombuffer(text.encode(), np.uint8))]:
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.asanyarray(array), allow_pickle=False)


def load_state(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read what `save_state` wrote, or any file of safetensors. Nothing is unpickled, and sizes are checked before
    memory is taken.

    Args:
        path: The file; one of safetensors if its name ends in ".safetensors".

    Returns:
        The state.

    Raises:
        NotFoundError: There is no such file.
        IsADirectoryError: The path names a directory.
        CorruptParameterError: Its contents are broken; OversizedTensorError when they ask for more than there is.
        OSError: It can't be opened.
    """
    refuse_directory(
        path,
        "a file of oprack.save or oprack.io.save_state; oprack.io.load_checkpoint and load_inference_model read "
        "directories",
    )
    if not os.path.exists(path):
        raise NotFoundError(f"load_state: there is no file {os.fspath(path)!r}")
    where = repr(os.fspath(path))
    if _is_safetensors(path):
        return _from_safetensors(path)
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise CorruptParameterError(f"{where} is no regular file; expected one that save_state wrote")
    with open(path, "rb") as file:
        try:
            return _checked_state(_read_arrays(file, status.st_size))
        except CorruptParameterError as error:
            raise type(error)(f"{where}: {error}; take another copy of the file") from error
        except Exception as error:  # zipfile, NumPy's header and JSON each raise what they will for altered bytes
            let_interruptions_pass()
            raise CorruptParameterError(
                f"{where} is no file of save_state, or it was altered: {type(error).__name__}: {error}"
            ) from error


def _from_safetensors(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The state in a file of safetensors: all its tensors, and the values that `save_state` put into its header."""
    found, metadata = read_all(path)
    if _OTHER not in metadata:
        return dict(found)
    try:
        return _checked_state({**found, _OTHER: np.frombuffer(metadata[_OTHER].encode(), np.uint8)})
    except (ValueError, RecursionError, CorruptParameterError) as error:
        raise CorruptParameterError(f"{os.fspath(path)!r}: its header was altered: {error}") from error


def _read_arrays(file: IO[bytes], size: int) -> dict[str, np.ndarray]:
    """Arrays by the names of their entries; all of them together are no longer than the file."""
    found: dict[str, np.ndarray] = {}
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
            raise CorruptParameterError("an entry is compressed, which save_state never does")
        if (wanted := sum(entry.file_size for entry in entries)) > size:
            raise OversizedTensorError(f"its entries need {wanted} bytes, the file has {size}")
        for entry in entries:
            name = entry.filename.removesuffix(".npy")
            if name in found:
                raise CorruptParameterError(f"entry {name!r} is there twice")
            found[name] = _array(archive.read(entry), entry.filename)
    return found


def _checked_state(found: dict[str, Any]) -> dict[str, Any]:
    """The state: arrays, and the values that the entry of JSON has."""
    if _OTHER not in found:
        raise CorruptParameterError(f"it lacks the entry {_OTHER!r} that save_state writes")
    meta = json.loads(found.pop(_OTHER).tobytes())
    bits, values = (meta.get("bits"), meta.get("values")) if isinstance(meta, dict) else (None, None)
    if not isinstance(bits, dict) or not isinstance(values, dict) or any(name in found for name in values):
        raise CorruptParameterError(f"entry {_OTHER!r} is not as save_state writes it")
    for name, dtype in bits.items():
        if name not in found or dtype != "bfloat16" or found[name].dtype != np.int16:
            raise CorruptParameterError(f"entry {_OTHER!r} says that {name!r} holds bits of {dtype!r}")
        found[name] = found[name].view(numpy_dtype(dtype))
    return found | values


def _array(data: bytes, name: str) -> np.ndarray:
    stream = io.BytesIO(data)
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(stream)
    dtype_name(dtype)
    wanted, left = math.prod(shape) * dtype.itemsize, len(data) - stream.tell()
    if min(shape, default=0) < 0 or wanted != left:
        raise OversizedTensorError(f"entry {name!r}: dims {list(shape)} need {wanted} bytes, the file has {left}")
    flat = np.frombuffer(data, dtype, offset=stream.tell()).astype(dtype.newbyteorder("="))
    return flat.reshape(shape, order="F" if fortran else "C")


_TREE = "tree"
_SEPARATOR = "\x1f"  # joins the keys of a path; no name that is typed has it
_DEEPEST = 100  # levels, far from what recursion allows
_LARGEST = 1 << 4096  # Python reads no integers of many digits
_KINDS = {"dict": dict, "list": list, "tuple": tuple}


def save(obj: Any, path: str | os.PathLike[str]) -> None:
    """Write dicts and lists of tensors, arrays, numbers and text to one file, complete or not at all, without pickle.

    `oprack.save({"net": net.state_dict(), "optimizer": adam.state_dict(), "epoch": 3}, "checkpoint.npz")`

    Args:
        obj: What to save.
        path: The file; NumPy's own .npz with an entry of JSON.

    Raises:
        InvalidArgumentError: There is something else in it, such as an array of text or of objects, a key that is no
            text, or it is nested deeper than 100 levels.
        IsADirectoryError: The path names a directory.
    """
    arrays: dict[str, Any] = {}
    tree = _described(obj, (), arrays)
    save_state(path, {**arrays, _TREE: tree})


def load(path: str | os.PathLike[str]) -> Any:
    """Read what `save` wrote, with NumPy arrays for tensors. Nothing is unpickled; sizes are checked first.

    Args:
        path: The file.

    Returns:
        The object.

    Raises:
        NotFoundError: There is no such file.
        IsADirectoryError: The path names a directory.
        CorruptParameterError: Its contents are broken; OversizedTensorError when they ask for more than there is.
    """
    found = load_state(path)
    if _TREE not in found:
        raise CorruptParameterError(
            f"{os.fspath(path)!r} is no file of oprack.save; oprack.io.load_state reads those of oprack.io.save_state"
        )
    tree = found.pop(_TREE)
    try:
        return _rebuilt(tree, (), found)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise CorruptParameterError(f"{os.fspath(path)!r}: its entry of JSON was altered: {error}") from error


def _described(value: Any, path: tuple[str, ...], arrays: dict[str, Any]) -> Any:
    """The value for JSON: [kind, parts]; arrays go by their path."""
    if len(path) > _DEEPEST:
        raise InvalidArgumentError(
            f"save: {_where(path[:3])}... is nested deeper than {_DEEPEST} levels, or contains itself; expected fewer"
        )
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str) or not _is_text(key) or _SEPARATOR in key or "\0" in key:
                raise InvalidArgumentError(
                    f"save: {_where(path)} has the key {key!r}; expected text without zeros and separators"
                )
        return ["dict", {k: _described(v, (*path, k), arrays) for k, v in value.items()}]
    if isinstance(value, list | tuple):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return [kind, [_described(v, (*path, str(i)), arrays) for i, v in enumerate(value)]]
    if isinstance(value, str):  # NumPy's text is text, too
        if not _is_text(value):
            raise InvalidArgumentError(f"save: {_where(path)} is {value!r}, half a character; expected whole text")
        return ["value", str(value)]
    if hasattr(value, "__array__"):
        check_array(value, f"save: {_where(path)}")
        arrays[_SEPARATOR.join(("", *path))] = value
        return ["array", None]
    if value is None or isinstance(value, bool | float) or (isinstance(value, int) and abs(value) < _LARGEST):
        return ["value", value]
    raise InvalidArgumentError(
        f"save: {_where(path)} is a {type(value).__name__}; expected tensors, arrays, numbers, text, and dicts and "
        "lists of them; of a net or an optimizer save its state_dict()"
    )


def _is_text(text: str) -> bool:
    """Whether it has no halves of characters, two of which JSON would make one."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _where(path: tuple[str, ...]) -> str:
    return "obj" + "".join(f"[{key!r}]" for key in path)


def _rebuilt(tree: Any, path: tuple[str, ...], arrays: Mapping[str, Any]) -> Any:
    kind, content = tree
    if kind == "array":
        return arrays[_SEPARATOR.join(("", *path))]
    if kind == "value":
        return content
    if kind == "dict":
        return {k: _rebuilt(v, (*path, k), arrays) for k, v in content.items()}
    return _KINDS[kind](_rebuilt(v, (*path, str(i)), arrays) for i, v in enumerate(content))
