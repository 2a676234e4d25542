"""Saves and loads the persistable variables of a program; names are untrusted, so they never leave the directory."""

from __future__ import annotations

import math
import mmap
import os
import re
import stat
from collections.abc import Mapping, Sequence
from itertools import dropwhile
from pathlib import Path
from typing import Any

from oprack.desc import ProgramDesc, VarDesc
from oprack.errors import CorruptParameterError, InvalidArgumentError, MissingParameterError, UnsafeNameError
from oprack.io.streams import read_combined, read_variable, skip_variable, write_variable
from oprack.program import Program
from oprack.tensor import LoDTensor, Scope, SelectedRows, numpy_dtype
from oprack.types import DTYPE_NAMES, FLOATS, VarType

_MAX_PART = 255  # bytes of one file name on common file systems
_MAX_PARTS = 64
_TOLD = 5  # names in a message about very many


def variable_path(directory: str | os.PathLike[str], name: str) -> Path:
    """The file of variable `name` inside `directory`; slashes in the name make directories, as in Paddle.

    Raises:
        UnsafeNameError: For a name that leads out of the directory (`..`, an absolute path, a drive, a symbolic link)
            or can't be a file name.
    """
    why = _objection(name)
    if why is not None:
        raise UnsafeNameError(
            f"variable {name[:200]!r} can't be a file in {os.fspath(directory)!r}: {why}; expected a plain name such "
            "as 'fc_0.w_0', so rename the variable or use a combined parameter file"
        )
    base = Path(directory)
    path = base / name
    try:
        inside = _resolved(path).is_relative_to(base.resolve())
    except (OSError, RuntimeError):  # symbolic links that run in a circle
        inside = False
    if not inside:
        raise UnsafeNameError(
            f"variable {name!r}: {os.fspath(path)!r} is a symbolic link that leads out of {os.fspath(directory)!r}; "
            "expected a file inside the model's directory, so copy the file there"
        )
    return path


def _resolved(path: Path) -> Path:
    """Where a path leads; an error for links in a circle, about which `resolve()` says nothing from Python 3.13 on."""
    try:
        return path.resolve(strict=True)
    except (FileNotFoundError, NotADirectoryError):
        return path.resolve()


def _objection(name: str) -> str | None:
    if not name:
        return "the name is empty"
    if "\0" in name:
        return "the name has a NUL character"
    # Backslashes and drives mean something on Windows only, but a model should be safe wherever it goes
    if name[0] in "/\\":
        return "the name is an absolute path"
    if re.match("[A-Za-z]:", name):
        return "the name begins with a drive"
    parts = re.split(r"[/\\]", name)
    if ".." in parts or "." in parts:
        return "the name has a part '..' or '.'"
    if len(parts) > _MAX_PARTS:
        return f"the name has {len(parts)} parts; expected at most {_MAX_PARTS}"
    if "" in parts:
        return "the name has an empty part"
    if any(len(part.encode("utf-8", "surrogatepass")) > _MAX_PART for part in parts):
        return f"the name has a part of more than {_MAX_PART} bytes"
    return None


Value = LoDTensor | SelectedRows

# Persistable, but filled by a run and not by a file
_NOT_SAVED = frozenset({VarType.FEED_MINIBATCH, VarType.FETCH_LIST, VarType.RAW, VarType.READER})


def persistable_vars(program: Program | ProgramDesc) -> list[VarDesc]:
    """The variables of all blocks that parameter files hold, in the order of a combined file: by the names' bytes.

    Args:
        program: The program.

    Returns:
        The VarDescs.
    """
    variables: dict[str, VarDesc] = {}
    for block in program.blocks:
        for var in block.vars.values():
            if var.persistable and var.type not in _NOT_SAVED:
                variables.setdefault(var.name, var)
    return [variables[name] for name in sorted(variables, key=lambda name: name.encode("utf-8", "surrogatepass"))]


def load_vars(
    directory: str | os.PathLike[str], program: Program, scope: Scope, *, filename: str | None = None
) -> None:
    """Set the persistable variables of `program` in `scope` from one file each, or from the combined file `filename`.

    All files are read and checked before any variable is set.

    Args:
        directory: The directory of the files.
        program: The program.
        scope: The scope in which to set the variables.
        filename: Name of the combined file, if it is one.

    Raises:
        MissingParameterError: The message lists every missing file.
        CorruptParameterError: A file is broken or of another program; OversizedTensorError is derived from it.
        InvalidLoDError: The offsets in a file are broken.
        UnsafeNameError: For names that lead out of the directory.
    """
    descs = persistable_vars(program)
    if filename is None:
        values = read_separate(Path(directory), descs)
    else:
        values = read_combined_file(Path(directory, filename), descs)
    set_values(scope, values)


