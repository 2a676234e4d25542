"""Gradients of ops with a block: a gradient block, and the gradient op that hands gradients in and out of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from oprack.autodiff.path import differentiable, influenced, path_to
from oprack.desc import BlockDesc, OpDesc
from oprack.desc.reach import reads
from oprack.errors import InvalidArgumentError, NotDifferentiableError
from oprack.op import GradBlock, GradOp
from oprack.op.grad_desc import grad_name
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
        """Pairs of (what a round writes, what the next one reads of it), where gradients flow from round to round."""
        carried = [(w, r) for w, r in self.rules.carried if self._flows(w) and self._flows(r)]
        # a block that repeats and works on outer variables carries them from round to round under their own names
        if self.rules.repeats and not self.rules.shadows_outer:
            carried += [(n, n) for n in self.outputs if n in self.inputs]
        return carried

    def _flows(self, name: str) -> bool:
        return name not in self.outer.no_grad and differentiable(self.inner, name)

    def sources(self) -> tuple[list[str], set[str]]:
        """(variables of the block whose gradients are of interest, all that depend on them), also round by round."""
        first = dict(zip((r for _, r in self.rules.carried), self.op.inputs.get(self.rules.initial, ()), strict=False))
        found = [n for n in self.inputs if n in self.outer.needed]
        found += [r for _, r in self.carried if first.get(r) in self.outer.needed]
        while True:
            # What a round computes flows into the next one, whose results may be reached only then.
            reached = influenced(self.inner, self.inner.ops, found, self.outer.no_grad)
            more = [r for w, r in self.carried if w in reached and r not in found]
            if not more:
                return found, reached
            found += more

    def starts(self, walk: Backward, reached: Collection[str]) -> list[str]:
        """Variables of the block from whose gradients it starts: those that arrived, and what later rounds read."""
        found = [n for n in self.outputs if n in self.arrived]
        while True:
            relevant = path_to(self.inner.ops, found, reached, walk.partial_outputs)[1]
            more = [w for w, r in self.carried if r in relevant and w in reached and w not in found]
            if not more:
                return found
            found += more

    def run(self, desc: OpDesc) -> None:
        """Write the gradient block and add gradient op `desc`."""
        outer, rules = self.outer, self.rules
        grad_block = outer.block.program.append_block(outer.target, self.inner)
        walk = outer.inside(self.inner, grad_block)
        sources, reached = self.sources()
        starts = self.starts(walk, reached)
        self._tell_versions_of_repeats(walk)
        for var in starts:
            walk.seed(var, grad_name(var))
            # a block that runs at most once finds what comes in under its name outside: Paddle's looks for it there
            outside = not rules.repeats and not rules.shadows_outer and outer.name_of(var) == grad_name(var)
            (outer if outside else walk).declare(grad_name(var), var)
        found = walk.run(starts, sources)
        for var in starts:
            flows_on = not rules.shadows_outer and (rules.repeats or var in self.inputs)
            if (
                flows_on and var not in found and walk.pending_grad(var) is None
            ):  # the block replaces all that it held before
                walk.zeros(var, grad_name(var))
                found[var] = grad_name(var)
        walk.finish()
        desc.set_attr(self.attr, grad_block.idx, AttrType.BLOCK)
        self._bind_inputs(desc, starts)
        self._bind_outputs(desc, found, grad_block)
        self._require_values(desc, walk, grad_block)
        outer.emit(desc, self._with_unchanged())

    def _with_unchanged(self) -> OpDesc:
        """The forward op as if it read the variables that may keep their values."""
        if not self.unchanged:
            return self.op
        op = self.op.clone()
        op.inputs[self.rules.keeps] = [*op.inputs.get(self.rules.keeps, []), *self.unchanged]
        return op

    def _bind_inputs(self, desc: OpDesc, starts: Sequence[str]) -> None:
        given = self.op.outputs.get(self.rules.out_slot, [])
        for slot, ref in self.grad.inputs.items():
            if ref.role != "output_grad":
                continue
            if not self.rules.names:
                desc.inputs[slot] = [self.arrived.get(n, EMPTY_VAR) if n in starts else EMPTY_VAR for n in given]
                continue
            listed = [n for n in dict.fromkeys(given) if n in starts]
            for n in listed:
                if n in self.arrived:
                    continue
                if _kind(self.inner, n) is VarType.LOD_TENSOR_ARRAY:  # zeros are read where an array holds nothing
                    self.outer.declare(self.outer.name_of(n), n)
                else:
                    self.outer.zeros(n, self.outer.name_of(n))
            desc.inputs[slot] = [self.arrived.get(n, self.outer.name_of(n)) for n in listed]
            desc.set_attr(self.rules.names, [grad_name(n) for n in listed], AttrType.STRINGS)

    def _bind_outputs(self, desc: OpDesc, found: Mapping[str, str], grad_block: BlockDesc) -> None:
        """Which gradients the op hands out: those of interest outside, and those that go from round to round."""
        going_round = {r for _, r in self.carried}
        for slot, ref in self.grad.outputs.items():
            outside = list(self.op.inputs.get(ref.slot, []))
            if ref.slot == self.rules.keeps:
                outside += self.unchanged
                self._read_unchanged(desc, ref.slot, outside)
            inside = [r for _, r in self.rules.carried] if ref.slot == self.rules.initial else outside
            names = []
            for i, (o, n) in enumerate(zip(outside, inside, strict=True)):
                wanted = n in found and (o in self.outer.needed or (o == n and n in going_round))
                names.append(self.outer.name_of(o) if wanted else EMPTY_VAR)
                var = grad_block.vars.get(grad_name(n))
                if wanted and var is not None and var.type is VarType.SELECTED_ROWS:
                    self.outer.kinds.append((desc, slot, i, var))
            desc.outputs[slot] = names

    def _read_unchanged(self, desc: OpDesc, slot: str, names: list[str]) -> None:
        """Let the gradient op read, in the slot of the forward op's input, the variables that may keep their values."""
        for own, ref in self.grad.inputs.items():
            if (ref.role, ref.slot) == ("input", slot):
                desc.inputs[own] = names

    # Forward values ---------------------------------------------------------------------------------------------------
    def _tell_versions_of_repeats(self, walk: Backward) -> None:
        if not self.rules.repeats:
            return
        own = set(self.inner.vars)
        if self.rules.shadows_outer:
            own |= {*self.outputs, *self.inputs, *(n for pair in self.rules.carried for n in pair)}
        shared = {n for n in walk.versions.writers if n not in own and not walk.versions.can_undo(n)}
        taken = _names(self.op, self.rules.in_slots)
        # Arrays of tensors keep what each round wrote, so no version of them has to be saved.
        arrays = {n for n in shared if _kind(self.inner, n) is VarType.LOD_TENSOR_ARRAY}
        walk.versions.repeats(shared, shared.intersection(taken) - arrays)

    def _require_values(self, desc: OpDesc, walk: Backward, grad_block: BlockDesc) -> None:
        """The gradient block reads outer variables when the outer backward pass has come to this op."""
        kept = walk.versions.from_start
        own = {*self.inner.vars, *grad_block.vars}
        program, manager = grad_block.program, self.outer.manager

        def unread(op: OpDesc) -> Collection[str]:
            return manager.op_info(op.type).no_need_buffer_vars

        found = {n for op in walk.ops for n in reads(op, program, unread)}
        for name in sorted(found - own - kept):
            written = name in walk.versions.writers
            why = f"{desc.type} reads variable {name!r}"
            self.outer.versions.require(self.index, name, written, why)
        for name, wholly in walk.versions.undone().items():
            if name in own:
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
    """Add gradient op `desc` of an op with a block, number `index` of the block that `outer` walks over.

    False, and nothing is done, when it has no block.

    Args:
        grad: The same in symbols.
        arrived: Gradients of its outputs that have arrived.
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
