"""Steps of a chain that call the plugin's own compiled library, for what oneDNN has no primitive."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import CDLL, Structure, addressof, c_float, c_int64, c_void_p, cast
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from oprack_onednn.c.runner import RUNNER, array_type
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.objects import MemoryDesc
from oprack_onednn.dnnl.operands import OperandError


class _Native(Structure):
    """The struct of runner.c, field by field."""

    _fields_ = (("run", c_void_p), ("settings", c_void_p))


IN_ARENA, STAYS = -1, -2
"""In the place of an operand's number: memory that lies in scratch memory, or at an address that stays."""


class _Room(NamedTuple):
    nbytes: int


class NativeStep:
    """A function of the compiled library that chains take in place of a primitive and of its descriptor.

    Its arguments are memory, in the order in which the function takes it. It needs `RUNNER.library`.

    Args:
        function: Name of the exported function.
        settings: Numbers that it gets in each run, the fields of its struct.
        room: As below.

    Attributes:
        settings: The address of the settings.
        pointer: The address of its struct plus 1: an odd pointer tells the runner that this is no primitive.
        products: How many products it adds up; 0 where its memory says so, as a primitive's does.
        room: Bytes of scratch memory that it wants for itself, the last of its arguments.
    """

    checked_arguments: tuple[tuple[int, ...], tuple[MemoryDesc, ...]] = ((), ())
    seconds = 0.0
    is_ready = True

    def __init__(self, function: str, settings: Sequence[int], room: int = 0) -> None:
        self.impl, self.products, self.room = f"oprack:{function}", 0, room
        self._settings = array_type(c_int64, len(settings))(*settings)
        self.settings = addressof(self._settings)
        self._struct = _Native(_address(RUNNER.library, function), self.settings)
        self.pointer = addressof(self._struct) | 1

    def desc(self, query: int) -> Any:
        """Its scratch memory; it chooses no layouts."""
        assert query == _c.QUERY_SCRATCHPAD_MD
        return _Room(self.room)

    def argument_bytes(self, argument: int) -> int:
        """0, so that no size is checked: the maker of a step gives memory that fits its settings."""
        return 0

    def compile_ahead(self, threads: int, cores: int) -> None:
        """Do nothing: it is compiled."""

    def primitive(self) -> NativeStep:
        return self


def widest_serves() -> bool:
    """Whether steps that are compiled for AVX-512 alone can be used."""
    library = RUNNER.library
    return library is not None and bool(library.oprack_widest_serves())


@lru_cache(maxsize=64)
def _address(library: CDLL, name: str) -> int | None:
    """Where an exported function begins."""
    return cast(getattr(library, name), c_void_p).value


_FLOAT = 4


class _Spread(Structure):
    """The struct of spread.h, field by field."""

    _fields_ = (
        *((name, c_void_p) for name in ("rows", "columns")),
        *((name, c_int64) for name in ("row_count", "column_count", "images", "width")),
        *((name, c_int64) for name in ("image", "row", "row_result", "column", "column_result")),
        *((name, c_int64) for name in ("to_image", "to_row", "adds", "from_", "to")),
    )


class CopyTable:
    """Where results go along one dim.

    Args:
        entries: (position, result, target, count): `count` results from that one on of that position become as many
            rows, or columns, of the target.

    Attributes:
        array: The entries [n, 4].
        last: The largest position, result and target.
    """

    __slots__ = ("address", "array", "last")

    def __init__(self, entries: Sequence[tuple[int, int, int, int]]) -> None:
        self.array = np.array(entries, np.int32)
        if self.array.shape[1:] != (4,) or self.array.min() < 0:
            raise OperandError("a table of a copy has entries of four numbers that are not negative")
        self.array.flags.writeable = False
        self.address = self.array.ctypes.data
        behind = self.array[:, 3] - 1
        ends = self.array[:, 0], self.array[:, 1] + behind, self.array[:, 2] + behind
        self.last = tuple(int(values.max()) for values in ends)


