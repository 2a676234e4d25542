"""Example: one generated program with its parameters and what it is fed in each of several runs; files of examples."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.program import Program
from oprack.tensor import (
    LoDTensor,
    LoDTensorArray,
    SelectedRows,
    SparseCooTensor,
    SparseCsrTensor,
    SparseTensor,
    numpy_dtype,
)

_FORMAT = 1


@dataclass
class Example:
    """What is run on every path.

    program: without feed and fetch ops. params: values that the scope holds before the first run. runs: what is fed,
    run by run, into one and the same executor or predictor. fetch: the variables that are compared. layouts: fed
    variable -> how its array lies in memory (see `laid_out`). wrt: input -> its gradient, which is fetched. targets:
    output -> the fed gradient that flows into it. forward_ops: how many ops of block 0 come before gradient ones.
    label: where the program comes from, for people. settled: its runs leave the parameters as they are; told by the
    reference.
    """

    program: Program
    params: dict[str, Any]
    runs: list[dict[str, Any]]
    fetch: list[str]
    layouts: dict[str, str] = field(default_factory=dict)
    wrt: dict[str, str] = field(default_factory=dict)
    targets: dict[str, str] = field(default_factory=dict)
    forward_ops: int = 0
    label: str = ""
    settled: bool = True

    @property
    def op_types(self) -> tuple[str, ...]:
        """Types of the ops of all blocks, each once, sorted."""
        return tuple(sorted(self.program.op_types()))

    @property
    def has_blocks(self) -> bool:
        return len(self.program.blocks) > 1

    def feed(self, run: int) -> dict[str, Any]:
        """What run number `run` is fed, laid out in memory as the example says."""
        return {n: laid_out(v, self.layouts.get(n, "")) for n, v in self.runs[run].items()}

    # Files ------------------------------------------------------------------------------------------------------------
    def to_bytes(self) -> bytes:
        """The bytes of an .npz file without pickled objects."""
        arrays: dict[str, np.ndarray] = {"program": np.frombuffer(self.program.serialize(), np.uint8)}
        header = {
            "format": _FORMAT,
            "label": self.label,
            "fetch": self.fetch,
            "layouts": self.layouts,
            "wrt": self.wrt,
            "targets": self.targets,
            "forward_ops": self.forward_ops,
            "params": {n: _described(v, arrays) for n, v in self.params.items()},
            "runs": [{n: _described(v, arrays) for n, v in run.items()} for run in self.runs],
        }
        arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
        file = io.BytesIO()
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
        return file.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> Example:
        """Raises InvalidArgumentError for bytes of another format."""
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            arrays = dict(archive.items())
        header = json.loads(arrays["header"].tobytes())
        if header["format"] != _FORMAT:
            raise InvalidArgumentError(f"example: format {header['format']!r}; expected {_FORMAT}")
        return cls(
            Program.parse(arrays["program"].tobytes()),
            {n: _value(d, arrays) for n, d in header["params"].items()},
            [{n: _value(d, arrays) for n, d in run.items()} for run in header["runs"]],
            header["fetch"],
            header["layouts"],
            header["wrt"],
            header["targets"],
            header["forward_ops"],
            header["label"],
        )


def save(example: Example, path: Path) -> None:
    """Write an example to a file, to be replayed by `load_all`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(example.to_bytes())


def load_all(folder: Path) -> Iterator[tuple[str, Example]]:
    """(name, example) of every .npz file in a folder, in order."""
    for file in sorted(folder.glob("*.npz")):
        yield file.stem, Example.from_bytes(file.read_bytes())


def laid_out(value: Any, layout: str) -> Any:
    """The same numbers as a plain array or LoDTensor whose memory lies differently.

    layout: "" as it is; "fortran" order; "strided" with gaps; "reversed" with negative strides; "offset" by one byte
    from every alignment; "broadcast" with stride 0 where all values along the first dim are one; "swapped" byte order.
    """
    if not isinstance(value, LoDTensor):
        return value
    array = _LAYOUTS[layout](value.array) if layout else value.array
    return LoDTensor(array, value.lod, check=False) if value.lod else array


def _strided(a: np.ndarray) -> np.ndarray:
    wide = np.empty((*a.shape[:-1], 2 * a.shape[-1]) if a.ndim else (), a.dtype)
    view = wide[..., ::2] if a.ndim else wide
    view[...] = a
    return view


def _reversed(a: np.ndarray) -> np.ndarray:
    return np.flip(np.flip(a).copy()) if a.ndim else a


def _offset(a: np.ndarray) -> np.ndarray:
    buffer = np.empty(a.nbytes + 1, np.uint8)
    view: np.ndarray = np.ndarray(a.shape, a.dtype, buffer.data, offset=1) if a.size else a
    if a.size:
        view[...] = a
    return view


def _broadcast(a: np.ndarray) -> np.ndarray:
    return np.broadcast_to(a[:1], a.shape) if a.ndim and a.size and (a == a[:1]).all() else a


def _swapped(a: np.ndarray) -> np.ndarray:
    return a.astype(a.dtype.newbyteorder()) if a.dtype.kind in "iuf" and a.dtype.name != "bfloat16" else a


_LAYOUTS = {
    "fortran": lambda a: np.asfortranarray(a) if a.ndim else a,
    "strided": _strided,
    "reversed": _reversed,
    "offset": _offset,
    "broadcast": _broadcast,
    "swapped": _swapped,
}
LAYOUTS = tuple(_LAYOUTS)


def _described(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """A value as JSON, with its arrays added to `arrays`."""
    if isinstance(value, LoDTensorArray):
        return {"array": [None if t is None else _described(t, arrays) for t in value]}
    if isinstance(value, SelectedRows):
        return {"rows": _kept(np.asarray(value.rows), arrays), "height": value.height, **_typed(value.value, arrays)}
    if isinstance(value, SparseTensor):
        pattern = [_kept(np.asarray(a), arrays) for a in value.pattern]
        kind = type(value).__name__
        return {"sparse": kind, "pattern": pattern, "shape": list(value.shape), **_typed(value.values, arrays)}
    return {"lod": value.lod, **_typed(value.array, arrays)}


def _typed(array: np.ndarray, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    if array.dtype.name == "bfloat16":
        return {"data": _kept(array.view(np.uint16), arrays), "bfloat16": True}
    return {"data": _kept(array, arrays)}


def _kept(array: np.ndarray, arrays: dict[str, np.ndarray]) -> str:
    name = f"a{len(arrays)}"
    arrays[name] = array
    return name


def _value(described: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Any:
    if "array" in described:
        items: list[Any] = [None if d is None else _value(d, arrays) for d in described["array"]]
        return LoDTensorArray(items)
    array = arrays[described["data"]]
    if described.get("bfloat16"):
        array = array.view(numpy_dtype("bfloat16"))
    if "sparse" in described:
        kinds: dict[str, Any] = {kind.__name__: kind for kind in (SparseCooTensor, SparseCsrTensor)}
        return kinds[described["sparse"]](*(arrays[k] for k in described["pattern"]), array, described["shape"])
    if "rows" in described:
        return SelectedRows(arrays[described["rows"]], array, described["height"])
    return LoDTensor(array, described["lod"], check=False)