def save_vars(
    directory: str | os.PathLike[str], program: Program, scope: Scope, *, filename: str | None = None
) -> None:
    """Write the persistable variables of `program`, one file each or all to the combined file `filename`; all or none.

    Args:
        directory: The target directory, created when it does not exist.
        program: The program.
        scope: The scope that holds its variables.
        filename: Name of the combined file, if there is to be one.

    Raises:
        MissingParameterError: The message lists every variable without a value.
        InvalidArgumentError: For a value that does not fit its VarDesc.
        UnsafeNameError: For a name that can't be a file.
    """
    from oprack.io.atomic import AtomicSave  # imported here, since readers do not need its dependencies

    values = collect_values(scope, persistable_vars(program))
    with AtomicSave() as save:
        if filename is None:
            for name, value in values.items():
                with save.open(variable_path(directory, name)) as file:
                    write_variable(file, value, name)
        else:
            with save.open(Path(directory, filename)) as file:
                for name, value in values.items():
                    write_variable(file, value, name)


# Reading ------------------------------------------------------------------------------------------------------------
def set_values(scope: Scope, values: Mapping[str, Value]) -> None:
    for name, value in values.items():
        # Not `set`, which marks the memory as shared: it was allocated by the reader, so in-place ops may use it.
        scope.var(name).value = value


def read_separate(directory: Path, descs: list[VarDesc]) -> dict[str, Value]:
    """Values of the variables from `directory`, one file each."""
    paths = {var.name: variable_path(directory, var.name) for var in descs}
    missing = [name for name, path in paths.items() if not path.exists()]
    if missing:
        raise MissingParameterError(
            f"{len(missing)} of {len(descs)} persistable variables have no file in {os.fspath(directory)!r}: "
            f"{', '.join(map(repr, missing))}; expected a file per variable, named like it (for one file with all of "
            "them, give its name: filename of load_vars, params_filename of load_inference_model)"
        )
    values: dict[str, Value] = {}
    for var in descs:
        view, source = open_view(paths[var.name]), repr(os.fspath(paths[var.name]))
        value, end = read_variable(view, 0, var.type, name=var.name, source=source)
        if end != len(view):
            raise CorruptParameterError(
                f"variable {var.name!r}: {len(view) - end} bytes of {len(view)} are left after the tensor in {source}; "
                "expected a file with this variable alone (for a combined file, give its name: filename of load_vars, "
                "params_filename of load_inference_model)"
            )
        values[var.name] = fitted(value, var, source)
    return values


def read_combined_file(path: Path, descs: list[VarDesc]) -> dict[str, Value]:
    """Values of the variables from one combined file."""
    if not path.exists():
        raise MissingParameterError(
            f"{os.fspath(path)!r} does not exist; expected the combined file of {len(descs)} persistable variables: "
            + _some(descs)
        )
    return read_combined_view(open_view(path), descs, repr(os.fspath(path)))


def _some(descs: Sequence[VarDesc]) -> str:
    """The first names, and how many more there are."""
    names = ", ".join(repr(var.name) for var in descs[:_TOLD])
    return names + (f" and {len(descs) - _TOLD} more" if len(descs) > _TOLD else "")


def check_files(directory: Path, combined: Path | None, descs: list[VarDesc]) -> None:
    """Raise what reading the variables would raise, but read the sizes in the files alone.

    Args:
        directory: Where each variable has a file, for no combined file.
        combined: The combined file.
        descs: The variables.

    Raises:
        MissingParameterError: A file is missing.
        CorruptParameterError: A file is too short, too long, or of another program.
        UnsafeNameError: A name leads out of the directory.
    """
    if combined is None:
        missing = [var for var in descs if not variable_path(directory, var.name).exists()]
        if missing:
            raise MissingParameterError(
                f"{len(missing)} of {len(descs)} persistable variables have no file in {os.fspath(directory)!r}: "
                + _some(missing)
            )
        for var in descs:
            path = variable_path(directory, var.name)
            _skip(open_view(path), 0, [var], repr(os.fspath(path)))
    elif not combined.exists():
        read_combined_file(combined, descs)
    else:
        _skip(open_view(combined), 0, descs, repr(os.fspath(combined)))


