"""Inference models: a program, in Fluid's format or that of a plugin, and its parameters, as Paddle saves them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

import numpy as np

from oprack.errors import CorruptModelError, MissingPackError, ModelError, NotFoundError, UnimplementedError
from oprack.io.parameters import (
    check_files,
    open_view,
    persistable_vars,
    read_combined_file,
    read_combined_view,
    read_separate,
    set_values,
    variable_path,
)
from oprack.names import tables
from oprack.packs.installed.resolve import import_object
from oprack.packs.manager import default_manager
from oprack.program import Program
from oprack.python.records import dataclass
from oprack.runtime.feed_fetch import feed_columns, fetch_columns
from oprack.tensor import LoDTensor, Scope

_LOOKED_AT = 64
"""Bytes in which a file has to begin with something else than white space."""


@dataclass(frozen=True)
class ReadModel:
    """What was read from a program file.

    Attributes:
        program: The program, with feed and fetch ops.
        parameters: Name -> array, where the file holds its parameters or names the files that do; None where they lie
            in files of their own, as those of Fluid's programs.
        files: The files besides it from which parameters came.
    """

    program: Program
    parameters: Mapping[str, np.ndarray] | None = None
    files: Sequence[Path] = ()


@dataclass(frozen=True)
class Format:
    """A sort of program files that a plugin reads.

    Attributes:
        suffix, starts, holds_parameters, writer: See `Register.format`.
    """

    owner: str
    suffix: str
    starts: str
    target: str
    holds_parameters: bool = False
    writer: str = ""

    def write(self, model: InferenceModel, scope: Scope, path: Path) -> tuple[Sequence[Path], Sequence[str]]:
        """Write a model whose parameters are in a scope; returns the files, and remarks for the user."""
        function = import_object(self.writer, f"format {self.suffix} of {self.owner}")
        return cast(Callable[..., tuple[Sequence[Path], Sequence[str]]], function)(model, scope, path)

    def read(self, data: bytes | memoryview, folder: Path | None) -> ReadModel:
        """The model. Raises what the plugin's function raises, which is a ModelError for bad files."""
        function = import_object(self.target, f"format {self.suffix} of {self.owner}")
        if self.holds_parameters:
            return cast(Callable[[bytes | memoryview, Path | None], ReadModel], function)(data, folder)
        return ReadModel(cast(Callable[[bytes | memoryview], Program], function)(data))


def formats() -> list[Format]:
    """The formats of the packs in use."""
    targets = default_manager().targets("format")
    return [Format(owner, **json.loads(key), target=target) for owner, key, target in targets]


def suffixes() -> Iterator[str]:
    """Suffixes of program files besides `.pdmodel`: of the formats in use, and of those of plugins not installed."""
    in_use = [found.suffix for found in formats()]
    yield from in_use
    yield from (suffix for suffix in tables.names("formats") if suffix not in in_use)


def parse_model(data: bytes | memoryview, file: Path | None = None) -> ReadModel:
    """The program of a file, by what it begins with, or else by its suffix, and the parameters that it holds.

    Args:
        data: Its bytes.
        file: Where they lie, if in a file.

    Returns:
        The program, and its parameters where the format holds them.

    Raises:
        MissingPackError: The file has the suffix of a format that no installed plugin reads.
        ModelError: The bytes are no program.
    """
    if data[:1] != b"\n":  # as every program of Fluid begins; no plugin is asked for those
        begin, suffix = bytes(data[:_LOOKED_AT]).lstrip(), file.suffix if file is not None else ""
        known = formats()
        found = next((f for f in known if begin.startswith(f.starts.encode())), None)
        found = found or next((f for f in known if f.suffix == suffix), None)
        if found is not None:
            return found.read(data, file.parent if file is not None else None)
        if suffix and suffix in tables.names("formats"):
            reader = tables.home("formats", suffix)
            raise MissingPackError(
                f"program files {suffix} are read by {reader}, which is not installed or not in use: "
                f"pip install {reader}"
            )
    try:
        return ReadModel(Program.parse(data))
    except CorruptModelError as error:
        absent = [s for s in tables.names("formats") if all(f.suffix != s for f in formats())]
        others = [f"{s} by {tables.home('formats', s)}" for s in absent]
        if not others:
            raise
        raise CorruptModelError(
            f"{error} (plugins that are not installed read other formats: {', '.join(others)})"
        ) from None


_MOST_FILES = 4096
"""Files of a folder that are looked at before its program is read to know which of them are parameters."""


@dataclass
class InferenceModel:
    """A program whose parameters are in a scope.

    Attributes:
        program: The program.
        feed_names: Names of its inputs, in order.
        fetch_names: Names of its outputs, in order.
    """

    program: Program
    feed_names: list[str]
    fetch_names: list[str]


