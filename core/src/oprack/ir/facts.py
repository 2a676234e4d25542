"""What passes may rely on: containers, dtypes and dims of variables that hold in every run.

A program declares dims and a dtype for every variable, and nothing makes a run keep to them: other sizes may be fed,
parameter files may hold other shapes, names are reused. So facts start from what is known or checked, the parameters in
the scope and the feeds (whose dtype and rank are checked, and sizes where the program asks for it), and go through the
ops' own rules. A fact is a VarDesc; a shape of None, a dim of -1 and a dtype of None mean that runs may differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from oprack.desc import BlockDesc, OpDesc, ProgramDesc, VarDesc
from oprack.interruption import let_interruptions_pass
from oprack.ir.fact_rules import SlotFacts, SlotInputs, infer
from oprack.ir.fact_values import from_outside, join, same, unknown
from oprack.packs.manager import PackManager
from oprack.tensor import Scope
from oprack.types import EMPTY_VAR

# Rounds in which what loops write has to settle; the dims of each name change at most once per dim.
_ROUNDS = 12
# More blocks are not looked into: what they write is unknown.
_MOST_BLOCKS = 64

Named = Mapping[str, VarDesc]


class ProgramFacts:
    """Facts of a whole program, by block.

    Args:
        scope: Scope that holds the parameters; None means that they are as declared.

    Attributes:
        entering: For each block index, facts of the values that come from outside of the block.
        written: For each (block index, number of the op), facts of what the op writes.
        refused: Ops whose rule raises whatever the values are; running them says what is wrong.
        accepted: Ops whose attributes and rules were found to be right.
    """

    def __init__(self, program: ProgramDesc, scope: Scope | None, manager: PackManager) -> None:
        self.program, self.scope, self.manager = program, scope, manager
        self.entering: dict[int, dict[str, VarDesc]] = {}
        self.written: dict[tuple[int, int], dict[str, VarDesc]] = {}
        self.refused: set[tuple[int, int]] = set()
        self.accepted: set[tuple[int, int]] = set()
        self._inner = len(program.blocks) <= _MOST_BLOCKS
        users = [i for block in program.blocks for op in block.ops for i in op.sub_blocks()] if self._inner else []
        # A block that several ops run has several sets of facts, so none is worked out.
        self._walked = {i for i in users if users.count(i) == 1 and i != 0}
        # what several blocks write, or one run leaves to the next: one fact for all writes
        self._shared = dict[str, VarDesc | None].fromkeys(_shared_names(program))
        # What a loop writes is read by its next round, so the walk is repeated until no fact changes.
        for left in reversed(range(_ROUNDS)):
            before = dict(self._shared)
            self.refused.clear()
            self.accepted.clear()
            self._share_what_runs_change(self._walk(program.blocks[0], []))
            if len(before) == len(self._shared) and all(same(before[n], f) for n, f in self._shared.items()):
                break
            # It does not settle: the last round says nothing of what is shared, which holds whatever happens.
            if left == 1:
                self._shared = {name: unknown(self._declared(name)) for name in self._shared}

    def _share_what_runs_change(self, last: Named) -> None:
        """A persistable variable that the program leaves with other dims than it finds has one fact for both."""
        for name, first in self.entering[0].items():
            if name in last and name not in self._shared and self._declared(name).persistable:
                both = join(first, last[name])
                if not same(both, first):
                    self._shared[name] = both

    def _declared(self, name: str) -> VarDesc:
        found: VarDesc | None = next((b.vars[name] for b in self.program.blocks if name in b.vars), None)
        return found or VarDesc(name)

    def _walk(self, block: BlockDesc, outer: Sequence[Named]) -> Named:
        """Work out the facts of a block; returns those of the names that it writes, at its end."""
        known: dict[str, VarDesc] = {}
        self.entering[block.idx] = {}
        scopes = (known, *outer)
        for number, op in enumerate(block.ops):
            inputs = {
                slot: [None if n == EMPTY_VAR else self._read(n, block, scopes) for n in names]
                for slot, names in op.inputs.items()
            }
            # the blocks of an op run before it is done, so what it writes comes after what they write
            for index in op.sub_blocks():
                if index in self._walked:
                    self._walk(self.program.blocks[index], scopes)
            results = self._results(block, number, op, inputs)
            written = self.written[block.idx, number] = {}
            for name, fact in _by_name(op.outputs, results):
                known[name] = written[name] = self._joined(op, name, fact)
        return known

    def _read(self, name: str, block: BlockDesc, scopes: Sequence[Named]) -> VarDesc:
        """What holds of a variable where an op of the block reads it; `scopes` has the block's own writes first."""
        fact: VarDesc | None = self._shared.get(name)
        if fact is None:
            fact = next((facts[name] for facts in scopes if name in facts), None)
        if fact is None:
            fact = from_outside(name, block.find_var_recursive(name), self.scope)
        if name not in scopes[0]:
            self.entering[block.idx].setdefault(name, fact)
        return fact

    def _results(self, block: BlockDesc, number: int, op: OpDesc, inputs: SlotInputs) -> SlotFacts:
        """What the op's rules say of its outputs; nothing where it has none, or they refuse the inputs."""
        outputs = {
            slot: [VarDesc(n) if n == EMPTY_VAR else block.find_var_recursive(n) or VarDesc(n) for n in names]
            for slot, names in op.outputs.items()
        }
        if op.type == "feed":  # what is fed is checked against what the program declares
            return {s: [from_outside(v.name, v, None) for v in found] for s, found in outputs.items()}
        runs_itself = self.manager.operator_class(op.type) is not None
        info = None if runs_itself else self.manager.op_info(op.type)
        try:
            results = infer(op, inputs, outputs, info)
        except Exception:  # a rule that fails in any way says nothing; running the op says what is wrong
            let_interruptions_pass()
            self.refused.add((block.idx, number))
            return infer(op, inputs, outputs, None)
        if info is not None:
            self.accepted.add((block.idx, number))
        return results

    def _joined(self, op: OpDesc, name: str, fact: VarDesc) -> VarDesc:
        """The fact of a write; of a variable with several writers, what holds after each of them."""
        if name not in self._shared:
            return fact
        before = self._shared[name]
        # what an op with sub-blocks writes has been joined in there
        inside = before is not None and any(True for _ in op.sub_blocks())
        joined = before if inside and before else join(before, fact)
        self._shared[name] = joined
        return joined


def _shared_names(program: ProgramDesc) -> Iterator[str]:
    """Names that a block writes and another one declares."""
    for block in program.blocks[1:]:
        for op in block.ops:
            yield from (n for n in op.output_arg_names() if n not in block.vars and n != EMPTY_VAR)


def _by_name(slots: Mapping[str, Sequence[str]], facts: SlotFacts) -> Iterator[tuple[str, VarDesc]]:
    for slot, names in slots.items():
        yield from ((n, fact) for n, fact in zip(names, facts[slot], strict=True) if n != EMPTY_VAR)
