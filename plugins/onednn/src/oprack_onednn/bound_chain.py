"""Running a chain: addresses are set, and its primitives executed one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from ctypes import addressof
from typing import TYPE_CHECKING, Any

from oprack_onednn import _c
from oprack_onednn.native import Memory, MemoryDesc, MemoryObject, Primitive, PrimitiveDesc
from oprack_onednn.operands import Operand, addresses
from oprack_onednn.runner import RUNNER, NativeChain, NativeStretch
from oprack_onednn.thread import THREAD

if TYPE_CHECKING:
    from oprack_onednn.primitive_chain import PrimitiveChain


class OneDNNError(RuntimeError):
    """A primitive failed while it ran."""


def _call(primitive: Primitive, arguments: dict[int, MemoryObject]) -> tuple[tuple[int, int, int], Any]:
    """What primitive_execute takes besides a stream, and the array behind it, which has to live as long."""
    array = (_c.ExecArg * len(arguments))(*((k, m.pointer) for k, m in arguments.items()))
    return (primitive.pointer, len(arguments), addressof(array)), array


class _Objects:
    """The memory objects of a chain: one for all memory that lies at one place in one layout."""

    def __init__(self, chain: PrimitiveChain) -> None:
        self._chain = chain
        self._by_place: dict[tuple[int | None, int, int], MemoryObject] = {}
        self._constant: dict[Memory, MemoryObject] = {}

    def arguments(self, desc: PrimitiveDesc, arguments: dict[int, Memory]) -> dict[int, MemoryObject]:
        """Those of a primitive's arguments, its scratchpad among them."""
        found = {k: self._of(memory) for k, memory in arguments.items()}
        scratchpad = desc.desc(_c.QUERY_SCRATCHPAD_MD)
        if scratchpad.nbytes:
            found[_c.SCRATCHPAD] = self._at(None, self._chain.size, scratchpad)
        return found

    def _of(self, memory: Memory) -> MemoryObject:
        place = self._chain.places.get(memory)
        if place is not None:
            return self._at(*place, memory.desc)
        if memory not in self._constant:
            self._constant[memory] = MemoryObject(memory.desc, memory.array)
        return self._constant[memory]

    def _at(self, operand: int | None, offset: int, desc: MemoryDesc) -> MemoryObject:
        # the objects keep the descriptors, so no other descriptor can have the id of one
        key = operand, offset, id(desc)
        found = self._by_place.get(key)
        if found is None:
            found = self._by_place[key] = MemoryObject(desc)
        return found

    def placed(self) -> Iterator[tuple[tuple[int | None, int], int]]:
        """((operand or None for scratch memory, offset in bytes), pointer) of each object that needs an address."""
        for (operand, offset, _), found in self._by_place.items():
            yield (operand, offset), found.pointer


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
        self._state = THREAD.state
        self._threads = chain.threads
        given = list(fixed) or [None] * len(chain.external)
        stays = [None if g is None else m.address(g) for m, g in zip(chain.external, given, strict=True)]
        free = [i for i, address in enumerate(stays) if address is None]
        self._free = [chain.external[i] for i in free]
        self._places: list[tuple[int, int, int]] = []  # (free operand, offset in bytes, memory object)
        self._scratch: list[tuple[int, int]] = []  # (memory object, offset in the arena)
        objects = _Objects(chain)
        calls = [
            _call(primitive, objects.arguments(desc, arguments))
            for primitive, (desc, arguments) in zip(chain.primitives(), chain.steps, strict=True)
        ]
        self._calls = [call for call, _ in calls]
        for (operand, offset), pointer in objects.placed():
            if operand is None:
                self._scratch.append((pointer, offset))
            elif (start := stays[operand]) is None:
                self._places.append((free.index(operand), offset, pointer))
            else:
                self._set_handle(pointer, start + offset)
        self._size, self._arena = chain.size + chain.scratchpad, 0
        # oneDNN holds plain pointers to all of these
        self._referenced = (chain, objects, calls, given)
        self.native = self._native() if RUNNER.run is not None else None
        count = len(self._free)
        self._alone = None if self.native is None else NativeStretch(self._state, [self.native], range(count), count)

    @property
    def size(self) -> int:
        """Bytes of scratch memory."""
        return self._size

    def _native(self) -> NativeChain:
        places = [(pointer, i, offset) for i, offset, pointer in self._places]
        return NativeChain(len(self._free), self._threads, places, self._scratch, self._calls)

    def run(self, *operands: Operand) -> None:
        """Run with operands for the external memory that is not fixed.

        Raises:
            OneDNNError: A primitive failed.
            OperandError: An operand does not fit; nothing was read or written.
        """
        self._run(*addresses(self._free, operands))

    def addresses(self, operands: Sequence[Operand]) -> list[int]:
        """Addresses of operands for memory that is not fixed. Raises OperandError when one does not fit."""
        return addresses(self._free, operands)

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
        alone, run = self._alone, RUNNER.run
        if alone is None or run is None:
            self._run_step_by_step(addresses)
            return
        alone.values[:] = addresses
        if self._size > self._state.capacity:
            THREAD.arena(self._size)
        status = run(alone.pointer)
        if status:
            raise OneDNNError(f"oneDNN: a primitive failed: {_c.STATUS[status]}")

    def _run_step_by_step(self, addresses: Sequence[int]) -> None:
        """What the compiled runner does, where there is none."""
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
        execute, stream = self._execute, self._stream
        for primitive, count, arguments in self._calls:
            status = execute(primitive, stream, count, arguments)
            if status:
                raise OneDNNError(f"oneDNN: a primitive failed: {_c.STATUS[status]}")


def run_all(calls: Sequence[tuple[BoundChain, Sequence[Operand]]]) -> None:
    """Run chains one after the other, each with its operands, in the thread that built them.

    Raises:
        OneDNNError: A primitive failed.
        OperandError: An operand does not fit; nothing was read or written.
    """
    if not calls:
        return
    found = [chain.addresses(operands) for chain, operands in calls]
    native = [chain.native for chain, _ in calls if chain.native is not None]
    if RUNNER.run is None or len(native) < len(calls):
        for (chain, _), values in zip(calls, found, strict=True):
            chain._run(*values)
        return
    size = max(chain.size for chain, _ in calls)
    _run_together(native, [address for values in found for address in values], size)


def _run_together(chains: Sequence[NativeChain], values: Sequence[int], size: int) -> None:
    """Run chains by one native call. values: the addresses of all. size: bytes of scratch memory."""
    assert RUNNER.run is not None
    together = NativeStretch(THREAD.state, chains, range(len(values)), len(values))
    together.values[:] = values
    if size > THREAD.state.capacity:
        THREAD.arena(size)
    status = RUNNER.run(together.pointer)
    if status:
        raise OneDNNError(f"oneDNN: a primitive failed: {_c.STATUS[status]}")
