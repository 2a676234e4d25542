"""The arguments of a chain's steps: oneDNN's memory objects, and where the memory of native steps lies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ctypes import addressof, c_int64, sizeof
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from oprack_onednn.c.runner import array_type
from oprack_onednn.chain.native_steps import IN_ARENA, STAYS, NativeStep, Spread
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.objects import Memory, MemoryDesc, MemoryObjects, PrimitiveDesc

Steps: TypeAlias = "Sequence[tuple[PrimitiveDesc | NativeStep | Spread, Mapping[int, Memory]]]"
Places: TypeAlias = "Mapping[Memory, tuple[int | None, int]]"


class Arguments:
    """The arguments that primitive_execute takes besides a stream, for each step of a chain.

    Args:
        steps: As PrimitiveChain has them.
        places: The same.
        scratchpad: Where scratch memory of single steps begins.
        fixed: The address of each operand that is fixed, None for one that varies.
        numbers: The number, among those that vary, of each operand that does.

    Attributes:
        exec_args: (number of arguments, address of the ExecArgs, or of a native step's sources) of each step.
        places: (operand or None for scratch memory, offset in bytes, memory object) of what needs an address.
    """

    def __init__(
        self, steps: Steps, places: Places, scratchpad: int, fixed: Sequence[int | None], numbers: Mapping[int, int]
    ) -> None:
        self._fixed, self._operands = fixed, numbers
        self._numbers: dict[Any, int] = {}
        self._descs: list[MemoryDesc] = []
        self._handles: list[int] = []
        self._arrays: list[np.ndarray] = []  # which objects have the addresses of
        varying: list[tuple[int | None, int, int]] = []
        pairs: list[int] = []
        objects: list[int] = []  # positions among these of the number of an object
        starts = []
        for desc, arguments in steps:
            starts.append(len(pairs))
            if isinstance(desc, Spread):
                continue  # it takes addresses
            if isinstance(desc, NativeStep):
                for memory in arguments.values():
                    pairs += self._source(places.get(memory), memory)
                if desc.room:
                    pairs += IN_ARENA, scratchpad
                continue
            for number, memory in arguments.items():
                objects.append(len(pairs) + 1)
                pairs += number, self._number(places.get(memory), memory, varying)
            own = desc.desc(_c.QUERY_SCRATCHPAD_MD)
            if own.nbytes:
                objects.append(len(pairs) + 1)
                pairs += _c.SCRATCHPAD, self._number((None, scratchpad), Memory(own), varying)
        self._objects = MemoryObjects(self._descs, self._handles) if self._descs else None
        pointers = self._objects.pointers if self._objects else ()
        for i in objects:
            pairs[i] = pointers[pairs[i]]
        # oneDNN holds plain pointers to the array and the objects. An ExecArg, an int and a pointer, is as long as two
        # numbers of 64 bits, and on a machine with the low bytes first it is these, as a source is.
        self._array = array_type(c_int64, len(pairs))(*pairs)
        first, step = addressof(self._array), sizeof(c_int64)
        counts = [(end - start) // 2 for start, end in pairwise([*starts, len(pairs)])]
        self.exec_args = list(zip(counts, [first + step * start for start in starts], strict=True))
        self.places = [(operand, offset, pointers[i]) for operand, offset, i in varying]

    def _source(self, place: tuple[int | None, int] | None, memory: Memory) -> tuple[int, int]:
        """Where memory of a native step lies."""
        if place is None:
            assert memory.array is not None
            self._arrays.append(memory.array)
            return STAYS, memory.array.ctypes.data
        operand, offset = place
        if operand is None:
            return IN_ARENA, offset
        start = self._fixed[operand]
        return (self._operands[operand], offset) if start is None else (STAYS, start + offset)

    def _number(
        self, place: tuple[int | None, int] | None, memory: Memory, varying: list[tuple[int | None, int, int]]
    ) -> int:
        """The number of the object for memory: one for all that lies at one place in one layout."""
        # self._descs holds the descriptors, so that their ids can't become those of others.
        key = memory if place is None else (place, id(memory.desc))
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._descs)
            self._descs.append(memory.desc)
            start = None if place is None or place[0] is None else self._fixed[place[0]]
            if memory.array is not None:
                self._arrays.append(memory.array)
                self._handles.append(memory.array.ctypes.data)
            elif place is None or start is None:
                self._handles.append(0)
                if place is not None:
                    varying.append((*place, number))
            else:
                self._handles.append(start + place[1])
        return number
