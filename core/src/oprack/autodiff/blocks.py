"""Gradients of ops with a block: a gradient block, and the gradient op that passes gradients into and out of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from oprack.autodiff.path import differentiable, influenced, path_to
from oprack.desc import BlockDesc, OpDesc
from oprack.desc.reach import reads
from oprack.errors import InvalidArgumentError, NotDifferentiableError
from oprack.op import GradBlock, GradOp
from oprack.op.desc_rules import grad_name
from oprack.types import EMPTY_VAR, AttrType, VarType

if TYPE_CHECKING:
    from oprack.autodiff.walk import Backward


class _BlockGradient:
    """Differentiates op number `index` of the block that `outer` walks over."""

    def __init__(
        self, outer: Backward, op: OpDesc, index: int, grad: GradOp, rules: GradBlock, arrived: Mapping[str, str]
    ) -> None:
        self.outer, self.op, self.index, self.grad, self.arrived = outer, op, index, grad, arrived
        self.rules = rules
        self.attr, inner = _only_block(op)
        self.inner: BlockDesc = outer.block.program.blocks[inner]
        written, read = op.outputs.get(self.rules.out_slot, []), _names(op, self.rules.in_slots)
        self.outputs = [n for n in dict.fromkeys(written) if self._flows(n)]
        may_keep = self.outputs if self.rules.keeps else ()
        self.unchanged = [n for n in may_keep if n not in read and outer.may_hold_older(n, index)]
        self.inputs = [n for n in dict.fromkeys((*read, *self.unchanged)) if self._flows(n)]
        self.carried = self._carried()

    def _carried(self) -> list[tuple[str, str]]:
        """(variable that a round writes, variable by which the next round reads it), where gradients flow between."""
        carried = [(w, r) for w, r in self.rules.carried if self._flows(w) and self._flows(r)]
        # A block that repeats and works on outer variables carries them from round to round under their own names.
        if self.rules.repeats and not self.rules.shadows_outer:
            carried += [(n, n) for n in self.outputs if n in self.inputs]
        return carried

    def _flows(self, name: str) -> bool:
        return name not in self.outer.no_grad and differentiable(self.inner, name)

    def sources(self) -> tuple[list[str], set[str]]:
        """(variables of the block whose gradients are needed, all variables that depend on them in any round)."""
        first = dict(zip((r for _, r in self.rules.carried), self.op.inputs.get(self.rules.initial, ()), strict=False))
        needed = [n for n in self.inputs if n in self.outer.needed]
        needed += [r for _, r in self.carried if first.get(r) in self.outer.needed]
        while True:
            # The results of a round flow into the next, where they may reach more variables: repeat until none is new.
            reached = influenced(self.inner, self.inner.ops, needed, self.outer.no_grad)
            carried = [r for w, r in self.carried if w in reached and r not in needed]
            if not carried:
                return needed, reached
            needed += carried

    def starts(self, walk: Backward, reached: Collection[str]) -> list[str]:
        """Where the backward walk over the block starts: outputs with a gradient, and what later rounds read."""
        names = [n for n in self.outputs if n in self.arrived]
        while True:
            relevant = path_to(self.inner.ops, names, reached, walk.partial_outputs)[1]
            carried = [w for w, r in self.carried if r in relevant and w in reached and w not in names]
            if not carried:
                return names
            names += carried

    def run(self, desc: OpDesc) -> None:
        """Build the gradient block and add gradient op `desc`."""
        outer, rules = self.outer, self.rules
        grad_block = outer.block.program.append_block(outer.target, self.inner)
        walk = outer.inside(self.inner, grad_block)
        sources, reached = self.sources()
        starts = self.starts(walk, reached)
        self._tell_versions_of_repeats(walk)
        for var in starts:
            walk.seed(var, grad_name(var))
            # A block that runs at most once reads the incoming gradient by its outer name, as Paddle's blocks do.
            outside = not rules.repeats and not rules.shadows_outer and outer.name_of(var) == grad_name(var)
            (outer if outside else walk).declare(grad_name(var), var)
        gradients = walk.run(starts, sources)
        for var in starts:
            flows_on = not rules.shadows_outer and (rules.repeats or var in self.inputs)
            # The block overwrites the variable, so nothing flows back to the value that it held before.
            if flows_on and var not in gradients and walk.pending_grad(var) is None:
                walk.zeros(var, grad_name(var))
                gradients[var] = grad_name(var)
        walk.finish()
        desc.set_attr(self.attr, grad_block.idx, AttrType.BLOCK)
        self._bind_inputs(desc, starts)
        self._bind_outputs(desc, gradients, grad_block)
        self._require_values(desc, walk, grad_block)
        outer.emit(desc, self._with_unchanged())

    def _with_unchanged(self) -> OpDesc:
        """The forward op as if it read the variables that may remain unchanged, since their old values pass through."""
        if not self.unchanged:
            return self.op
        op = self.op.clone()
        op.inputs[self.rules.keeps] = [*op.inputs.get(self.rules.keeps, []), *self.unchanged]
        return op

    def _bind_inputs(self, desc: OpDesc, starts: Sequence[str]) -> None:
        outputs = self.op.outputs.get(self.rules.out_slot, [])
        for slot, ref in self.grad.inputs.items():
            if ref.role != "output_grad":
                continue
            if not self.rules.names:
                desc.inputs[slot] = [self.arrived.get(n, EMPTY_VAR) if n in starts else EMPTY_VAR for n in outputs]
                continue
            started = [n for n in dict.fromkeys(outputs) if n in starts]
            for n in started:
                if n in self.arrived:
                    continue
                # An empty array reads as zeros, so it needs no values.
                if _kind(self.inner, n) is VarType.LOD_TENSOR_ARRAY:
                    self.outer.declare(self.outer.name_of(n), n)
                else:
                    self.outer.zeros(n, self.outer.name_of(n))
            desc.inputs[slot] = [self.arrived.get(n, self.outer.name_of(n)) for n in started]
            desc.set_attr(self.rules.names, [grad_name(n) for n in started], AttrType.STRINGS)

    def _bind_outputs(self, desc: OpDesc, gradients: Mapping[str, str], grad_block: BlockDesc) -> None:
        """Bind the gradients that leave the block: those needed outside, and those carried from round to round."""
        carried = {r for _, r in self.carried}
        for slot, ref in self.grad.outputs.items():
            outside = list(self.op.inputs.get(ref.slot, []))
            if ref.slot == self.rules.keeps:
                outside += self.unchanged
                self._read_unchanged(desc, ref.slot, outside)
            inside = [r for _, r in self.rules.carried] if ref.slot == self.rules.initial else outside
            names = []
            for i, (o, n) in enumerate(zip(outside, inside, strict=True)):
                needed = n in gradients and (o in self.outer.needed or (o == n and n in carried))
                names.append(self.outer.name_of(o) if needed else EMPTY_VAR)
                var = grad_block.vars.get(grad_name(n))
                if needed and var is not None and var.type is VarType.SELECTED_ROWS:
                    self.outer.kinds.append((desc, slot, i, var))
            desc.outputs[slot] = names

    def _read_unchanged(self, desc: OpDesc, slot: str, names: list[str]) -> None:
        """Let the gradient op read the variables that may remain unchanged, in the slot for that forward input."""
        for grad_slot, ref in self.grad.inputs.items():
            if (ref.role, ref.slot) == ("input", slot):
                desc.inputs[grad_slot] = names

    # Forward values ---------------------------------------------------------------------------------------------------
    def _tell_versions_of_repeats(self, walk: Backward) -> None:
        if not self.rules.repeats:
            return
        local = set(self.inner.vars)
        if self.rules.shadows_outer:
            local |= {*self.outputs, *self.inputs, *(n for pair in self.rules.carried for n in pair)}
        shared = {n for n in walk.versions.writers if n not in local and not walk.versions.can_undo(n)}
        passed_in = _names(self.op, self.rules.in_slots)
        # An array of tensors holds the values of all rounds, so none of its versions has to be saved.
        arrays = {n for n in shared if _kind(self.inner, n) is VarType.LOD_TENSOR_ARRAY}
        walk.versions.repeats(shared, shared.intersection(passed_in) - arrays)

    def _require_values(self, desc: OpDesc, walk: Backward, grad_block: BlockDesc) -> None:
        """Require the values that outer variables had at this op, since the gradient block reads them."""
        saved = walk.versions.from_start
        local = {*self.inner.vars, *grad_block.vars}
        program, manager = grad_block.program, self.outer.manager

        def unread(op: OpDesc) -> Collection[str]:
            return manager.op_info(op.type).no_need_buffer_vars

        values = {n for op in walk.ops for n in reads(op, program, unread)}
        for name in sorted(values - local - saved):
            written = name in walk.versions.writers
            why = f"{desc.type} reads variable {name!r}"
            self.outer.versions.require(self.index, name, written, why)
        for name, wholly in walk.versions.undone().items():
            if name in local:
                continue
            if not wholly:
                raise InvalidArgumentError(
                    f"op {self.op.type}: block {self.inner.idx} changes variable {name!r} in place by several ops, not "
                    "all of which a gradient op can undo; use a variable for each"
                )
            self.outer.versions.restored(name, self.index)


def differentiate_block(
    outer: Backward, op: OpDesc, index: int, grad: GradOp, desc: OpDesc, arrived: Mapping[str, str]
) -> bool:
    """Add the gradient of an op with a block.

    Args:
        outer: The backward walk over the block that contains the op.
        op: The forward op.
        index: Its position in the block.
        grad: Its symbolic gradient op.
        desc: The desc of the gradient op, which is completed and added.
        arrived: Gradients of the op's outputs that have arrived.

    Returns:
        False when the gradient op has no block; then nothing is done.
    """
    if grad.block is None:
        return False
    _BlockGradient(outer, op, index, grad, grad.block, arrived).run(desc)
    return True


def _only_block(op: OpDesc) -> tuple[str, int]:
    """(attribute, index) of the op's block."""
    blocks = op.block_attrs()
    if len(blocks) != 1 or any(len(indices) != 1 for indices in blocks.values()):
        raise NotDifferentiableError(f"op {op.type} has blocks {blocks}; only ops with one block have gradients")
    attr, (inner,) = next(iter(blocks.items()))
    return attr, inner


def _names(op: OpDesc, slots: Sequence[str]) -> list[str]:
    return [n for slot in slots for n in op.inputs.get(slot, ()) if n != EMPTY_VAR]


def _kind(block: BlockDesc, name: str) -> VarType | None:
    var = block.find_var_recursive(name)
    return None if var is None else var.type