@dataclass(frozen=True)
class CopyGrid:
    """What is copied.

    Attributes:
        rows: Where results go along the rows of the target.
        columns: The same along its columns.
        images: How many images there are.
        width: Numbers of one result, which lie side by side.
        image: Numbers from one image to the next, where is read.
        row: (numbers from one position to the next, from one result to the next), where is read.
        column: The same for columns.
        target: (numbers from one image to the next, from one row to the next), where is written; columns lie side by
            side.
        adds: Whether results are added to what is there.
    """

    rows: CopyTable
    columns: CopyTable
    images: int
    width: int
    image: int
    row: tuple[int, int]
    column: tuple[int, int]
    target: tuple[int, int]
    adds: bool

    def reads(self) -> int:
        """Bytes from the first number that is read to behind the last position and result."""
        ends = [(self.rows.last, self.row), (self.columns.last, self.column)]
        along = [last[0] * position + last[1] * result for last, (position, result) in ends]
        return _FLOAT * ((self.images - 1) * self.image + sum(along) + self.width)

    def writes(self) -> int:
        """Bytes from the first number that is written to behind the last one."""
        image, row = self.target
        along = self.rows.last[2] * row + self.columns.last[2] * self.width
        return _FLOAT * ((self.images - 1) * image + along + self.width)


class Spread:
    """A copy from scratch memory into an operand, for one chain.

    Args:
        grid: What is copied.
        source: Where the scratch memory begins in the arena, and its bytes.
        target: The number of the operand, where its part begins there in bytes, and the bytes from there on.

    Attributes:
        operand: The number of the operand.
        pointer: The struct of spread.h.

    Raises:
        OperandError: The copy would read or write beyond the memory.
    """

    def __init__(self, grid: CopyGrid, source: tuple[int, int], target: tuple[int, int, int]) -> None:
        self.operand, to, room = target
        start, size = source
        tables = grid.rows, grid.columns
        if grid.reads() > size or grid.writes() > room:
            raise OperandError(
                f"a copy reads {grid.reads()} of {size} bytes of scratch memory, and writes {grid.writes()} of {room}"
            )
        self._grid, self._start, self._to = grid, start, to
        self._struct = _Spread(
            *(t.address for t in tables), *(len(t.array) for t in tables), grid.images, grid.width,
            grid.image, *grid.row, *grid.column, *grid.target, grid.adds, start, to,
        )  # fmt: skip
        self.pointer = addressof(self._struct)

    def run(self, arena: int, operand: int, threads: int) -> None:
        """Copy. arena, operand: addresses of the scratch memory and of the operand."""
        if RUNNER.library is not None:
            RUNNER.library.oprack_spread(self.pointer, arena, operand, threads)
            return
        grid = self._grid
        source, target = _floats(arena + self._start, grid.reads()), _floats(operand + self._to, grid.writes())
        down, across = (_pairs(t.array) for t in (grid.rows, grid.columns))
        channels = np.arange(grid.width)
        for i in range(grid.images):
            read = _sum(down[0] @ grid.row, across[0] @ grid.column, channels) + i * grid.image
            write = _sum(down[1] * grid.target[1], across[1] * grid.width, channels) + i * grid.target[0]
            target[write] = source[read] + (target[write] if grid.adds else 0)


def _floats(start: int, nbytes: int) -> np.ndarray:
    """Memory as numbers."""
    return np.frombuffer(memoryview((c_float * (nbytes // _FLOAT)).from_address(start)), np.float32)


def _pairs(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The entries of a table with counts written out: (position, result) [n, 2], and the target [n]."""
    triples = np.array([(p, r + i, t + i) for p, r, t, count in table.tolist() for i in range(count)])
    return triples[:, :2], triples[:, 2]


def _sum(*axes: np.ndarray) -> np.ndarray:
    """The sums of one number of each axis."""
    a, b, c = axes
    sums: np.ndarray = a[:, None, None] + b[:, None] + c
    return sums
