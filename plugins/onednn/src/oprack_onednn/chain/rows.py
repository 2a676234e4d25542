"""Chains in a row, run by one native call, and such rows side by side, each on a thread of the pool."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import addressof, c_int64, c_void_p

from oprack_onednn.c.runner import RUNNER, NativeStretch, array_type
from oprack_onednn.chain.primitive_chain import BoundChain, expect_success
from oprack_onednn.chain.thread import THREAD, Arena
from oprack_onednn.dnnl.operands import Operand


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
    expect_success(RUNNER.run(together.pointer))


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
        expect_success(max(self._statuses))


def _addresses(row: Sequence[BoundChain], operands: Sequence[Sequence[Operand]]) -> list[int]:
    return [a for chain, given in zip(row, operands, strict=True) for a in chain.addresses(given)]


def _stretch(arena: Arena, row: Sequence[BoundChain]) -> NativeStretch:
    """Chains as one stretch, with addresses of its own for each."""
    chains = [chain.native for chain in row if chain.native is not None]
    count = sum([chain.operands for chain in chains])
    return NativeStretch(arena.state, chains, range(count), count)