def _skip(view: memoryview, offset: int, descs: Sequence[VarDesc], source: str) -> None:
    """Go over the variables of a file, and see that they are what is declared, and all that there is."""
    for var in descs:
        dtype, dims, offset = skip_variable(view, offset, var.type, name=var.name, source=source)
        stored = math.prod(dims)
        if var.shape is not None and min(var.shape, default=0) >= 0 and stored != math.prod(var.shape):
            raise CorruptParameterError(
                f"variable {var.name!r} in {source}: got {dtype}{list(dims)}, but the program expects "
                f"{var.dtype_name() or ''}{list(var.shape)}; so the file belongs to another program"
            )
    if offset != len(view):
        raise CorruptParameterError(
            f"{source}: {len(view) - offset} of {len(view)} bytes are left behind the last of {len(descs)} variables; "
            "expected the file to end there, so the file belongs to another program"
        )


def read_combined_view(view: Any, descs: list[VarDesc], source: str) -> dict[str, Value]:
    """Values of the variables from the bytes of a combined file."""
    values = read_combined(view, [(var.name, var.type) for var in descs], source=source)
    return values | {var.name: fitted(values[var.name], var, source) for var in descs}


def open_view(path: Path) -> memoryview:
    """Map a regular file into memory."""
    # Without O_NONBLOCK, opening a named pipe in an untrusted directory would block forever.
    fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise CorruptParameterError(f"{os.fspath(path)!r} is no regular file; expected a parameter file")
        if not status.st_size:
            return memoryview(b"")  # an empty file can't be mapped
        return memoryview(mmap.mmap(fd, 0, access=mmap.ACCESS_READ))
    finally:
        os.close(fd)


def check_fits(value: Value, var: VarDesc, source: str) -> None:
    """Raise CorruptParameterError when a value's dtype or dims are not those of the VarDesc; dim -1 matches any."""
    why = _misfit(value, var)
    if why is not None:
        raise CorruptParameterError(f"variable {var.name!r} in {source}: {why}; so the file belongs to another program")


def fitted(value: Value, var: VarDesc, source: str) -> Value:
    """The value as the program declares it; raises what check_fits raises.

    Paddle's quantization stores scales with more or fewer leading dims of 1 than it declares, and weights of int8 that
    it declares as floats; all other values have to be what is declared.
    """
    if isinstance(value, LoDTensor):
        array = value.array
        if var.shape is not None and array.shape != tuple(var.shape) and _rows(array.shape) == _rows(var.shape):
            array = array.reshape(var.shape)
        if var.dtype is not None and value.dtype == "int8" and var.dtype_name() in FLOATS:
            array = array.astype(numpy_dtype(var.dtype))
        value = value if array is value.array else LoDTensor(array, shared=value.shared is not False)
    check_fits(value, var, source)
    return value


def _rows(dims: Sequence[int]) -> list[int]:
    """Dims without leading ones."""
    return list(dropwhile(lambda n: n == 1, dims))


def _misfit(value: Value, var: VarDesc) -> str | None:
    stored = value.value if isinstance(value, SelectedRows) else value.array
    dims = value.shape if isinstance(value, SelectedRows) else tuple(stored.shape)
    wrong_dtype = var.dtype in DTYPE_NAMES and DTYPE_NAMES[var.dtype] != value.dtype
    wrong_dims = var.shape is not None and (
        len(dims) != len(var.shape) or any(want not in (-1, got) for got, want in zip(dims, var.shape, strict=True))
    )
    if not wrong_dtype and not wrong_dims:
        return None
    expected = "" if var.shape is None else str(list(var.shape))
    return f"got {value.dtype}{list(dims)}, but the program expects {var.dtype_name() or ''}{expected}"


# Writing ------------------------------------------------------------------------------------------------------------
def collect_values(scope: Scope, descs: list[VarDesc]) -> dict[str, Any]:
    """Values of the variables, in the caller's order, after a check against their VarDescs."""
    values: dict[str, Any] = {}
    missing = []
    for var in descs:
        variable = scope.find_var(var.name)
        if variable is None or not variable.is_initialized():
            missing.append(var.name)
            continue
        values[var.name] = value = variable.get()
        why = _misfit(value, var) if isinstance(value, LoDTensor | SelectedRows) else None
        if why is not None:
            raise InvalidArgumentError(f"variable {var.name!r}: {why}; set the variable to a value of its VarDesc")
    if missing:
        raise MissingParameterError(
            f"{len(missing)} of {len(descs)} persistable variables hold no value in the scope: "
            f"{', '.join(map(repr, missing))}; run the startup program or load parameters before saving"
        )
    return values