def load_inference_model(
    path: str | os.PathLike[str], scope: Scope, *, model_filename: str | None = None, params_filename: str | None = None
) -> InferenceModel:
    """Read a model that Paddle 1.6 to 2.6 or `save_inference_model` saved, or of a format that a plugin reads.

    Args:
        path: `<prefix>` of `<prefix>.pdmodel` and `<prefix>.pdiparams`; or a directory with `__model__` (or one
            `.pdmodel`) and with `__params__`, `.pdiparams` or one file per variable. In place of the `.pdmodel` there
            may be a program of another format, such as the `.json` of Paddle 3 with the plugin pir, or the `.onnx` of
            the plugin onnx, which holds its parameters.
        scope: Where its parameters are set.
        model_filename: Name of the program file in that directory, where it is another.
        params_filename: Name of the parameter file in that directory, where it is another.

    Returns:
        The program, and the names of its inputs and outputs.

    Raises:
        NotFoundError: There is no such model.
        CorruptModelError: The program can't be read; BlockCycleError when its blocks contain each other.
        MissingPackError: No installed plugin reads the program's format.
        UnimplementedError: The program is of another format and has ops that Fluid does not have.
        MissingParameterError: A file of a parameter is missing.
        CorruptParameterError: A parameter file is broken or of another program.
        UnsafeNameError: A name leads out of the directory.
    """
    model, params = _locate(Path(path), model_filename, params_filename)
    read, feeds, fetches = _read_model(model)
    descs = persistable_vars(read.program) if read.parameters is None else []
    if read.parameters is not None:
        _set_parameters(scope, read.parameters)
    elif descs:
        values = read_separate(model.parent, descs) if params is None else read_combined_file(params, descs)
        set_values(scope, values)
    return InferenceModel(read.program, feeds, fetches)


def model_files(
    path: str | os.PathLike[str], *, model_filename: str | None = None, params_filename: str | None = None
) -> dict[str, Path]:
    """The files that load_inference_model reads with these arguments: "program", and "parameters" or one per variable.

    Raises as load_inference_model; a parameter file that is missing is left out.
    """
    model, params = _locate(Path(path), model_filename, params_filename)
    files = {"program": model}
    if params is not None:
        files["parameters"] = params
    else:
        read, _, _ = _read_model(model)
        descs = persistable_vars(read.program) if read.parameters is None else []
        files |= {f"parameter {var.name}": variable_path(model.parent, var.name) for var in descs}
        files |= {f"parameters {file.name}": file for file in read.files}
    return {name: file for name, file in files.items() if file.exists()}


def files_beside(
    path: str | os.PathLike[str], *, model_filename: str | None = None, params_filename: str | None = None
) -> dict[str, Path]:
    """The files of `model_files` without reading the program, and perhaps others: those that its bytes name.

    A parameter with a file of its own has the name of that file, in the program's bytes as it is. Raises as
    load_inference_model, but for what is wrong with the program; a parameter file that is missing is left out.
    """
    model, params = _locate(Path(path), model_filename, params_filename)
    files = {"program": model}
    if params is not None:
        return files | ({"parameters": params} if params.exists() else {})
    text, count = bytes(open_view(model)), 0
    for folder, _, names in os.walk(model.parent):
        count += len(names)
        if count > _MOST_FILES:
            return model_files(path, model_filename=model_filename, params_filename=params_filename)
        for file in (Path(folder, name) for name in sorted(names)):
            name = file.relative_to(model.parent).as_posix()
            if file != model and name.encode("utf-8", "surrogateescape") in text:
                files[f"parameter {name}"] = file
    return dict(sorted(files.items()))


def load_program(
    path: str | os.PathLike[str], *, model_filename: str | None = None
) -> tuple[Program, list[str], list[str]]:
    """Read a program and the names of its inputs and outputs, without parameters. Raises as load_inference_model."""
    model, _ = _locate(Path(path), model_filename, None)
    read, feeds, fetches = _read_model(model)
    return read.program, feeds, fetches


def check_parameters(
    path: str | os.PathLike[str],
    program: Program,
    *,
    model_filename: str | None = None,
    params_filename: str | None = None,
) -> None:
    """See that the parameter files of a model are there and whole, by the sizes in them alone.

    Args:
        path: As for load_inference_model, and so are the names.
        program: What load_program made of it.
        model_filename: Name of the program file.
        params_filename: Name of the parameter file.

    Raises:
        MissingParameterError, CorruptParameterError, UnsafeNameError: As load_inference_model would.
    """
    model, params = _locate(Path(path), model_filename, params_filename)
    descs = persistable_vars(program)
    if descs and not _holds_parameters(model):  # else they were checked when the program was read
        check_files(model.parent, params, descs)


