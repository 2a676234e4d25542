"""What the kernels of the CUDA sources take: their parameters, read from the sources, and a check of arguments.

A source says how many elements its pointers have, by their names: `// sizes: x rows * width, offsets rows + 1`, and
for one kernel of it `// sizes of gru_gates: gates 3 * n * D`. Pointers that it does not name have sizes that only the
device knows; of these, dtype and contiguity are checked.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from oprack.errors import InvalidArgumentError

_KERNEL = re.compile(r'extern "C" __global__ void (\w+)\(([^)]*)\)', re.S)
# a macro that declares a kernel: the parameters of its body
_MACRO = re.compile(r"#define (\w+)\(NAME, VALUE\).*?void NAME\(([^)]*)\)", re.S)
_SIZES = re.compile(r"^// sizes(?: of (\w+))?: (.*(?:\n//   .*)*)$", re.M)
_SCALARS = {"i64": np.int64, "u64": np.uint64, "int": np.int32, "double": np.float64}
_ELEMENTS = {"i64": "int64", "int": "int32", "unsigned char": "uint8", "double": "float64"}


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel. type: as it is written. size: of a pointer, in elements; "": not known."""

    name: str
    type: str
    size: str = ""

    @property
    def is_pointer(self) -> bool:
        return self.type.endswith("*")

    def dtype(self, element: str) -> str:
        """Name of the elements' dtype, in a source compiled for dtype `element`."""
        kind = self.type.replace("const", "").strip(" *")
        if kind == "A":
            return "float32" if element in ("float16", "bfloat16") else element
        return _ELEMENTS.get(kind, element)


def kernels_of(text: str) -> dict[str, tuple[Parameter, ...]]:
    """The kernels of a source."""
    found = {name: parameters for name, parameters in _KERNEL.findall(text) if name != "NAME"}
    for macro, parameters in _MACRO.findall(text):
        found |= dict.fromkeys(re.findall(rf"^{macro}\((\w+),", text, re.M), parameters)
    sizes: dict[str, dict[str, str]] = {}
    for kernel, listed in _SIZES.findall(text):
        for item in listed.replace("\n//  ", "").split(","):
            pointer, size = item.strip().split(" ", 1)
            sizes.setdefault(kernel, {})[pointer] = size.strip()
    return {
        name: tuple(_parameter(p, sizes.get("", {}) | sizes.get(name, {})) for p in _split(parameters))
        for name, parameters in found.items()
    }


def _split(parameters: str) -> list[str]:
    return [p.strip() for p in re.sub(r"\\\n", " ", parameters).split(",")]


def _parameter(text: str, sizes: dict[str, str]) -> Parameter:
    kind, name = text.rsplit(" ", 1)
    return Parameter(name, kind.strip(), sizes.get(name, "") if kind.endswith("*") else "")


class Check:
    """Compares the arguments of one kernel's launches with its parameters."""

    def __init__(self, kernel: str, parameters: Sequence[Parameter], dtype: str) -> None:
        self._kernel, self._parameters = kernel, parameters
        index = {p.name: i for i, p in enumerate(parameters)}
        self._scalars = [(i, _SCALARS[p.type]) for i, p in enumerate(parameters) if not p.is_pointer]
        self._pointers: list[tuple[int, str, int, list[int], int]] = []
        for i, p in enumerate(parameters):
            if p.is_pointer:
                product, _, more = p.size.partition("+")
                factors = [f.strip() for f in (product or "0").split("*")]
                known = math.prod(int(f) for f in factors if f.isdigit())
                scalars = [index[f] for f in factors if not f.isdigit()]
                self._pointers.append((i, p.dtype(dtype), known, scalars, int(more or 0)))

    def __call__(self, arguments: Sequence[Any]) -> None:
        """Raises InvalidArgumentError for an argument of another type, or an array that is apart or too small."""
        if len(arguments) != len(self._parameters):
            self._refuse(f"{len(arguments)} arguments", f"{len(self._parameters)}")
        for i, kind in self._scalars:
            if type(arguments[i]) is not kind:
                self._refuse(f"{arguments[i]!r} for {self._parameters[i].name}", f"a value of {kind.__name__}")
        for i, name, size, factors, more in self._pointers:
            array = arguments[i]
            if array is None:
                continue
            for k in factors:
                size *= int(arguments[k])
            dtype = array.dtype
            if dtype.name != name and not (name == "uint8" and dtype.name == "bool"):
                self._refuse(f"an array of {dtype} for {self._parameters[i].name}", name)
            if array.size < size + more:
                self._refuse(f"{array.size} elements for {self._parameters[i].name}", f"{size + more}")
            if not array.flags.c_contiguous:
                self._refuse(f"an array of shape {array.shape} with gaps for {self._parameters[i].name}", "none")

    def _refuse(self, got: str, expected: str) -> None:
        raise InvalidArgumentError(f"CUDA kernel {self._kernel}: got {got}; expected {expected}")
