"""Chains: primitives in a row, built once for some shapes and run with new addresses each time.

Every Python thread has its own chains, stream and scratch memory (`thread`), so chains are never shared; oneDNN caches
compiled primitives for all of them. What runs a chain is a `BoundChain`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from oprack.tensor import numpy_dtype

from oprack_onednn.chain.bound_chain import BoundChain, OneDNNError, SideBySide, run_all
from oprack_onednn.chain.descs import primitive_desc
from oprack_onednn.chain.spread import CopyGrid, Spread
from oprack_onednn.chain.thread import THREAD, PerThread
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.native import Attributes, Memory, MemoryDesc, Primitive, PrimitiveDesc
from oprack_onednn.dnnl.operands import FLOAT, INT8, External, Operand, OperandError, Region, addresses

__all__ = [
    "THREAD",
    "BoundChain",
    "OneDNNError",
    "PerThread",
    "PrimitiveChain",
    "SideBySide",
    "one_number",
    "pack",
    "reorder_desc",
    "run_all",
]

_ALIGN = 64
# Seconds per product and sum, and per byte read or written in the caches, that one core takes about.
_PER_OPERATION, _PER_BYTE = 1e-11, 3e-11
# Implementations whose threads wait for each other within, where nobody can do the share of one that is not there; and
# for how many seconds of work less they count.
_WAITING, _WAIT = "bnorm_", 5e-5


class PrimitiveChain:
    """Primitives in a row, built for certain shapes.

    All memory that is not external is scratch, which the chains of a thread share: nothing in it outlives a run.

    Attributes:
        threads: Number of threads that share the work of its primitives.
        external: Memory of the operands of `run`, in their order.
        steps: Each primitive with its arguments; a Spread has none.
        places: Where memory lies: (position in `external`, offset in bytes), or (None, offset in scratch memory).
        size: Bytes of scratch memory, without what primitives want for themselves.
        scratchpad: Bytes that the primitive wants for itself that wants most of all; they take turns there.
    """

    def __init__(self) -> None:
        self.threads = THREAD.current
        self.external: list[External] = []
        self.steps: list[tuple[PrimitiveDesc | Spread, dict[int, Memory]]] = []
        self.places: dict[Memory, tuple[int | None, int]] = {}
        self.size = self.scratchpad = 0
        self._ends: dict[Memory, int] = {}
        self._bound: BoundChain | None = None
        self._primitives: list[Primitive | Spread] = []

    def input(self, desc: MemoryDesc) -> External:
        """Add memory to be read, which is that of the next operand of `run`."""
        return self._operand(External(desc, False, _dtype(desc)))

    def output(self, desc: MemoryDesc, dtype: Any = None) -> External:
        """Add memory to be written, which is that of the next operand of `run`. dtype: default: that of the layout."""
        return self._operand(External(desc, True, _dtype(desc) if dtype is None else np.dtype(dtype)))

    def _operand(self, memory: External) -> External:
        self.places[memory] = len(self.external), 0
        self._ends[memory] = memory.reach
        self.external.append(memory)
        return memory

    def temporary(self, desc: MemoryDesc) -> Memory:
        """Add scratch memory."""
        memory = Memory(desc)
        self.places[memory] = None, self.size
        self._ends[memory] = self.size + desc.nbytes
        # Primitives read and write whole cache lines fastest, and two memories never share one.
        self.size += -(-desc.nbytes // _ALIGN) * _ALIGN
        return memory

    def alias(self, memory: Memory, desc: MemoryDesc, offset: int = 0) -> Memory:
        """External or scratch memory seen as another shape, from byte `offset` on."""
        operand, start = self.places[memory]
        end = self._ends[memory]
        _expect_within(offset, desc, end - start)
        twin = Memory(desc)
        self.places[twin] = operand, start + offset
        self._ends[twin] = end
        return twin

    def seen(self, memory: Memory, desc: MemoryDesc) -> Memory:
        """Memory seen as another shape; itself where it is the same one."""
        return memory if memory.desc is desc else self.alias(memory, desc)

    def add(self, desc: PrimitiveDesc, arguments: dict[int, Memory]) -> None:
        """Append a primitive, which was created with scratch memory from the caller.

        Args:
            desc: The primitive.
            arguments: Memory by oneDNN's number of the argument.

        Raises:
            OperandError: The memory of an argument is smaller than the primitive takes it to be.
        """
        given = tuple(arguments), tuple([memory.desc for memory in arguments.values()])
        if desc.given != given:
            _expect_enough(desc, arguments)
            desc.given, desc.seconds = given, _seconds(arguments) - _WAIT * desc.impl.startswith(_WAITING)
        THREAD.work += desc.seconds
        self.scratchpad = max(self.scratchpad, desc.desc(_c.QUERY_SCRATCHPAD_MD).nbytes)
        self.steps.append((desc, arguments))

    def spread(self, source: Memory, target: Memory, grid: CopyGrid) -> None:
        """Append a copy from scratch memory into an operand that varies, as `grid` says.

        Raises:
            OperandError: It would read or write beyond the memory.
        """
        (_, start), (operand, to) = self.places[source], self.places[target]
        assert operand is not None
        room = self._ends[target] - to
        self.steps.append((Spread(grid, (start, self._ends[source] - start), (operand, to, room)), {}))
        THREAD.work += 2 * grid.writes() * _PER_BYTE

    def compile_ahead(self, cores: int = 0) -> None:
        """Have the primitives compiled before `primitives` asks for them.

        Args:
            cores: How many cores may take part, that of the calling thread counted; 0 means as many as primitives may
                use.
        """
        for desc in self._descs():
            desc.compile_ahead(self.threads, cores or THREAD.cores)

    @property
    def is_compiled(self) -> bool:
        """Whether `primitives` was asked before."""
        return bool(self._primitives)

    def _descs(self) -> Iterator[PrimitiveDesc]:
        return (desc for desc, _ in self.steps if not isinstance(desc, Spread))

    def primitives(self) -> list[Primitive | Spread]:
        """The steps, compiled; on first use, since only one of two chains may run."""
        if not self._primitives:
            THREAD.use(self.threads)
            steps = (desc for desc, _ in self.steps)
            self._primitives = [desc if isinstance(desc, Spread) else desc.primitive() for desc in steps]
        return self._primitives

    def laid_out(self, source: Memory, layout: MemoryDesc) -> Memory:
        """Append a copy of memory in a layout, unless it lies there so; returns the memory."""
        return source if source.desc == layout else self.reorder(source, layout)

    def reorder(self, source: Memory, target: MemoryDesc | Memory, *, accumulate: bool = False) -> Memory:
        """Append a copy into another layout.

        Args:
            source: What is copied.
            target: Memory, or a descriptor, for which scratch memory is added.
            accumulate: Whether to add to what the target holds.

        Returns:
            The memory of the copy.
        """
        memory = target if isinstance(target, Memory) else self.temporary(target)
        self.add(reorder_desc(source.desc, memory.desc, accumulate), {_c.SRC: source, _c.DST: memory})
        return memory

    def int8(self, source: Memory, layout: MemoryDesc, step: float) -> Memory:
        """Append a copy of float32 memory as multiples of `step`, from -128 to 127, unless there are such.

        Args:
            source: float32 numbers, or integers, which are copied if they lie there in another way.
            layout: The layout of the copy.
            step: The number that the integer 1 stands for.

        Returns:
            Memory in that layout.
        """
        if source.desc.itemsize == 1:
            return source if source.desc == layout else self.reorder(source, layout)
        target, attributes = self.temporary(layout), Attributes((), [(_c.DST, 0)])
        engine = LIBRARY.engine
        desc = primitive_desc("reorder", source.desc, engine, target.desc, engine, attributes, any_speed=True)
        self.add(desc, {_c.SRC: source, _c.DST: target, _c.SCALES | _c.DST: one_number(step)})
        return target

    def bound(self) -> BoundChain:
        """What runs it with operands for all of its external memory."""
        if self._bound is None:
            self._bound = BoundChain(self)
        return self._bound

    def run(self, *operands: Operand) -> None:
        """Run in the thread that built the chain.

        Args:
            operands: Operands for the external memory, in its order.

        Raises:
            OneDNNError: A primitive failed.
            OperandError: An operand does not fit; nothing was read or written.
        """
        bound = self._bound or self.bound()
        bound._run(*addresses(self.external, operands))


def one_number(value: float) -> Memory:
    """Memory with one number in it."""
    return Memory(MemoryDesc.strided((1,)), np.array([value], FLOAT))


def _dtype(desc: MemoryDesc) -> np.dtype[Any]:
    """Of arrays that hold what a descriptor describes."""
    size = desc.itemsize
    return FLOAT if size == 4 else INT8 if size == 1 else numpy_dtype("bfloat16")


def _expect_within(offset: int, desc: MemoryDesc, size: int) -> None:
    if not 0 <= offset <= size - desc.reach:
        raise OperandError(f"memory of {size} bytes can't be seen as {desc.reach} bytes from byte {offset} on")


def _expect_enough(desc: PrimitiveDesc, arguments: dict[int, Memory]) -> None:
    for argument, memory in arguments.items():
        if desc.argument_bytes(argument) > memory.desc.nbytes:
            raise OperandError(
                f"argument {argument} of {desc.impl} has {memory.desc.nbytes} bytes; the primitive expects "
                f"{desc.argument_bytes(argument)}"
            )


def _seconds(arguments: dict[int, Memory]) -> float:
    """About how long one core takes for a primitive with these arguments."""
    moved = sum(memory.desc.nbytes for memory in arguments.values())
    result, weights = arguments.get(_c.DST), arguments.get(_c.WEIGHTS)
    operations = 0.0
    if result is not None and weights is not None and result.desc.shape:
        # each number of the result is a sum over the weights of its channel: dim 1 of images, the last one of rows
        shape = result.desc.shape
        channels = shape[1] if len(shape) > 3 else shape[-1]
        # a product takes as long as its factors are wide
        numbers = result.desc.nbytes / result.desc.itemsize
        operations = 2.0 * numbers * weights.desc.nbytes / 4 / max(1, channels)
    return operations * _PER_OPERATION + moved * _PER_BYTE


def reorder_desc(source: MemoryDesc, target: MemoryDesc, accumulate: bool = False) -> PrimitiveDesc:
    """A copy between layouts; slow implementations are taken, too: packing weights has no other way."""
    engine, attributes = LIBRARY.engine, Attributes([("sum", 1.0)] if accumulate else ())
    return primitive_desc("reorder", source, engine, target, engine, attributes, any_speed=True)


def pack(source: MemoryDesc, target: MemoryDesc, array: np.ndarray, offset: int | None = None) -> np.ndarray:
    """What an array holds in another layout, as numbers of that layout's dtype that start at a multiple of 64.

    offset: of the element from which on a part of it is read; default: all of it. Raises OperandError when the array is
    not what the layout `source` says.
    """
    if offset is not None and not array.flags.c_contiguous:
        raise OperandError("a part of an array that is not row-major")
    raw = np.empty(target.nbytes + _ALIGN, np.uint8)
    start = -raw.ctypes.data % _ALIGN
    # The view keeps the raw memory alive.
    packed = raw[start : start + target.nbytes].view(_dtype(target))
    chain = PrimitiveChain()
    chain.reorder(chain.input(source), chain.output(target))
    chain.run(array if offset is None else (Region(array), array.itemsize * offset), packed)
    return packed
