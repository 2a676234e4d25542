"""Op cases as data: small programs, their inputs, and what Paddle computes for them (tests/data/cases/README.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from oprack.desc import ProgramDesc
from oprack.program import Program
from oprack.tensor import LoDTensor, LoDTensorArray, SelectedRows, lod_from_lengths, numpy_dtype
from oprack.types import dtype_enum

Stage = Literal["forward", "gradient", "gradient2"]
_PROGRAMS: dict[Stage, str] = {"forward": "program", "gradient": "program_grad", "gradient2": "program_grad2"}


@dataclass(frozen=True)
class Expected:
    """A variable to fetch and the value it should have.

    Attributes:
        name: The variable.
        value: What it should hold.
        info: Its tolerances (rtol, atol) and flags.
    """

    name: str
    value: Any
    info: Mapping[str, Any]


@dataclass
class FileCase:
    """One case of a case file.

    Attributes:
        header: What the README beside the files describes.
        arrays: Its arrays by name.
    """

    header: dict[str, Any]
    arrays: dict[str, np.ndarray] = field(repr=False)

    @property
    def id(self) -> str:
        """The case's name."""
        return str(self.header["id"])

    @property
    def stochastic(self) -> bool:
        """Only dtype and shape of the outputs hold."""
        return bool(self.header.get("stochastic"))

    def has(self, stage: Stage) -> bool:
        """Whether the case has a program of a stage.

        Args:
            stage: Its forward program, its gradient or the gradient of that.

        Returns:
            Whether it has.
        """
        return _PROGRAMS[stage] in self.arrays

    def program(self, stage: Stage = "forward") -> Program:
        """The program of a stage.

        Args:
            stage: Its forward program, its gradient or the gradient of that.

        Returns:
            The program.
        """
        if stage not in self._parsed:
            self._parsed[stage] = ProgramDesc.parse(self.arrays[_PROGRAMS[stage]].tobytes())
        program = Program(self._parsed[stage].clone())
        block = program.global_block()
        # Paddle declares a cotangent as it guesses its variable before the run; it is what was fed.
        for name, value in self.inputs(stage).items() if stage != "forward" else ():
            if name not in self.feeds and block.has_var(name):
                var = block.var(name)
                var.dtype, var.shape = dtype_enum(value.dtype), tuple(value.shape)
        return program

    def op_types(self, stage: Stage = "forward") -> set[str]:
        """Op types of the program of a stage."""
        return self.program(stage).op_types()

    @cached_property
    def _parsed(self) -> dict[Stage, ProgramDesc]:
        """The programs that were asked for; each test gets copies."""
        return {}

    @cached_property
    def feeds(self) -> dict[str, Any]:
        """Inputs of the forward program, by variable."""
        return {name: self._value("feed", name, info) for name, info in self.header["feeds"].items()}

    @property
    def persistable(self) -> set[str]:
        """Inputs that are put into the scope before the run instead of being fed."""
        return {name for name, info in self.header["feeds"].items() if info.get("persistable")}

    def inputs(self, stage: Stage) -> dict[str, Any]:
        """Inputs of the program of a stage: for gradients, the cotangents, too."""
        values = dict(self.feeds)
        if stage != "forward":
            for cot in self.header["grad"]["cotangents"]:
                values[cot["var"]] = self._tensor(self.arrays["cot:" + cot["target"]], cot)
        if stage == "gradient2":
            for cot in self.header["grad2"]["cotangents"]:
                values[cot["var"]] = self._tensor(self.arrays["cot2:" + cot["var"]], cot)
        return values

    def expected(self, stage: Stage) -> list[Expected]:
        """What to fetch from the program of a stage, and its values with their tolerances."""
        if stage == "forward":
            return [Expected(f["name"], self._value("out", f["name"], f), f) for f in self.header["fetch"]]
        wanted, key = ("grad", "grad") if stage == "gradient" else ("grad2", "grad2")
        return [Expected(w["var"], self._gradient(key, w), w) for w in self.header[wanted]["wrt"]]

    def numeric_gradient(self, wrt: str) -> np.ndarray | None:
        """Central differences of Paddle's forward, where they disagree with Paddle's gradient; NaN = a kink.

        Args:
            wrt: The variable.

        Returns:
            The gradient; None where they agree.
        """
        return self.arrays.get("numgrad:" + wrt)

    def _gradient(self, key: str, info: Mapping[str, Any]) -> Any:
        """A gradient; Paddle allocates none without elements, so that has the dtype and shape of its variable."""
        value, of = self._value(key, info["wrt"], info), self.feeds.get(info["wrt"])
        if isinstance(value, LoDTensor) and isinstance(of, LoDTensor) and value.array.size == of.array.size == 0:
            return LoDTensor(of.array, value.lod, check=False)
        return value

    def _value(self, prefix: str, name: str, info: Mapping[str, Any]) -> Any:
        kind = info.get("kind", "dense")
        if kind == "array":
            items = enumerate(info["items"])
            return LoDTensorArray(self._tensor(self.arrays[f"{prefix}:{name}#{i}"], item) for i, item in items)
        array = self.arrays[f"{prefix}:{name}"]
        if kind == "rows":
            return SelectedRows(self.arrays[f"{prefix}rows:{name}"], _typed(array, info), info["height"])
        return self._tensor(array, info)

    def _tensor(self, array: np.ndarray, info: Mapping[str, Any]) -> LoDTensor:
        return LoDTensor(_typed(array, info), lod_from_lengths(info.get("lod") or []), check=False)


