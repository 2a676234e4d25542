"""What a model declares of its inputs and outputs, as requests are held to it."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

from oprack_serve.datatypes import DATATYPES

LOD_SUFFIX = ".lod."


@dataclass(frozen=True)
class TensorSpec:
    """An input or output: its dtype ("" where the program does not say), dims (-1: any), and levels of LoD."""

    name: str
    dtype: str
    shape: tuple[int, ...] | None
    lod_level: int = 0

    @property
    def datatype(self) -> str:
        """The protocol's name of the dtype."""
        return DATATYPES.get(self.dtype, "")

    def described(self) -> list[dict[str, Any]]:
        """Rows of the model's metadata: the tensor, and a tensor of offsets for each level of its LoD."""
        rows: list[dict[str, Any]] = [{"name": self.name, "datatype": self.datatype, "shape": list(self.shape or [-1])}]
        rows += [
            {"name": f"{self.name}{LOD_SUFFIX}{level}", "datatype": "INT64", "shape": [-1]}
            for level in range(self.lod_level)
        ]
        return rows

    def fits(self, shape: tuple[int, ...]) -> bool:
        """Whether a shape agrees with the declared one; nothing is declared where `shape` is None."""
        declared = self.shape
        if declared is None:
            return True
        return len(shape) == len(declared) and all(d in (-1, s) for d, s in zip(declared, shape, strict=True))


@dataclass(frozen=True)
class Signature:
    """Inputs and outputs of a model, in its own order."""

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]

    @cached_property
    def by_name(self) -> dict[str, TensorSpec]:
        """Inputs by their names."""
        return {spec.name: spec for spec in self.inputs}

    @cached_property
    def output_names(self) -> tuple[str, ...]:
        """Of all outputs."""
        return tuple(spec.name for spec in self.outputs)

    def with_outputs(self, found: dict[str, tuple[str, int]]) -> Signature:
        """The signature with the dtypes and LoD levels that outputs had in a run; programs may declare others."""
        outputs = tuple(
            replace(spec, dtype=found[spec.name][0], lod_level=found[spec.name][1]) if spec.name in found else spec
            for spec in self.outputs
        )
        return Signature(self.inputs, outputs)

    def to_json(self) -> dict[str, Any]:
        """For another process."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Signature:
        """What `to_json` wrote."""

        def spec(row: dict[str, Any]) -> TensorSpec:
            shape = None if row["shape"] is None else tuple(row["shape"])
            return TensorSpec(row["name"], row["dtype"], shape, row["lod_level"])

        return cls(tuple(map(spec, data["inputs"])), tuple(map(spec, data["outputs"])))


@dataclass(slots=True)
class Tensor:
    """A value on its way: a NumPy array and the offsets of its sequences, [] for none."""

    array: Any
    lod: list[list[int]]


def lod_of(name: str, tensors: Container[str]) -> tuple[str, int] | None:
    """(tensor, level) of a tensor of offsets, `<tensor>.lod.<level>`; None when the name is not made so."""
    base, found, level = name.rpartition(LOD_SUFFIX)
    if found and base in tensors and level.isascii() and level.isdigit() and len(level) == 1:
        return base, int(level)
    return None