def _holds_parameters(model: Path) -> bool:
    return model.suffix != ".pdmodel" and any(f.holds_parameters and f.suffix == model.suffix for f in formats())


def _set_parameters(scope: Scope, parameters: Mapping[str, np.ndarray]) -> None:
    set_values(scope, {name: LoDTensor(array) for name, array in parameters.items()})


def _read_model(model: Path) -> tuple[ReadModel, list[str], list[str]]:
    try:
        read = parse_model(open_view(model), model)
        return (read, *feed_and_fetch_names(read.program))
    except (ModelError, MissingPackError, UnimplementedError) as error:
        raise type(error)(f"{os.fspath(model)!r}: {error}") from error


def load_from_buffers(model: bytes, params: bytes, scope: Scope) -> InferenceModel:
    """As load_inference_model, from bytes.

    Args:
        model: The bytes of a program file.
        params: The bytes of a combined parameter file; b"" for none, or where the program file holds them.
        scope: Where parameters are set.

    Returns:
        The program, and the names of its inputs and outputs.
    """
    read = parse_model(model)
    feeds, fetches = feed_and_fetch_names(read.program)
    if read.parameters is not None:
        _set_parameters(scope, read.parameters)
    else:
        descs = persistable_vars(read.program)
        set_values(scope, read_combined_view(memoryview(params), descs, "the parameter buffer"))
    return InferenceModel(read.program, feeds, fetches)


def _locate(path: Path, model_filename: str | None, params_filename: str | None) -> tuple[Path, Path | None]:
    """The program file, and the combined parameter file or None when each variable has its own."""
    if path.is_dir():
        model = path / model_filename if model_filename is not None else _only_program(path)
    elif model_filename is not None:
        model = path.with_name(model_filename)
        if not model.is_file():
            model = path.with_name(model_filename.removesuffix(".pdmodel") + ".pdmodel")
    else:
        model = _of_prefix(path)
    if not model.is_file():
        raise NotFoundError(
            f"{os.fspath(model)!r} is no file; expected a directory with __model__, or <prefix> of <prefix>.pdmodel"
            + "".join(f" or <prefix>{suffix}" for suffix in suffixes())
        )
    if params_filename is not None:
        return model, model.parent / params_filename
    if _holds_parameters(model):
        return model, None
    if model.suffix == ".pdmodel" or (model.suffix and model.suffix in suffixes()):
        return model, model.with_suffix(".pdiparams")
    combined = model.parent / "__params__"
    return model, combined if combined.is_file() else None


def _of_prefix(path: Path) -> Path:
    """The program file `path`, or of the prefix `path`; that of Fluid's format where there is none."""
    fluid = path.with_name(path.name.removesuffix(".pdmodel") + ".pdmodel")
    # Other formats are asked for last: to know those of plugins that are not installed, a table has to be read.
    if fluid.is_file():
        return fluid
    others = [path] if path.suffix and path.suffix in suffixes() else []
    others += [path.with_name(path.name + suffix) for suffix in suffixes()]
    return next((file for file in others if file.is_file()), fluid)


def _only_program(directory: Path) -> Path:
    """The program file of a directory. Raises NotFoundError unless there is exactly one."""
    if (directory / "__model__").is_file():
        return directory / "__model__"
    found = sorted(directory.glob("*.pdmodel"))
    for suffix in suffixes() if not found else ():
        others = sorted(directory.glob(f"*{suffix}"))
        # other files may have such a suffix; a program's parameters lie beside it
        found += [file for file in others if file.with_suffix(".pdiparams").is_file()] or others
    if len(found) != 1:
        raise NotFoundError(
            f"{os.fspath(directory)!r} has {len(found)} program files ({', '.join(['.pdmodel', *suffixes()])}) and no "
            "__model__; expected one, so pass model_filename, or the path of the program file"
        )
    return found[0]


def feed_and_fetch_names(program: Program) -> tuple[list[str], list[str]]:
    """Names of the inputs and outputs, from the feed and fetch ops of block 0, in the order of their attribute `col`.

    Raises:
        CorruptModelError: A feed or fetch op has no variable.
    """
    block = program.global_block()
    return [name for _, name in feed_columns(block)], [name for _, name in fetch_columns(block)]


def freeze_parameters(scope: Scope, besides: Sequence[str] = ()) -> None:
    """Make parameters read-only: kernel libraries may then keep what they derive from them, such as packed weights."""
    for name in set(scope.local_var_names()).difference(besides):
        value = scope.var(name).value
        if isinstance(value, LoDTensor) and isinstance(array := value.array, np.ndarray):
            # a view is of memory that somebody else may write to; and an op in place makes memory of its own first
            value.array, value.shared = array if array.flags.owndata else array.copy(order="K"), True
            value.array.flags.writeable = False
