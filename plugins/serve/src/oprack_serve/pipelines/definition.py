"""What a pipeline is made of: `pipeline.toml`, read and checked.

module = "pipeline.py"                # the functions; a file beside this one
[inputs.picture]                      # what clients send
datatype = "BYTES"
shape = [1]
[outputs.text]                        # what they get
datatype = "BYTES"
shape = [-1]
[[stages]]
function = "read"                     # of the module: values in, values out, in order
inputs = ["picture"]
outputs = ["image", "size"]
[[stages]]
model = "det"                         # of the same folder of models; its inputs and outputs, in its own order
inputs = ["image"]
outputs = ["map"]
"""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oprack.errors import InvalidArgumentError

from oprack_serve.datatypes import DTYPES
from oprack_serve.repository import NAME, VERSION
from oprack_serve.signature import Signature, TensorSpec

FILE = "pipeline.toml"
MAX_STAGES = 64
_VALUE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_MODULE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}\.py")


@dataclass(frozen=True)
class Stage:
    """A step: a function of the module, or a model (of the newest version, unless one is given)."""

    number: int
    name: str
    is_model: bool
    version: str | None
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def __str__(self) -> str:
        return f"stage {self.number} ({'model' if self.is_model else 'function'} {self.name!r})"


@dataclass(frozen=True)
class Definition:
    """A pipeline as its file describes it."""

    file: Path
    module: Path
    signature: Signature
    stages: tuple[Stage, ...]

    @property
    def models(self) -> list[str]:
        """Names of the models that it needs."""
        return list(dict.fromkeys(stage.name for stage in self.stages if stage.is_model))

    def last_use(self) -> dict[str, int]:
        """By value, the number of the last stage that reads it; those that are outputs are kept to the end."""
        uses = {name: stage.number for stage in self.stages for name in stage.inputs}
        return uses | {spec.name: len(self.stages) + 1 for spec in self.signature.outputs}


def is_pipeline(path: Path) -> bool:
    """Whether a model's folder holds a pipeline."""
    return (path / FILE).is_file()


def load(folder: Path) -> Definition:
    """The pipeline in a folder. Raises InvalidArgumentError that names the file and the key."""
    file = folder / FILE
    try:
        data = tomllib.loads(file.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidArgumentError(f"{os.fspath(file)!r}: {error}") from error
    try:
        return _definition(file, data)
    except _WrongError as error:
        raise InvalidArgumentError(f"{os.fspath(file)!r}: {error}") from None


class _WrongError(Exception):
    """What is wrong, and what was expected."""


def _definition(file: Path, data: dict[str, Any]) -> Definition:
    _only(data, {"module", "inputs", "outputs", "stages"}, "the file")
    inputs, outputs = (_specs(data.get(key), key) for key in ("inputs", "outputs"))
    stages = _stages(data.get("stages"), {spec.name for spec in inputs})
    made = {spec.name for spec in inputs}.union(*(stage.outputs for stage in stages))
    missing = [spec.name for spec in outputs if spec.name not in made]
    if missing:
        raise _WrongError(f"outputs.{missing[0]}; expected the name of an input or of a stage's output")
    return Definition(file, _module(file, data.get("module", "pipeline.py")), Signature(inputs, outputs), stages)


def _module(file: Path, name: Any) -> Path:
    if not isinstance(name, str) or not _MODULE.fullmatch(name):
        raise _WrongError(f"module = {name!r}; expected the name of a Python file beside it, such as 'pipeline.py'")
    module = file.with_name(name)
    if not module.is_file() or module.resolve().parent != file.parent.resolve():
        raise _WrongError(f"module = {name!r}; there is no such file beside it")
    return module


def _only(table: dict[str, Any], known: set[str], what: str) -> None:
    strange = sorted(set(table) - known)
    if strange:
        raise _WrongError(f"{what} has {', '.join(strange)}; expected {', '.join(sorted(known))}")


def _specs(tables: Any, key: str) -> tuple[TensorSpec, ...]:
    if not isinstance(tables, dict) or not tables or not all(isinstance(row, dict) for row in tables.values()):
        raise _WrongError(f"{key}: expected a table for each, [{key}.NAME], with its datatype and shape")
    return tuple(_spec(f"{key}.{name}", name, row) for name, row in tables.items())


def _spec(what: str, name: str, row: dict[str, Any]) -> TensorSpec:
    _only(row, {"datatype", "shape", "lod_level"}, what)
    if not _VALUE.fullmatch(name):
        raise _WrongError(f"{what}; expected a name of letters, digits and '_'")
    datatype, shape, level = row.get("datatype"), row.get("shape"), row.get("lod_level", 0)
    if datatype not in DTYPES:
        raise _WrongError(f"{what}.datatype = {datatype!r}; expected one of {', '.join(DTYPES)}")
    if not isinstance(shape, list) or not all(type(d) is int and -1 <= d < 1 << 31 for d in shape):
        raise _WrongError(f"{what}.shape = {shape!r}; expected a list of sizes, -1 for any")
    if type(level) is not int or not 0 <= level <= 4:
        raise _WrongError(f"{what}.lod_level = {level!r}; expected 0 to 4")
    return TensorSpec(name, DTYPES[datatype], tuple(shape), level)


def _stages(rows: Any, known: set[str]) -> tuple[Stage, ...]:
    tables = isinstance(rows, list) and all(isinstance(row, dict) for row in rows)
    if not tables or not 1 <= len(rows) <= MAX_STAGES:
        raise _WrongError(f"stages: expected 1 to {MAX_STAGES} tables [[stages]]")
    stages = []
    for number, row in enumerate(rows, 1):
        stage = _stage(number, row, known)
        known = known.union(stage.outputs)
        stages.append(stage)
    return tuple(stages)


def _stage(number: int, row: dict[str, Any], known: set[str]) -> Stage:
    what = f"stage {number}"
    _only(row, {"function", "model", "version", "inputs", "outputs"}, what)
    if ("function" in row) == ("model" in row):
        raise _WrongError(f"{what}; expected either function = NAME or model = NAME")
    name, version = row.get("model", row.get("function")), row.get("version")
    if not isinstance(name, str) or not (NAME if "model" in row else _VALUE).fullmatch(name):
        raise _WrongError(f"{what} names {name!r}; expected a model's name, or a function's")
    if version is not None and ("model" not in row or not isinstance(version, str) or not VERSION.fullmatch(version)):
        raise _WrongError(f"{what}: version = {version!r}; expected a string such as '2', of a model")
    inputs, outputs = (_values(what, key, row.get(key)) for key in ("inputs", "outputs"))
    unknown = [value for value in inputs if value not in known]
    if unknown:
        raise _WrongError(
            f"{what}: inputs has {unknown[0]!r}; expected values that are there by then: {', '.join(sorted(known))}"
        )
    again = [value for at, value in enumerate(outputs) if value in known or value in outputs[:at]]
    if again:
        raise _WrongError(f"{what}: outputs has {again[0]!r}, which is there already; expected a new name")
    return Stage(number, name, "model" in row, version, inputs, outputs)


def _values(what: str, key: str, names: Any) -> tuple[str, ...]:
    right = isinstance(names, list) and names and all(isinstance(n, str) and _VALUE.fullmatch(n) for n in names)
    if not right:
        raise _WrongError(f"{what}: {key} = {names!r}; expected a list of names of values")
    return tuple(names)
