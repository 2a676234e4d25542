"""Chains: primitives in a row, built once for some shapes and run with new addresses each time.

A `PrimitiveChain` says what is computed; a `BoundChain` runs it, with the operands that stay already set. Every Python
thread has its own chains, stream and scratch memory (`thread`), so chains are never shared; oneDNN caches compiled
primitives for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from oprack.tensor import numpy_dtype

from oprack_onednn.c.runner import RUNNER, NativeChain, NativeStretch
from oprack_onednn.chain.arguments import Arguments
from oprack_onednn.chain.descs import one_number, primitive_desc, reorder_desc
from oprack_onednn.chain.native_steps import CopyGrid, NativeStep, Spread
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.objects import Attributes, Memory, MemoryDesc, Primitive, PrimitiveDesc
from oprack_onednn.dnnl.operands import FLOAT, INT8, External, Operand, OperandError, addresses
from oprack_onednn.threads.process import EXIT

_ALIGN = 64
# A rough model of one core: seconds for a multiply-add, and for a byte that is read or written in the caches.
_PER_OPERATION, _PER_BYTE = 1e-11, 3e-11
# Names of implementations with barriers inside begin so. A thread that comes late holds up all others there, so sharing
# their work is judged as if it took so many seconds less.
_WITH_BARRIERS, _BARRIER_SECONDS = "bnorm_", 5e-5


class OneDNNError(RuntimeError):
    """A primitive failed while it ran."""


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
        seconds: How long one core takes about for all of them.
    """

    def __init__(self) -> None:
        self.threads = THREAD.threads
        self.external: list[External] = []
        self.steps: list[tuple[PrimitiveDesc | NativeStep | Spread, Mapping[int, Memory]]] = []
        self.places: dict[Memory, tuple[int | None, int]] = {}
        self.size = self.scratchpad = 0
        self.seconds = 0.0
        self._ends: dict[Memory, int] = {}
        self._bound: BoundChain | None = None
        self._primitives: list[Primitive | NativeStep | Spread] = []

    def input(self, desc: MemoryDesc) -> External:
        """Add memory to be read, which is that of the next operand of `run`."""
        return self._operand(External(desc, False, array_dtype(desc)))

    def output(self, desc: MemoryDesc, dtype: Any = None) -> External:
        """Add memory to be written, which is that of the next operand of `run`. dtype: default: that of the layout."""
        return self._operand(External(desc, True, array_dtype(desc) if dtype is None else np.dtype(dtype)))

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
        """A part of external or scratch memory, from byte `offset` on, read or written as another shape."""
        operand, start = self.places[memory]
        end = self._ends[memory]
        _expect_within(offset, desc, end - start)
        view = Memory(desc)
        self.places[view] = operand, start + offset
        self._ends[view] = end
        return view

    def reinterpret(self, memory: Memory, desc: MemoryDesc) -> Memory:
        """Memory read or written as another shape or layout, without a copy; itself where it has that one."""
        return memory if memory.desc is desc else self.alias(memory, desc)

    def add(self, desc: PrimitiveDesc | NativeStep, arguments: Mapping[int, Memory]) -> None:
        """Append a primitive, which was created with scratch memory from the caller.

        Args:
            desc: The primitive, or a native step that takes the place of one.
            arguments: Memory by oneDNN's number of the argument.

        Raises:
            OperandError: The memory of an argument is smaller than the primitive takes it to be.
        """
        checked = tuple(arguments), tuple([memory.desc for memory in arguments.values()])
        if desc.checked_arguments != checked:
            _expect_enough(desc, arguments)
            desc.checked_arguments = checked
            products = desc.products if isinstance(desc, NativeStep) else 0
            desc.seconds = _seconds(arguments, products) - _BARRIER_SECONDS * desc.impl.startswith(_WITH_BARRIERS)
        self._count(desc.seconds)
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
        self._count(2 * grid.writes() * _PER_BYTE)

    def _count(self, seconds: float) -> None:
        self.seconds += seconds
        THREAD.work += seconds

    def compile_ahead(self, cores: int = 0) -> None:
        """Have the primitives compiled before `primitives` asks for them.

        Args:
            cores: How many cores may take part, that of the calling thread counted; 0 means as many as primitives may
                use.
        """
        for desc in self._descs():
            desc.compile_ahead(self.threads, cores or THREAD.max_threads)

    @property
    def is_compiled(self) -> bool:
        """Whether `primitives` was called before."""
        return bool(self._primitives)

    @property
    def is_ready(self) -> bool:
        """Whether all primitives are compiled."""
        return bool(self._primitives) or all(desc.is_ready for desc in self._descs())

    def _descs(self) -> Iterator[PrimitiveDesc | NativeStep]:
        return (desc for desc, _ in self.steps if not isinstance(desc, Spread))

    def primitives(self) -> list[Primitive | NativeStep | Spread]:
        """The steps, compiled on first use: of several chains that are built for an op, some never run."""
        if not self._primitives:
            THREAD.use(self.threads)
            steps = (desc for desc, _ in self.steps)
            self._primitives = [desc if isinstance(desc, Spread) else desc.primitive() for desc in steps]
        return self._primitives

    def resized(self, step: NativeStep, moved: int) -> PrimitiveChain | None:
        """A chain for other sizes of operands that vary; None where this one is more than a step that reads whole ones.

        Args:
            step: The step for these sizes.
            moved: Bytes of operands that it reads and writes.
        """
        (desc, memory), *more = self.steps
        apart = self.size or any(offset for _, offset in self.places.values())
        if more or not isinstance(desc, NativeStep) or apart:
            return None
        chain = PrimitiveChain()
        chain.steps, chain.scratchpad = [(step, memory)], step.room
        chain.seconds = step.seconds = 2.0 * step.products * _PER_OPERATION + (moved + step.room) * _PER_BYTE
        chain.threads = THREAD.threads_for(chain.seconds)
        return chain

    def in_layout(self, source: Memory, layout: MemoryDesc) -> Memory:
        """Memory in a layout: itself where it has that one, else a copy, which is appended to the chain."""
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
        """Append a quantization of float32 memory to int8, as multiples of `step`, unless it is int8 already.

        Args:
            source: float32 numbers, or int8, which is copied where its layout is another one.
            layout: The layout of the result.
            step: The scale: the number that the integer 1 stands for.

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
        """The BoundChain without fixed operands, which all users of this chain share."""
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
        bound.run_addresses(*addresses(self.external, operands))


def array_dtype(desc: MemoryDesc) -> np.dtype[Any]:
    """The dtype of arrays that hold what a descriptor describes."""
    size = desc.itemsize
    return FLOAT if size == 4 else INT8 if size == 1 else numpy_dtype("bfloat16")


def _expect_within(offset: int, desc: MemoryDesc, size: int) -> None:
    if not 0 <= offset <= size - desc.reach:
        raise OperandError(f"memory of {size} bytes can't be seen as {desc.reach} bytes from byte {offset} on")


def _expect_enough(desc: PrimitiveDesc | NativeStep, arguments: Mapping[int, Memory]) -> None:
    for argument, memory in arguments.items():
        if desc.argument_bytes(argument) > memory.desc.nbytes:
            raise OperandError(
                f"argument {argument} of {desc.impl} has {memory.desc.nbytes} bytes; the primitive expects "
                f"{desc.argument_bytes(argument)}"
            )


def _seconds(arguments: Mapping[int, Memory], products: int = 0) -> float:
    """About how long one core takes for a primitive with these arguments, or a native step of so many products."""
    moved = sum(memory.desc.nbytes for memory in arguments.values())
    result, weights = arguments.get(_c.DST), arguments.get(_c.WEIGHTS)
    operations = 2.0 * products
    if not products and result is not None and weights is not None and result.desc.shape:
        # each number of the result is a sum over the weights of its channel: dim 1 of images, the last one of rows
        shape = result.desc.shape
        channels = shape[1] if len(shape) > 3 else shape[-1]
        # a product takes as long as its factors are wide
        numbers = result.desc.nbytes / result.desc.itemsize
        operations = 2.0 * numbers * weights.desc.nbytes / 4 / max(1, channels)
    return operations * _PER_OPERATION + moved * _PER_BYTE


class BoundChain:
    """Runs a chain in the thread that built it, perhaps with some operands fixed, such as an op's parameters.

    It has memory objects of its own, since other users of the chain set theirs to other addresses.

    Args:
        chain: The chain.
        fixed: For each external memory the operand that is fixed, or None where `run` takes it; empty fixes nothing.

    Raises:
        OperandError: A fixed operand does not fit.
    """

    def __init__(self, chain: PrimitiveChain, fixed: Sequence[Operand | None] = ()) -> None:
        self._set_handle, self._execute, self._stream = THREAD.set_handle, THREAD.execute, THREAD.stream.pointer
        self._state = THREAD.state
        self._threads = chain.threads
        operands = list(fixed) or [None] * len(chain.external)
        addresses = [None if x is None else m.address(x) for m, x in zip(chain.external, operands, strict=True)]
        free = [i for i, address in enumerate(addresses) if address is None]
        self._free = [chain.external[i] for i in free]
        self._places: list[tuple[int, int, int]] = []  # (free operand, offset in bytes, memory object)
        self._scratch: list[tuple[int, int]] = []  # (memory object, offset in the arena)
        self._operands = {i: k for k, i in enumerate(free)}
        arguments = Arguments(chain.steps, chain.places, chain.size, addresses, self._operands)
        for operand, offset, pointer in arguments.places:
            if operand is None:
                self._scratch.append((pointer, offset))
            else:
                self._places.append((self._operands[operand], offset, pointer))
        self._size, self._arena = chain.size + chain.scratchpad, 0
        # oneDNN holds plain pointers to all of these
        self._referenced = (chain, arguments, operands)
        self._own_stretch: NativeStretch | None = None
        self._ran = False

    def resized(self, chain: PrimitiveChain) -> BoundChain:
        """The same operands for `resized` of the chain, which are not compared with anything any more."""
        bound = BoundChain.__new__(BoundChain)
        bound._set_handle, bound._execute, bound._stream = self._set_handle, self._execute, self._stream
        bound._free, bound._places, bound._scratch, bound._operands = self._free, [], [], self._operands
        bound._state, bound._threads, bound._size, bound._arena = self._state, chain.threads, chain.scratchpad, 0
        bound._own_stretch, bound._ran = None, False
        bound._referenced = chain, *self._referenced[1:]
        return bound

    @property
    def chain(self) -> PrimitiveChain:
        """The chain that is bound."""
        return self._referenced[0]

    @property
    def size(self) -> int:
        """Bytes of scratch memory."""
        return self._size

    @cached_property
    def _calls(self) -> list[tuple[int | None, int, int, int]]:
        """The steps as NativeChain takes them; primitives are compiled on first use."""
        chain, arguments, _ = self._referenced
        return [
            (None, step.pointer, 0, self._operands[step.operand])
            if isinstance(step, Spread)
            else (step.pointer, address, count, 0)
            for step, (count, address) in zip(chain.primitives(), arguments.exec_args, strict=True)
        ]

    def compile_ahead(self, cores: int = 0) -> None:
        """Have the primitives compiled before the first run, on at most `cores` cores; 0 means all there are."""
        if "_calls" not in self.__dict__:
            self._referenced[0].compile_ahead(cores)

    @cached_property
    def native(self) -> NativeChain | None:
        """The chain as the compiled runner takes it; None without the runner."""
        if RUNNER.run is None:
            return None
        places = [(pointer, i, offset) for i, offset, pointer in self._places]
        return NativeChain(len(self._free), self._threads, places, self._scratch, self._calls)

    def _make_own_stretch(self) -> NativeStretch | None:
        """The chain as a stretch of the compiled runner; None without the runner."""
        if self.native is not None:
            count = len(self._free)
            self._own_stretch = NativeStretch(self._state, [self.native], range(count), count)
        return self._own_stretch

    def run(self, *operands: Operand) -> None:
        """Run with operands for the external memory that is not fixed.

        Raises:
            OneDNNError: A primitive failed.
            OperandError: An operand does not fit; nothing was read or written.
        """
        self.run_addresses(*addresses(self._free, operands))

    def addresses(self, operands: Sequence[Operand]) -> list[int]:
        """Addresses of operands for memory that is not fixed. Raises OperandError when one does not fit."""
        return addresses(self._free, operands)

    def runner_for(self, *operands: Operand) -> Callable[..., None]:
        """Check operands once, and return a function that runs the chain for addresses without checks.

        Returns:
            The function. Its callers make sure that the arrays have the dtypes, shapes and strides of these operands,
            and that results are writable.
        """
        addresses(self._free, operands)
        return self.run_addresses

    def run_addresses(self, *addresses: int) -> None:
        """Run with the addresses of the external memory that is not fixed, without checks."""
        stretch, run = self._own_stretch, RUNNER.run
        # The runner's structs take longer to make than they save in one run, and many shapes are met only once; but
        # native steps are its own.
        if stretch is None and (self._ran or any(isinstance(desc, NativeStep) for desc, _ in self.chain.steps)):
            stretch = self._make_own_stretch()
        if stretch is None or run is None:
            self._ran = True
            self._run_step_by_step(addresses)
            return
        stretch.values[:] = addresses
        if self._size > self._state.capacity:
            THREAD.arena(self._size)
        expect_success(run(stretch.pointer))

    def _run_step_by_step(self, addresses: Sequence[int]) -> None:
        """Run in Python, as the compiled runner does; for a first run, and where there is no runner."""
        if len(addresses) != len(self._free):
            raise ValueError(f"{len(addresses)} addresses; expected {len(self._free)}")
        set_handle = self._set_handle
        for i, offset, pointer in self._places:
            set_handle(pointer, addresses[i] + offset)
        if self._size:
            arena = THREAD.arena(self._size)
            if arena != self._arena:  # it has grown since, or this chain has not run yet
                for pointer, offset in self._scratch:
                    set_handle(pointer, arena + offset)
                self._arena = arena
        if self._state.threads != self._threads:
            THREAD.use(self._threads)
        with EXIT:
            for i, (primitive, arguments, count, operand) in enumerate(self._calls):
                if primitive is None:
                    spread = self._referenced[0].steps[i][0]  # it has no primitive
                    spread.run(self._arena, addresses[operand], self._threads)  # type: ignore[union-attr]
                else:
                    expect_success(self._execute(primitive, self._stream, count, arguments))


def expect_success(status: int) -> None:
    if status:
        raise OneDNNError(f"oneDNN: a primitive failed: {_c.STATUS[status]}")


def run_all(calls: Sequence[tuple[BoundChain, Sequence[Operand]]]) -> None:
    """Run chains one after the other by one native call, each with its operands, in the thread that built them.

    Raises:
        OneDNNError: A primitive failed.
        OperandError: An operand does not fit; nothing was read or written.
    """
    checked = [chain.addresses(operands) for chain, operands in calls]  # all of them before the first one runs
    natives = [chain.native for chain, _ in calls if chain.native is not None]
    if RUNNER.run is None:
        for (chain, _), of_chain in zip(calls, checked, strict=True):
            chain.run_addresses(*of_chain)
    elif natives:
        # no two of them share an operand
        count = sum([native.operands for native in natives])
        stretch = NativeStretch(THREAD.state, natives, range(count), count)
        stretch.values[:] = [a for of_chain in checked for a in of_chain]
        THREAD.arena(max([chain.size for chain, _ in calls]))
        expect_success(RUNNER.run(stretch.pointer))
