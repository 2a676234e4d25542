"""Versions of variables: which forward values are overwritten before gradient ops read them, and their recovery."""

from __future__ import annotations

from collections.abc import Collection

from oprack.autodiff.path import inputs_of, outputs_of
from oprack.desc import BlockDesc, OpDesc
from oprack.desc.reach import named_by_attributes, writes
from oprack.errors import InvalidArgumentError
from oprack.op import GradOp
from oprack.op.desc_rules import grad_op_desc, make_grad_ops
from oprack.packs.manager import PackManager


class Versions:
    """Tracks which version each variable holds during the backward pass over a block.

    At the start, variables hold the last version that the forward pass wrote. A gradient op that restores a variable
    undoes one write.

    Args:
        block: The forward block.
        manager: The packs.
        emitted: Receives the gradient ops that restore variables.
    """

    def __init__(self, block: BlockDesc, manager: PackManager, emitted: list[OpDesc]) -> None:
        self.block, self.manager, self.emitted = block, manager, emitted
        self.ops = list(block.ops)
        self.writers: dict[str, list[int]] = {}
        for i, op in enumerate(self.ops):
            for name in writes(op, block.program):
                self.writers.setdefault(name, []).append(i)
        # Writes that are not undone yet, the last one at the end.
        self._left = {n: list(writers) for n, writers in self.writers.items()}
        self.from_start: set[str] = set()
        """Variables whose value from before each round of the block is saved."""
        self._outer: set[str] = set()

    def repeats(self, outer: Collection[str], from_start: Collection[str]) -> None:
        """Note that the block runs several times.

        Args:
            outer: Variables that all rounds share, so that later rounds overwrite them.
            from_start: Variables whose values from before each round are saved.
        """
        self.from_start, self._outer = set(from_start), set(outer) - set(from_start)

    # What gradient ops find -------------------------------------------------------------------------------------------
    def check(self, index: int, grad: GradOp, desc: OpDesc) -> None:
        """Make sure that gradient op `desc` of op `index` finds the forward values that it reads.

        Raises:
            InvalidArgumentError: A value was overwritten by an op that can't be undone.
        """
        unread = self.manager.op_info(desc.type).no_need_buffer_vars
        for slot, ref in grad.inputs.items():
            if ref.role in ("input", "output") and slot not in unread:
                for name in desc.inputs.get(slot, ()):
                    self.require(index, name, ref.role == "output", f"{desc.type} needs {slot}, variable {name!r}")
        for name in named_by_attributes(desc):
            self.require(index, name, False, f"{desc.type} takes an attribute from variable {name!r}")

    def require(self, index: int, name: str, after: bool, why: str) -> None:
        """Undo later writes to a variable, so that a gradient op of op `index` finds the value of that time.

        Args:
            index: Position of the forward op in the block.
            name: The variable.
            after: Whether the value that the op wrote is needed, rather than the one that it read.
            why: What needs the value, for the message.

        Raises:
            InvalidArgumentError: An op that overwrote the value can't be undone.
        """
        while (j := self._overwriter(name, index, after)) is not None:
            if not self._undo(j, name):
                raise InvalidArgumentError(
                    f"op {self.ops[index].type}: its gradient {why}, but op {self.ops[j].type} (number {j} of block "
                    f"{self.block.idx}) overwrites it{' in place afterwards' * (j != index)}; let that op write to a "
                    "variable of its own, for example through layers.assign"
                )

    def _overwriter(self, name: str, index: int, after: bool) -> int | None:
        first = index + after
        if name in self.from_start:
            return next((i for i in reversed(self.writers[name]) if i < first), None)
        left = self._left.get(name, ())
        # Later rounds overwrote what rounds share, even if no later op of this round does.
        if left and (left[-1] >= first or name in self._outer):
            return left[-1]
        return None

    # Undoing ----------------------------------------------------------------------------------------------------------
    def undo_in_step(self, index: int) -> None:
        """Undo the op's in-place writes to outer variables, as earlier rounds of the gradient block rely on it."""
        for name in outputs_of(self.ops[index]):
            if name not in self.block.vars and self.can_undo(name):
                self._undo(index, name)

    def can_undo(self, name: str) -> bool:
        """Whether gradient ops can undo all writes of the block to a variable."""
        return all(self._can_undo(self.ops[i], name) for i in self.writers.get(name, ()))

    def _can_undo(self, op: OpDesc, name: str) -> bool:
        if self._restoring(op, name) is not None:
            return True
        inner = [Versions(self.block.program.blocks[i], self.manager, []) for i in op.sub_blocks()]
        return bool(inner) and all(versions.can_undo(name) for versions in inner)

    def _undo(self, index: int, name: str) -> bool:
        """Undo the write of op `index` to a variable; False when that is impossible."""
        op = self.ops[index]
        grad = self._restoring(op, name)
        # Only the last write can be undone: the result of an earlier one is overwritten.
        if grad is None or self._left.get(name, [])[-1:] != [index]:
            return False
        self.emitted.append(grad_op_desc(grad, self.manager.op_info(op.type), op))
        self.restored(name, index)
        return True

    def _restoring(self, op: OpDesc, name: str) -> GradOp | None:
        """The gradient op that restores the value that `name` had before `op`, or None."""
        info = self.manager.op_info(op.type)
        if name not in inputs_of(op) or name not in outputs_of(op) or info.grad_op_maker is None:
            return None
        for grad in make_grad_ops(info, op):
            if grad.restores and any(name in op.inputs.get(ref.slot, ()) for ref in grad.outputs.values()):
                return grad
        return None

    def restored(self, name: str, index: int) -> None:
        """Note that the writes of op `index` and of all later ops to this variable are undone."""
        self._left[name] = [i for i in self._left.get(name, ()) if i < index]

    def undone(self) -> dict[str, bool]:
        """Variables with undone writes -> whether all writes are undone, so that the block left no trace in them."""
        return {n: not left for n, left in self._left.items() if len(left) < len(self.writers[n])}
