"""The backward pass over the ops of one block: names of gradients, and partial ones that are summed."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from oprack.autodiff.appender import OpRole
from oprack.autodiff.blocks import differentiate_block
from oprack.autodiff.path import influenced, inputs_of, outputs_of, path_to, route
from oprack.autodiff.versions import Versions
from oprack.desc import BlockDesc, OpDesc, VarDesc
from oprack.errors import NotDifferentiableError
from oprack.op import GradOp
from oprack.op.desc_rules import grad_name, grad_op_desc, infer_op, make_grad_ops, read_outputs
from oprack.op.info import OpInfo
from oprack.packs.index import gradient_info
from oprack.packs.manager import PackManager
from oprack.python.records import dataclass
from oprack.types import EMPTY_VAR, AttrType


class GradNames:
    """Gives each variable's gradient a name, and a number where an earlier pass has taken the name.

    Args:
        taken: Names of the block that the gradient ops go to, as it was before the pass.
    """

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = frozenset(taken)
        self._names: dict[str, str] = {}
        self._variables: dict[str, str] = {}

    def of(self, var: str) -> str:
        """Name of the gradient of `var`, the same whenever it is asked for."""
        found = self._names.get(var)
        if found is None:
            found = self._names[var] = self.free(grad_name(var))
            self._variables[found] = var
        return found

    def free(self, name: str) -> str:
        """`name`, or with a number when an earlier pass has it."""
        found, n = name, 0
        while found in self._taken:
            n += 1
            found = f"{name}_{n}"
        return found

    def variable(self, name: str) -> str | None:
        """The variable whose gradient has this name; None for any other name."""
        return self._variables.get(name)


@dataclass
class _Writer:
    """The writer of a partial gradient: position `index` of an output slot of a gradient op, or None for a seed."""

    op: OpDesc | None
    slot: str
    index: int
    name: str

    def rename(self, name: str) -> None:
        if self.op is not None:
            self.op.outputs[self.slot][self.index] = name
            self.name = name


@dataclass
class Partials:
    """Partial gradients that are not summed yet, by variable.

    Attributes:
        block_idx: Index of the block, which is part of the names of partials that are renamed.
    """

    block_idx: int
    manager: PackManager
    _waiting: dict[str, list[_Writer]] = field(default_factory=dict)

    def start(self, var: str, name: str) -> None:
        """Register a gradient of `var` that exists already, the start of the backward pass."""
        self._waiting.setdefault(var, []).append(_Writer(None, "", 0, name))

    def add(self, var: str, op: OpDesc, slot: str, index: int) -> None:
        """Register a partial gradient of `var`: output `index` of a slot of gradient op `op`."""
        self._waiting.setdefault(var, []).append(_Writer(op, slot, index, op.outputs[slot][index]))

    def has(self, var: str) -> bool:
        return bool(self._waiting.get(var))

    def drop(self, var: str) -> None:
        """Discard the partial gradients of `var`: its value depends on nothing whose gradient is needed."""
        self._waiting.pop(var, None)

    def take(self, var: str, total: str) -> tuple[str | None, OpDesc | None]:
        """Remove the partial gradients of `var` and return how to get their sum.

        Several partials are renamed to `<total>@RENAME@block<b>@<i>`, as in Fluid.

        Returns:
            (name of the gradient, op that sums the partials; None for a single one); (None, None) without any.
        """
        writers = self._waiting.pop(var, [])
        if not writers:
            return None, None
        if len(writers) == 1:
            return writers[0].name, None
        # Renamed only now, as most variables have a single reader, whose gradient keeps its name.
        for i, writer in enumerate(writers):
            writer.rename(f"{total}@RENAME@block{self.block_idx}@{i}")
        op_type = self.manager.op_for("sum_of_all")
        return total, OpDesc(op_type, {"X": [w.name for w in writers]}, {"Out": [total]}, {"use_mkldnn": False})


class LostGradientWarning(UserWarning):
    """A gradient arrives at an output of an op from which none flows back to the op's inputs."""