def _typed(array: np.ndarray, info: Mapping[str, Any]) -> np.ndarray:
    """bfloat16 is stored as its bits; no variable has dtype uint16, and not every header says bfloat16."""
    if info.get("dtype", "bfloat16") == "bfloat16" and array.dtype == np.uint16:
        return array.view(numpy_dtype("bfloat16"))
    return array


def load_cases(path: Path | str) -> Iterator[FileCase]:
    """The cases of one .npz file.

    Args:
        path: The file.

    Yields:
        Each case.
    """
    with np.load(path, allow_pickle=False) as archive:
        headers = json.loads(archive["cases"].tobytes().decode())
        buffers = {name.removeprefix("data_"): archive[name] for name in archive.files if name.startswith("data_")}
    for header in headers:
        arrays = {}
        for key, (dtype, offset, shape) in header["arrays"].items():
            size = int(np.prod(shape, dtype=np.int64))
            arrays[key] = buffers[dtype][offset : offset + size].reshape(shape)
        yield FileCase(header, arrays)


def compare(expected: Expected, got: Any, scale: float = 1.0) -> str:
    """Compare a value with what a case expects; SelectedRows agree when their dense matrices do.

    Args:
        expected: What the case expects.
        got: The value.
        scale: Factor on the case's tolerances.

    Returns:
        "" when they agree, else the reason.
    """
    want = expected.value
    if type(got) is not type(want):
        return f"is a {type(got).__name__}, expected a {type(want).__name__}"
    if isinstance(want, LoDTensorArray):
        if len(got) != len(want):
            return f"has {len(got)} elements, expected {len(want)}"
        for i, (w, g) in enumerate(zip(want, got, strict=True)):
            reason = compare(Expected(expected.name, w, expected.info), g, scale)
            if reason:
                return f"element {i} {reason}"
        return ""
    if isinstance(want, SelectedRows):
        if got.height != want.height:
            return f"has height {got.height}, expected {want.height}"
        return _compare_arrays(want.to_dense(), got.to_dense(), expected.info, scale)
    if got.lod != want.lod:
        return f"has LoD {got.lod}, expected {want.lod}"
    return _compare_arrays(want.array, np.asarray(got), expected.info, scale)


def _compare_arrays(want: np.ndarray, got: np.ndarray, info: Mapping[str, Any], scale: float) -> str:
    if got.dtype != want.dtype:
        return f"has dtype {got.dtype}, expected {want.dtype}"
    if got.shape != want.shape:
        return f"has shape {list(got.shape)}, expected {list(want.shape)}"
    if want.dtype.kind not in "fc" and want.dtype.name != "bfloat16":
        differing = int((got != want).sum())
        return f"differs in {differing} of {want.size} elements" if differing else ""
    if want.dtype.itemsize == 2:
        want, got = want.astype(np.float32), got.astype(np.float32)
    rtol, atol = info.get("rtol", 0.0) * scale, info.get("atol", 0.0) * scale
    with np.errstate(all="ignore"):
        agree = np.isclose(got, want, rtol=rtol, atol=atol, equal_nan=True)
        if agree.all():
            return ""
        worst = float(np.nanmax(np.abs(got - want)))
    return (
        f"differs in {int((~agree).sum())} of {want.size} elements by up to {worst:.3g} (rtol {rtol:g}, atol {atol:g})"
    )
