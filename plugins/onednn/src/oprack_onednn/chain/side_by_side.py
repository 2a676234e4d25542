"""Runs chains by one native call: a sequence of them, or several sequences at once on threads of the pool."""

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
    chains, operands = [chain for chain, _ in calls], [of_chain for _, of_chain in calls]
    if RUNNER.run is None:
        checked = [chain.addresses(of_chain) for chain, of_chain in calls]  # all of them before the first one runs
        for chain, addresses in zip(chains, checked, strict=True):
            chain._run(*addresses)
        return
    stretch = _stretch(THREAD, chains)
    stretch.values[:] = _addresses(chains, operands)
    THREAD.arena(max([chain.size for chain in chains]))
    expect_success(RUNNER.run(stretch.pointer))


class SideBySide:
    """Sequences of chains that run at once, each on one of the pool's threads; called in the thread that built them.

    Args:
        sequences: The chains for each thread. No chain is in two sequences, and none reads what another one writes.
    """

    def __init__(self, sequences: Sequence[Sequence[BoundChain]]) -> None:
        self._sequences = sequences
        self._arenas = [THREAD.beside(i) if i else THREAD for i in range(len(sequences))]
        self._stretches = [_stretch(arena, chains) for arena, chains in zip(self._arenas, sequences, strict=True)]
        self._pointers = array_type(c_void_p, len(sequences))(*(s.pointer for s in self._stretches))
        self._statuses = array_type(c_int64, len(sequences))()

    def run(self, operands: Sequence[Sequence[Sequence[Operand]]]) -> None:
        """Run with the operands of each chain of each sequence.

        Raises:
            OneDNNError: A primitive failed.
            OperandError: An operand does not fit; nothing was read or written.
        """
        checked = [_addresses(chains, given) for chains, given in zip(self._sequences, operands, strict=True)]
        for arena, chains, stretch, values in zip(self._arenas, self._sequences, self._stretches, checked, strict=True):
            stretch.values[:] = values
            arena.arena(max([chain.size for chain in chains]))
        assert RUNNER.run_apart is not None
        RUNNER.run_apart(addressof(self._pointers), addressof(self._statuses), len(checked))
        expect_success(max(self._statuses))


def _addresses(chains: Sequence[BoundChain], operands: Sequence[Sequence[Operand]]) -> list[int]:
    return [a for chain, of_chain in zip(chains, operands, strict=True) for a in chain.addresses(of_chain)]


def _stretch(arena: Arena, chains: Sequence[BoundChain]) -> NativeStretch:
    """Chains as one stretch; no two of them share an operand."""
    natives = [chain.native for chain in chains if chain.native is not None]
    count = sum([native.operands for native in natives])
    return NativeStretch(arena.state, natives, range(count), count)
