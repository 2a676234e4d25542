"""Running a chain: addresses are set, and its primitives executed one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import addressof, c_int64, c_void_p, sizeof
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from oprack_onednn.c.runner import RUNNER, NativeChain, NativeStretch, array_type
from oprack_onednn.chain.spread import Spread
from oprack_onednn.chain.thread import THREAD, Arena
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.memory_objects import MemoryObjects
from oprack_onednn.dnnl.native import Memory
from oprack_onednn.dnnl.operands import Operand, addresses
from oprack_onednn.threads.process import EXIT

if TYPE_CHECKING:
    import numpy as np

    from oprack_onednn.chain.primitive_chain import PrimitiveChain
    from oprack_onednn.dnnl.native import MemoryDesc


class OneDNNError(RuntimeError):
    """A primitive failed while it ran."""


class _Arguments:
    """What primitive_execute takes besides a stream, for each step of a chain.

    Args:
        chain: The chain.
        stays: The address of each operand that stays, None for one that varies.

    Attributes:
        given: (number of arguments, their address) of each step.
        places: (operand or None for scratch memory, offset in bytes, memory object) of what needs an address.
    """

    def __init__(self, chain: PrimitiveChain, stays: Sequence[int | None]) -> None:
        self._stays = stays
        self._numbers: dict[Any, int] = {}
        self._descs: list[MemoryDesc] = []
        self._handles: list[int] = []
        self._arrays: list[np.ndarray] = []  # which objects have the addresses of
        varying: list[tuple[int | None, int, int]] = []
        pairs: list[int] = []
        starts = []
        for desc, arguments in chain.steps:
            starts.append(len(pairs))
            if isinstance(desc, Spread):
                continue  # it takes addresses
            for number, memory in arguments.items():
                pairs += number, self._number(chain.places.get(memory), memory, varying)
            scratchpad = desc.desc(_c.QUERY_SCRATCHPAD_MD)
            if scratchpad.nbytes:
                pairs += _c.SCRATCHPAD, self._number((None, chain.size), Memory(scratchpad), varying)
        self._objects = MemoryObjects(self._descs, self._handles)
        pointers = self._objects.pointers
        pairs[1::2] = map(pointers.__getitem__, pairs[1::2])
        # oneDNN holds plain pointers to the array and the objects. An ExecArg, an int and a pointer, is as long as two
        # numbers of 64 bits, and on a machine with the low bytes first it is these.
        self._array = array_type(c_int64, len(pairs))(*pairs)
        first, step = addressof(self._array), sizeof(c_int64)
        counts = [(end - start) // 2 for start, end in pairwise([*starts, len(pairs)])]
        self.given = list(zip(counts, [first + step * start for start in starts], strict=True))
        self.places = [(operand, offset, pointers[i]) for operand, offset, i in varying]

    def _number(
        self, place: tuple[int | None, int] | None, memory: Memory, varying: list[tuple[int | None, int, int]]
    ) -> int:
        """The number of the object for memory: one for all that lies at one place in one layout."""
        # descriptors are kept, so no other layout gets the identity of one
        key = memory if place is None else (place, id(memory.desc))
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self._descs)
            self._descs.append(memory.desc)
            stays = None if place is None or place[0] is None else self._stays[place[0]]
            if memory.array is not None:
                self._arrays.append(memory.array)
                self._handles.append(memory.array.ctypes.data)
            elif place is None or stays is None:
                self._handles.append(0)
                if place is not None:
                    varying.append((*place, found))
            else:
                self._handles.append(stays + place[1])
        return found


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
        self._operands = {i: k for k, i in enumerate(free)}
        arguments = _Arguments(chain, stays)
        for operand, offset, pointer in arguments.places:
            if operand is None:
                self._scratch.append((pointer, offset))
            else:
                self._places.append((self._operands[operand], offset, pointer))
        self._size, self._arena = chain.size + chain.scratchpad, 0
        # oneDNN holds plain pointers to all of these
        self._referenced = (chain, arguments, given)
        self._alone: NativeStretch | None = None
        self._ran = False

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
            for step, (count, address) in zip(chain.primitives(), arguments.given, strict=True)
        ]

    def compile_ahead(self, cores: int = 0) -> None:
        """Have the primitives compiled before the first run, on some of `cores` cores; 0 means all there are."""
        if "_calls" not in self.__dict__:
            self._referenced[0].compile_ahead(cores)

    def compiled(self) -> BoundChain:
        """Itself, with its primitives compiled. Raises NotServedError when oneDNN refuses."""
        assert self._calls is not None
        return self

    @cached_property
    def native(self) -> NativeChain | None:
        """The chain as the compiled runner takes it; None without the runner."""
        if RUNNER.run is None:
            return None
        places = [(pointer, i, offset) for i, offset, pointer in self._places]
        return NativeChain(len(self._free), self._threads, places, self._scratch, self._calls)

    def _joined(self) -> NativeStretch | None:
        if self.native is not None:
            count = len(self._free)
            self._alone = NativeStretch(self._state, [self.native], range(count), count)
        return self._alone

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
        # of many shapes there is no second run, and what the runner takes costs more than it saves in the first one
        alone, run = self._alone or (self._joined() if self._ran else None), RUNNER.run
        if alone is None or run is None:
            self._ran = True
            self._run_step_by_step(addresses)
            return
        alone.values[:] = addresses
        if self._size > self._state.capacity:
            THREAD.arena(self._size)
        _expect_success(run(alone.pointer))

    def _run_step_by_step(self, addresses: Sequence[int]) -> None:
        """What the compiled runner does, in a first run and where there is none."""
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
                    self._referenced[0].steps[i][0].run(self._arena, addresses[operand], self._threads)
                elif primitive & 1:
                    _expect_success(RUNNER.native(primitive, count, arguments, self._threads))
                else:
                    _expect_success(self._execute(primitive, self._stream, count, arguments))


def run_all(calls: Sequence[tuple[BoundChain, Sequence[Operand]]]) -> None:
    """Run chains one after the other, each with its operands, in the thread that built them.

    Raises:
        OneDNNError: A primitive failed.
        OperandError: An operand does not fit; nothing was read or written.
    """
    if not calls:
        return
    row, operands = [chain for chain, _ in calls], [given for _, given in calls]
    if RUNNER.run is None:
        found = [chain.addresses(given) for chain, given in calls]
        for chain, values in zip(row, found, strict=True):
            chain._run(*values)
        return
    together = _stretch(THREAD, row)
    together.values[:] = _addresses(row, operands)
    THREAD.arena(max([chain.size for chain in row]))
    _expect_success(RUNNER.run(together.pointer))


class SideBySide:
    """Rows of chains that run at once, each row on one of the pool's threads, in the thread that built them.

    Args:
        rows: Chains for one thread. No chain is in two rows, and no row reads what another one writes.
    """

    def __init__(self, rows: Sequence[Sequence[BoundChain]]) -> None:
        self._rows = rows
        self._arenas = [THREAD.beside(i) if i else THREAD for i in range(len(rows))]
        self._stretches = [_stretch(arena, row) for arena, row in zip(self._arenas, rows, strict=True)]
        self._pointers = array_type(c_void_p, len(rows))(*(s.pointer for s in self._stretches))
        self._statuses = array_type(c_int64, len(rows))()

    def run(self, operands: Sequence[Sequence[Sequence[Operand]]]) -> None:
        """Run with the operands of each chain of each row.

        Raises:
            OneDNNError: A primitive failed.
            OperandError: An operand does not fit; nothing was read or written.
        """
        found = [_addresses(row, given) for row, given in zip(self._rows, operands, strict=True)]
        for arena, row, stretch, values in zip(self._arenas, self._rows, self._stretches, found, strict=True):
            stretch.values[:] = values
            arena.arena(max([chain.size for chain in row]))
        assert RUNNER.run_apart is not None
        RUNNER.run_apart(addressof(self._pointers), addressof(self._statuses), len(found))
        _expect_success(max(self._statuses))


def _addresses(row: Sequence[BoundChain], operands: Sequence[Sequence[Operand]]) -> list[int]:
    return [a for chain, given in zip(row, operands, strict=True) for a in chain.addresses(given)]


def _stretch(arena: Arena, row: Sequence[BoundChain]) -> NativeStretch:
    """Chains as one stretch, with addresses of its own for each."""
    chains = [chain.native for chain in row if chain.native is not None]
    count = sum([chain.operands for chain in chains])
    return NativeStretch(arena.state, chains, range(count), count)


def _expect_success(status: int) -> None:
    if status:
        raise OneDNNError(f"oneDNN: a primitive failed: {_c.STATUS[status]}")
