"""Chains: primitives in a row, built once for some shapes and run with new addresses each time.

Every Python thread has its own chains, stream and scratch memory, so chains are never shared; oneDNN caches compiled
primitives for all of them.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from ctypes import addressof
from functools import partial
from typing import Any

import numpy as np

from oprack_onednn import _c
from oprack_onednn.library import LIBRARY
from oprack_onednn.native import Attributes, Memory, MemoryDesc, NotServedError, Primitive, PrimitiveDesc, Stream
from oprack_onednn.operands import External, Operand, OperandError, Region, addresses

_PRIMITIVES = 1024
_ALIGN = 64
# Seconds per product and sum, and per byte read or written, that one core takes about; and how long a chain must take
# to be shared among threads: to wake another one, or to wait for it when others want its core, takes as long.
_PER_OPERATION, _PER_BYTE, _SHARED = 1e-11, 1.5e-10, 1e-4


_SETTINGS = itertools.count(1)


class OneDNNError(RuntimeError):
    """A primitive failed while it ran."""


class PrimitiveChain:
    """Primitives in a row, built for certain shapes.

    All memory that is not external is scratch, which the chains of a thread share: nothing in it outlives a run.

    Attributes:
        threads: Number of threads that share the work of its primitives.
        external: Memory of the operands of `run`, in their order.
        steps: Each primitive with its arguments.
        twins: External memory seen as another shape: (position in `external`, offset in bytes, memory).
        scratch: Scratch memory with its offset in the arena.
        size: Bytes of scratch memory.
    """

    def __init__(self) -> None:
        self.threads = THREAD.current
        self.external: list[External] = []
        self.steps: list[tuple[PrimitiveDesc, dict[int, Memory]]] = []
        self.twins: list[tuple[int, int, Memory]] = []
        self.scratch: list[tuple[Memory, int]] = []
        self.size = 0
        self._ends: dict[Memory, int] = {}
        self._bound: BoundChain | None = None
        self._primitives: list[Primitive] = []

    def input(self, desc: MemoryDesc) -> External:
        """Add memory to be read, which is that of the next operand of `run`."""
        self.external.append(External(desc))
        return self.external[-1]

    def output(self, desc: MemoryDesc, dtype: Any = np.float32) -> External:
        """Add memory to be written, which is that of the next operand of `run`."""
        self.external.append(External(desc, True, np.dtype(dtype)))
        return self.external[-1]

    def temporary(self, desc: MemoryDesc) -> Memory:
        """Add scratch memory."""
        memory = Memory(desc)
        self.scratch.append((memory, self.size))
        self._ends[memory] = self.size + desc.nbytes
        self.size += -(-desc.nbytes // _ALIGN) * _ALIGN
        return memory

    def same(self, memory: Memory, desc: MemoryDesc, offset: int = 0) -> Memory:
        """External memory seen as another shape, from byte `offset` on."""
        i = self.external.index(memory)  # type: ignore[arg-type]
        _expect_within(offset, desc, self.external[i].reach)
        twin = Memory(desc)
        self.twins.append((i, offset, twin))
        return twin

    def alias(self, memory: Memory, desc: MemoryDesc, offset: int = 0) -> Memory:
        """Scratch memory seen as another shape, from byte `offset` on."""
        start, end = next(o for m, o in self.scratch if m is memory), self._ends[memory]
        _expect_within(offset, desc, end - start)
        twin = Memory(desc)
        self.scratch.append((twin, start + offset))
        self._ends[twin] = end
        return twin

    def add(self, desc: PrimitiveDesc, arguments: dict[int, Memory]) -> None:
        """Append a primitive, which was created with scratch memory from the caller.

        Args:
            desc: The primitive.
            arguments: Memory by oneDNN's number of the argument.

        Raises:
            OperandError: The memory of an argument is smaller than the primitive takes it to be.
        """
        for argument, memory in arguments.items():
            if desc.argument_bytes(argument) > memory.desc.nbytes:
                raise OperandError(
                    f"argument {argument} of {desc.impl} has {memory.desc.nbytes} bytes; the primitive expects "
                    f"{desc.argument_bytes(argument)}"
                )
        THREAD.work += _seconds(arguments)
        scratch = desc.desc(_c.QUERY_SCRATCHPAD_MD)
        if scratch.nbytes:
            arguments = {**arguments, _c.SCRATCHPAD: self.temporary(scratch)}
        self.steps.append((desc, arguments))

    def primitives(self) -> list[Primitive]:
        """The compiled primitives, one for each step; compiled on first use, since only one of two chains may run."""
        if not self._primitives:
            THREAD.use(self.threads)
            descs = {id(desc): desc for desc, _ in self.steps}
            made = {key: Primitive(desc) for key, desc in descs.items()}
            self._primitives = [made[id(desc)] for desc, _ in self.steps]
        return self._primitives

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

    def run(self, *operands: Operand) -> None:
        """Run in the thread that built the chain.

        Args:
            operands: Operands for the external memory, in its order.

        Raises:
            OneDNNError: A primitive failed.
            OperandError: An operand does not fit; nothing was read or written.
        """
        bound = self._bound
        if bound is None:
            bound = self._bound = BoundChain(self)
        bound._run(*addresses(self.external, operands))


def _expect_within(offset: int, desc: MemoryDesc, size: int) -> None:
    if not 0 <= offset <= size - desc.reach:
        raise OperandError(f"memory of {size} bytes can't be seen as {desc.reach} bytes from byte {offset} on")


def _seconds(arguments: dict[int, Memory]) -> float:
    """About how long one core takes for a primitive with these arguments."""
    moved = sum(memory.desc.nbytes for memory in arguments.values())
    result, weights = arguments.get(_c.DST), arguments.get(_c.WEIGHTS)
    operations = 0.0
    if result is not None and weights is not None and result.desc.shape:
        # each number of the result is a sum over the weights of its channel: dim 1 of images, the last one of rows
        shape = result.desc.shape
        channels = shape[1] if len(shape) > 3 else shape[-1]
        operations = 2.0 * result.desc.nbytes / 4 * weights.desc.nbytes / 4 / max(1, channels)
    return operations * _PER_OPERATION + moved * _PER_BYTE


def _call(primitive: Primitive, arguments: dict[int, Memory]) -> tuple[tuple[int, int, int], Any]:
    """What primitive_execute takes besides a stream, and the array behind it, which has to live as long."""
    array = (_c.ExecArg * len(arguments))(*((k, m.pointer) for k, m in arguments.items()))
    return (primitive.pointer, len(arguments), addressof(array)), array


class BoundChain:
    """What runs a chain, in the thread that built it.

    With some operands fixed it has memory objects of its own, for one place of a program: those of the chain would be
    set to other addresses by its other users.

    Args:
        chain: The chain.
        fixed: For each external memory the operand that stays, or None where `run` takes it; empty fixes nothing.

    Raises:
        OperandError: A fixed operand does not fit.
    """

    def __init__(self, chain: PrimitiveChain, fixed: Sequence[Operand | None] = ()) -> None:
        self._set_handle, self._execute, self._stream = THREAD.set_handle, THREAD.execute, THREAD.stream.pointer
        self._threads = chain.threads
        every = [*chain.external, *(m for *_, m in chain.twins), *(m for m, _ in chain.scratch)]
        own = {memory: Memory(memory.desc) for memory in every} if fixed else {}
        given = list(fixed) or [None] * len(chain.external)
        stays = [None if g is None else m.address(g) for m, g in zip(chain.external, given, strict=True)]
        free = [i for i, address in enumerate(stays) if address is None]
        self._free = [chain.external[i] for i in free]
        self._pointers = [own.get(m, m).pointer for m in self._free]
        self._twins = []
        for i, offset, memory in (*((i, 0, m) for i, m in enumerate(chain.external)), *chain.twins):
            pointer, start = own.get(memory, memory).pointer, stays[i]
            if start is not None:
                self._set_handle(pointer, start + offset)
            elif memory is not chain.external[i]:
                self._twins.append((free.index(i), offset, pointer))
        self._scratch = [(own.get(memory, memory).pointer, offset) for memory, offset in chain.scratch]
        self._size, self._arena = chain.size, 0
        arguments = [{k: own.get(m, m) for k, m in memory.items()} for _, memory in chain.steps]
        calls = [_call(primitive, given) for primitive, given in zip(chain.primitives(), arguments, strict=True)]
        self._calls = [call for call, _ in calls]
        # oneDNN holds plain pointers to all of these
        self._referenced = (chain, own, calls, given)

    def run(self, *operands: Operand) -> None:
        """Run with operands for the external memory that is not fixed.

        Raises:
            OneDNNError: A primitive failed.
            OperandError: An operand does not fit; nothing was read or written.
        """
        self._run(*addresses(self._free, operands))

    def like(self, *operands: Operand) -> Callable[..., None]:
        """Check operands once, for calls with others of their dtypes, shapes and strides.

        Returns:
            A function that runs the chain for addresses. Who calls it has compared the arrays with these operands, and
            knows that what is written to is writable.
        """
        addresses(self._free, operands)
        return self._run

    def _run(self, *addresses: int) -> None:
        """Run with the addresses of the external memory that is not fixed."""
        set_handle = self._set_handle
        for pointer, address in zip(self._pointers, addresses, strict=True):
            set_handle(pointer, address)
        for i, offset, pointer in self._twins:
            set_handle(pointer, addresses[i] + offset)
        if self._size:
            arena = THREAD.arena(self._size)
            if arena != self._arena:  # it has grown since, or this chain has not run yet
                for pointer, offset in self._scratch:
                    set_handle(pointer, arena + offset)
                self._arena = arena
        if THREAD.current != self._threads:
            THREAD.use(self._threads)
        execute, stream = self._execute, self._stream
        for primitive, count, arguments in self._calls:
            status = execute(primitive, stream, count, arguments)
            if status:
                raise OneDNNError(f"oneDNN: a primitive failed: {_c.STATUS[status]}")


def reorder_desc(source: MemoryDesc, target: MemoryDesc, accumulate: bool = False) -> PrimitiveDesc:
    """A copy between layouts; slow implementations are taken, too: packing weights has no other way."""
    engine, attributes = LIBRARY.engine, Attributes([("sum", 1.0)] if accumulate else ())
    return PrimitiveDesc("reorder", source, engine, target, engine, attributes, any_speed=True)


class _Alive:
    """Lives as long as a Python thread."""


class Thread(threading.local):
    """What one Python thread needs to run chains.

    Attributes:
        primitives: Chains by key, those used last at the end. Which ones depends on the number of threads, since oneDNN
            chooses implementations by it.
        setting: A number that no other thread, and no other number of threads, has.
        limit: How many threads primitives may use; 0 means as the library says.
        current: How many threads they use now.
        work: Seconds that the primitives added so far take on one core.
        alive: An object that goes when the Python thread ends.
        revision: The library's revision when the number of threads was taken from it; -1 before the first use.
    """

    def __init__(self) -> None:
        self.primitives: OrderedDict[Hashable, Any] = OrderedDict()
        self.limit = self.current = self._threads = 0
        self.work = 0.0
        self.setting = 0
        self.alive = _Alive()
        self._by_threads: dict[int, tuple[int, OrderedDict[Hashable, Any]]] = {}
        self._memory = np.empty(0, np.uint8)
        self._arena = 0
        self._capacity = 0
        self.revision = -1
        self.stream: Stream | None = None

    def open(self) -> None:
        """Use the number of threads that is set now."""
        if self.stream is None:
            lib = LIBRARY.lib
            assert lib is not None
            self.stream = Stream()
            self.set_handle, self.execute = lib.dnnl_memory_set_data_handle, lib.dnnl_primitive_execute
        # implementations are chosen for the number of threads
        self._threads = self.current = LIBRARY.apply_threads(self.limit)
        if self._threads not in self._by_threads:
            self._by_threads[self._threads] = next(_SETTINGS), OrderedDict()
        self.setting, self.primitives = self._by_threads[self._threads]
        self.revision = LIBRARY.threads_revision
        LIBRARY.ran = True

    def ready(self) -> bool:
        """Whether oneDNN can be used in this process; if so, use the number of threads that is set now."""
        if self.revision != LIBRARY.threads_revision:
            if not LIBRARY.usable():
                return False
            self.open()
        return True

    def use(self, count: int) -> None:
        """Let the next primitives use `count` threads."""
        if count != self.current:
            self.current = LIBRARY.apply_threads(count)

    @contextmanager
    def limited(self, count: int) -> Iterator[None]:
        """Let primitives of this Python thread use `count` threads, for the length of a with block."""
        before, self.limit, self.revision = self.limit, count, -1
        try:
            yield
        finally:
            self.limit, self.revision = before, -1

    def primitive(self, key: Hashable, build: Callable[..., Any], *args: Any) -> Any:
        """The primitive for `key`, made by `build(*args)` when it is new; None when oneDNN has none."""
        if self.revision != LIBRARY.threads_revision:
            self.open()
        primitives = self.primitives
        try:
            primitive = primitives[key]
        except KeyError:
            try:
                primitive = self._build(build, args)
            except NotServedError:
                primitive = None
            primitives[key] = primitive
            if len(primitives) > _PRIMITIVES:
                primitives.popitem(last=False)
            return primitive
        primitives.move_to_end(key)
        return primitive

    def _build(self, build: Callable[..., Any], args: Sequence[Any]) -> Any:
        """A chain; of primitives for one thread alone when there is little to do."""
        work, threads, self.work = self.work, self.current, 0.0
        try:
            self.use(self._threads)
            primitive = build(*args)
            if self._threads > 1 and self.work < _SHARED:
                self.use(1)
                primitive = build(*args)
            return primitive
        finally:
            # a chain that asks for another while it is built goes on with its own number of threads
            self.work = work
            self.use(threads)

    def arena(self, size: int) -> int:
        """Address of at least `size` bytes of scratch memory."""
        if size > self._capacity:
            self._memory = np.empty(size + 4096, np.uint8)
            start = self._memory.ctypes.data
            self._arena = -(-start // 4096) * 4096
            self._capacity = size
        return self._arena


THREAD = Thread()


class PerThread(dict[Any, Any]):
    """A dict shared by Python threads, whose keys begin with THREAD.setting; a thread's entries go when it ends."""

    def __init__(self) -> None:
        self._threads: dict[int, weakref.ref[_Alive]] = {}

    def keep(self, key: tuple[Any, ...], value: Any) -> None:
        """Set an entry of the calling thread."""
        setting = key[0]
        if setting not in self._threads:
            # a partial and no lambda: when the interpreter exits, this module's globals may be None before the thread
            # is gone, and a lambda would look `_forget` up there
            self._threads[setting] = weakref.ref(THREAD.alive, partial(_forget, weakref.ref(self), setting))
        self[key] = value


def _forget(entries_of: weakref.ref[PerThread], setting: int, _: Any) -> None:
    """Drop the entries of a thread that ended; called by its weak reference, so it may use no global name."""
    entries = entries_of()
    if entries is not None:
        entries._threads.pop(setting, None)
        for key in list(entries):
            if key[0] == setting:
                entries.pop(key, None)


def pack(source: MemoryDesc, target: MemoryDesc, array: np.ndarray, offset: int | None = None) -> np.ndarray:
    """What an array holds in another layout, as float32 that start at a multiple of 64.

    offset: of the element from which on a part of it is read; default: all of it. Raises OperandError when the array is
    not what the layout `source` says.
    """
    if offset is not None and not array.flags.c_contiguous:
        raise OperandError("a part of an array that is not row-major")
    raw = np.empty(target.nbytes + _ALIGN, np.uint8)
    start = -raw.ctypes.data % _ALIGN
    packed = raw[start : start + target.nbytes].view(np.float32)
    chain = PrimitiveChain()
    chain.reorder(chain.input(source), chain.output(target))
    chain.run(array if offset is None else (Region(array), array.itemsize * offset), packed)
    return packed