class Backward:
    """One backward pass over the ops of a block.

    Args:
        block: Block of the forward ops.
        target: Where gradient ops go, the block itself unless it is a sub-block.
        no_grad: Variables through which nothing flows.
    """

    def __init__(
        self, block: BlockDesc, no_grad: Collection[str], manager: PackManager, target: BlockDesc | None = None
    ) -> None:
        self.block, self.manager = block, manager
        self.target = target or block
        self.is_inner = target is not None
        self.no_grad = set(no_grad)
        self.forward = list(block.ops)
        self.ops: list[OpDesc] = []
        self.versions = Versions(block, manager, self.ops)
        self.needed: set[str] = set()
        self.wanted: set[str] = set()
        self.kinds: list[tuple[OpDesc, str, int, VarDesc]] = []
        """(gradient op, output slot, position, variable whose VarType that output has)"""
        self._partials = Partials(self.target.idx, manager)
        # a gradient block is new, so that no name is taken there
        self._names = GradNames(() if self.is_inner else self.target.vars)
        self._from_outside: set[str] = set()
        self._passed: dict[str, str] = {}
        self._copies: dict[str, str] = {}

    # Names ------------------------------------------------------------------------------------------------------------
    def name_of(self, var: str) -> str:
        """Name of the gradient of `var` in this pass; an earlier pass's is not overwritten."""
        return self._names.of(var)

    def seed(self, var: str, name: str) -> None:
        """Start from `name`, a gradient of `var` that exists before the pass."""
        self._partials.start(var, name)

    def inside(self, block: BlockDesc, target: BlockDesc) -> Backward:
        """The pass over a sub-block, whose gradient ops go to block `target`."""
        return Backward(block, self.no_grad, self.manager, target)

    def may_hold_older(self, var: str, index: int) -> bool:
        """Whether `var` may hold a value of interest before op `index`."""
        if var not in self.needed:
            return False
        return var in self._from_outside or self.versions.writers.get(var, [index])[0] < index

    # The walk ---------------------------------------------------------------------------------------------------------
    def run(self, targets: Sequence[str], wanted: Collection[str]) -> dict[str, str]:
        """Walk back from `targets`, whose gradients are seeds; returns variable -> gradient of those of `wanted`."""
        self.wanted = set(wanted)
        self._from_outside = self.wanted | (set(targets) if self.is_inner else set())
        self.needed = influenced(self.block, self.forward, wanted, self.no_grad)
        path, _ = path_to(self.forward, targets, self.needed, self.partial_outputs)
        on_path = {id(op) for op in path}
        for index in range(len(self.forward) - 1, -1, -1):
            op = self.forward[index]
            if id(op) in on_path:
                self._differentiate(op, index, targets)
            else:  # what waits for its outputs depends on nothing of interest
                for var in outputs_of(op):
                    if var in wanted:
                        self._arrived(var, False)
                    self._partials.drop(var)
            if self.is_inner:
                self.versions.undo_in_step(index)
        found = {}
        for var in wanted:
            name = self._copies.get(var) or self.pending_grad(var) or self._passed.get(var)
            if name is not None:
                found[var] = name
        return found

    def pending_grad(self, var: str) -> str | None:
        """The gradient, not summed yet, of what a variable held before the block; None when there is none."""
        return self._total(var)

    def partial_outputs(self, op: OpDesc) -> set[str]:
        """Outputs of which the op may leave a part as it was, or everything when its block does not run."""
        info = self.manager.op_info(op.type)
        kept: set[str] = set()
        for grad in make_grad_ops(info, op, (), op.outputs) if info.grad_op_maker is not None else ():
            slots = [ref.slot for ref in grad.outputs.values() if ref.role == "output_grad"]
            if grad.block is not None and grad.block.keeps:
                slots.append(grad.block.out_slot)
            kept.update(n for slot in slots for n in op.outputs.get(slot, ()) if n != EMPTY_VAR)
        return kept

    def _total(self, var: str) -> str | None:
        name, add = self._partials.take(var, self.name_of(var))
        if add is not None:
            self.ops.append(add)
        return name

    def _own_total(self, var: str) -> str | None:
        """As _total, but of this pass, so that it may be changed in place."""
        name = self._total(var)
        if name is None or name == self.name_of(var):
            return name
        self.ops.append(self._copy(name, self.name_of(var)))
        return self.name_of(var)

    def _copy(self, source: str, target: str) -> OpDesc:
        return OpDesc(self.manager.op_for("copy"), {"X": [source]}, {"Out": [target]})

    def _differentiate(self, op: OpDesc, index: int, targets: Sequence[str]) -> None:
        """Add the gradient ops of op number `index`; what waits for its outputs has arrived, and goes on."""
        info = self.manager.op_info(op.type)
        if info.grad_op_maker is None:
            self._require_no_gradient(op, info, targets)
            return
        held = self._held_slots(op, index)
        made = make_grad_ops(info, op, (), held)
        changed = _changed_gradients(made, op)
        if not (arrived := self._arrivals(op, changed)):
            return
        # asked again, now that all gradients of later ops have arrived: a gradient op may add to what is there so far
        slots = [s for s, names in op.inputs.items() if len(names) == 1 and self._partials.has(names[0])]
        made = make_grad_ops(info, op, slots, held) if slots else made
        grads = [g for g in made if not g.restores]
        self._warn_of_lost(op, info, grads, arrived)
        for g in grads:
            gradient_info(self.manager, g.type, op.type)
        totals = self._add(grads, op, index, arrived)
        for g in made:
            for x, out in g.same.items():
                self._pass_on(op, dict(zip(op.inputs[x], op.outputs[out], strict=True)), arrived)
        for var in totals:
            self.seed(var, self.name_of(var))
        for var in changed & arrived.keys():
            self.seed(var, arrived[var])

    def _warn_of_lost(self, op: OpDesc, info: OpInfo, grads: Sequence[GradOp], arrived: Mapping[str, str]) -> None:
        """Say so where a gradient arrives at an output that no gradient op of an op differentiates."""
        read = read_outputs(grads)
        for slot, names in op.outputs.items() if grads else ():
            lost = [n for n in names if n in arrived]
            if slot in read or not lost or any(n in arrived for s in read for n in op.outputs.get(s, ()) if n in lost):
                continue
            others = ", ".join(sorted(read.intersection(op.outputs))) or "none"
            warnings.warn(
                f"op {op.type} (pack {info.pack}): a gradient arrives at output {slot} ({lost[0]!r}), but none "
                f"flows back from it, only from {others}; the gradients of its inputs leave this part out. If that is "
                f"meant, name {lost[0]!r} in no_grad_set or set its stop_gradient; else compute what depends on it "
                "from other ops",
                LostGradientWarning,
                stacklevel=5,
            )

    def _held_slots(self, op: OpDesc, index: int) -> list[str]:
        """Output slots with a variable that may hold a value from before the op."""
        return [s for s, names in op.outputs.items() if any(self.may_hold_older(n, index) for n in names)]

    def _arrivals(self, op: OpDesc, changed: Collection[str]) -> dict[str, str]:
        """Gradients of the op's outputs that have come, by output. changed: outputs whose gradients the op writes."""
        found = {var: self._arrived(var, var in changed) for var in dict.fromkeys(outputs_of(op))}
        return {var: name for var, name in found.items() if name}

    def _add(self, grads: Sequence[GradOp], op: OpDesc, index: int, arrived: Mapping[str, str]) -> list[str]:
        """Add gradient ops of an op; returns the variables whose gradient so far they took and changed in place."""
        shared = {ref.slot for g in grads for ref in g.inputs.values() if ref.role == "input_grad"}
        totals = [n for slot in shared for n in op.inputs[slot] if self._own_total(n) is not None]
        for grad, desc in self._descs(grads, op, index):
            if not differentiate_block(self, op, index, grad, desc, arrived):
                self.versions.check(index, grad, desc)
                self._bind(desc, op, arrived)
                self.emit(desc, op, totals)
        return totals

    def _require_no_gradient(self, op: OpDesc, info: OpInfo, targets: Sequence[str]) -> None:
        """Raise NotDifferentiableError when a gradient waits for an op that has none."""
        if any(self._partials.has(var) for var in outputs_of(op)):
            raise NotDifferentiableError(
                f"op {op.type} (pack {info.pack}) has no gradient, but lies on the path to {', '.join(targets)}: "
                f"{route(self.forward, op, targets)}; give it a make_grad (`empty_grad` if nothing should flow back), "
                f"or name its inputs {', '.join(inputs_of(op))} in no_grad_set"
            )

    def _pass_on(self, op: OpDesc, pairs: Mapping[str, str], arrived: Mapping[str, str]) -> None:
        """Inputs (of `pairs`, input -> output) whose gradient is that of an output."""
        for var, out in pairs.items():
            if var not in self.needed or out not in arrived:
                continue
            if arrived[out] == self.name_of(var):
                self.seed(var, arrived[out])
            else:
                self.emit(self._copy(arrived[out], self.name_of(var)), op)

    def _arrived(self, var: str, changes: bool) -> str | None:
        """The gradient of an output of the op in turn. changes: its gradient op changes it in place."""
        name = self._own_total(var) if changes else self._total(var)
        if name is not None and var in self.wanted and not self.is_inner:  # asked for although an op writes it
            if not changes:
                self._passed[var] = name
            elif var not in self._copies:
                self._copies[var] = self._names.free(f"{name}@COPY")
                self.ops.append(self._copy(name, self._copies[var]))
        return name

    def _descs(self, grads: Sequence[GradOp], op: OpDesc, index: int) -> list[tuple[GradOp, OpDesc]]:
        """The gradient ops with names, without those that compute nothing that anybody asks for."""
        info = self.manager.op_info(op.type)
        unneeded = {n for n in inputs_of(op) if n not in self.needed}

        def temporary(name: str) -> str:
            return self._names.free(f"{outputs_of(op)[0]}@{name}@block{self.target.idx}@{index}")

        found = []
        read: set[str] = set()
        for grad in reversed(grads):
            desc = grad_op_desc(grad, info, op, unneeded, self.name_of, temporary)
            made = {ref.slot: n for s, ref in grad.outputs.items() if ref.role == "temporary" for n in desc.outputs[s]}
            lasting = [n for n in outputs_of(desc) if n not in made.values()]
            if lasting or not read.isdisjoint(made.values()) or grad.block is not None:
                found.append((grad, desc))
                read.update(desc.input_arg_names())
        return found[::-1]

    # Gradients in and out ---------------------------------------------------------------------------------------------
    def _bind(self, desc: OpDesc, op: OpDesc, arrived: Mapping[str, str]) -> None:
        """Gradients that go by another name are renamed; those that did not arrive are zeros, or left out."""
        proto = self.manager.op_info(desc.type).proto
        absent = {self.name_of(v): v for v in outputs_of(op) if v not in arrived}
        found = {self.name_of(v): n for v, n in arrived.items()}
        for slot, names in list(desc.inputs.items()):
            names = [found.get(n, n) for n in names]
            missing = [n for n in names if n in absent]
            if missing and len(missing) == len(names) and slot in proto.inputs and proto.inputs[slot].dispensable:
                del desc.inputs[slot]
                continue
            for n in dict.fromkeys(missing):
                self.zeros(absent[n], n)
            desc.inputs[slot] = names

    def zeros(self, var: str, gradient: str) -> None:
        """Let the gradient of a variable be zero."""
        self.ops.append(OpDesc(self.manager.op_for("zeros_like"), {"X": [var]}, {"Out": [gradient]}))

    def emit(self, desc: OpDesc, op: OpDesc, changed: Collection[str] = ()) -> None:
        """Add a gradient op of `op`. What it computes waits to be summed, unless it changes it (of these variables)."""
        self.ops.append(desc)
        sources = set(inputs_of(op))
        for slot, names in desc.outputs.items():
            for i, name in enumerate(names):
                var = self._names.variable(name)
                if name != EMPTY_VAR and var in sources and var not in changed:
                    self._partials.add(var, desc, slot, i)

    # Adding the ops ---------------------------------------------------------------------------------------------------
    def finish(self, parameters: Mapping[str, str] | None = None) -> None:
        """Append the gradient ops to the target block, with their variables, shapes and dtypes, and roles."""
        writer = {}
        kinds: dict[int, list[Any]] = {}
        for op, *rest in self.kinds:
            kinds.setdefault(id(op), []).append(rest)
        for op in self.ops:
            op.set_attr("op_role", int(OpRole.BACKWARD) | int(op.attrs.get("op_role", 0)), AttrType.INT)
            for n in outputs_of(op):
                self.declare(n)
                writer[n] = op
            self.target.append_op(op)
            infer_op(op, self.target, self.manager.op_info(op.type))
            for slot, i, like in kinds.get(id(op), ()):
                self.target.var(op.outputs[slot][i]).type = like.type
        for parameter, gradient in (parameters or {}).items():
            op = writer[gradient]
            pairs = [*op.attrs.get("op_role_var", []), parameter, gradient]
            op.set_attr("op_role_var", pairs, AttrType.STRINGS)

    def declare(self, name: str, var: str | None = None) -> None:
        """A gradient looks like its variable until the gradient op's own rules say more."""
        if name in self.target.vars:
            return
        if var is None and name in self.versions.writers and self.target.find_var_recursive(name) is not None:
            return  # a forward variable that is brought back
        var = var or self._names.variable(name) or self._names.variable(name.split("@RENAME@")[0].split("@COPY")[0])
        source = self.block.find_var_recursive(var) if var else None
        if source is None:
            self.target.create_var(name)
            return
        self.target.create_var(
            name, type=source.type, dtype=source.dtype, shape=source.shape, lod_level=source.lod_level
        )


def _changed_gradients(grads: Iterable[GradOp], op: OpDesc) -> set[str]:
    """Outputs of the op whose gradients its gradient ops write as well as read: what is left of them flows on."""
    return {n for g in grads for r in g.outputs.values() if r.role == "output_grad" for n in op.outputs[r.slot]}
