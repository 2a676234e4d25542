"""append_backward and gradients: the gradient ops of a block, last op first (Fluid's backward.py, in one walk)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from oprack.autodiff.partials import Partials
from oprack.autodiff.path import differentiable, influenced, inputs_of, outputs_of, path_to, route
from oprack.autodiff.roles import OpRole
from oprack.desc import BlockDesc, OpDesc
from oprack.errors import InvalidArgumentError, NotDifferentiableError, NotFoundError, PreconditionNotMetError
from oprack.op.desc_infer import infer_op
from oprack.op.grad_desc import grad_name, grad_op_descs
from oprack.packs.manager import PackManager, default_manager
from oprack.types import EMPTY_VAR, GRAD_SUFFIX, AttrType, VarType


class Backward:
    """One backward pass over the ops of a block.

    block: holds the forward ops. target: where gradient ops go, the block itself unless it is a sub-block.
    no_grad: variables through which nothing flows.
    """

    def __init__(
        self, block: BlockDesc, no_grad: Collection[str], manager: PackManager, target: BlockDesc | None = None
    ) -> None:
        self.block, self.manager = block, manager
        self.target = target or block
        self.no_grad = set(no_grad)
        self.ops: list[OpDesc] = []
        self._partials = Partials(self.target.idx)
        self._names: dict[str, str] = {}
        self._vars: dict[str, str] = {}
        self._last_writer: dict[str, int] = {}
        self._taken = set(self.target.vars) if target is None else set()

    # Names ------------------------------------------------------------------------------------------------------------
    def name_of(self, var: str) -> str:
        """Name of the gradient of `var` in this pass; an earlier pass's is not overwritten."""
        found = self._names.get(var)
        if found is None:
            found, n = grad_name(var), 0
            while found in self._taken:
                n += 1
                found = f"{grad_name(var)}_{n}"
            self._names[var] = found
            self._vars[found] = var
        return found

    def give(self, var: str, name: str) -> None:
        """Start from gradient `name` of `var`."""
        self._partials.give(var, name)

    # The walk ---------------------------------------------------------------------------------------------------------
    def run(self, ops: Sequence[OpDesc], targets: Sequence[str], wanted: Collection[str]) -> dict[str, str]:
        """Walk back from `targets`, whose gradients were given; returns variable -> gradient of those of `wanted`."""
        needed = influenced(self.block, ops, wanted, self.no_grad)
        self._last_writer = {n: i for i, op in enumerate(ops) for n in outputs_of(op)}
        for op in reversed(path_to(ops, targets, needed)):
            self._differentiate(op, ops, needed, targets)
        found = {}
        for var in wanted:
            name = self._total(var)
            if name is not None:
                found[var] = name
        return found

    def _total(self, var: str) -> str | None:
        name, add = self._partials.take(var, self.name_of(var))
        if add is not None:
            self.ops.append(add)
        return name

    def _differentiate(self, op: OpDesc, ops: Sequence[OpDesc], needed: set[str], targets: Sequence[str]) -> None:
        info = self.manager.op_info(op.type)
        arrived = {var: name for var in dict.fromkeys(outputs_of(op)) if (name := self._total(var)) is not None}
        if not arrived:
            return
        if info.grad_op_maker is None:
            raise NotDifferentiableError(
                f"op {op.type} (pack {info.pack}) has no gradient, but lies on the path to {', '.join(targets)}: "
                f"{route(ops, op, targets)}; give it a make_grad (`empty_grad` if nothing should flow back), or name "
                f"its inputs {', '.join(inputs_of(op))} in no_grad_set"
            )
        unneeded = {n for n in inputs_of(op) if n not in needed}
        descs = grad_op_descs(info, op, unneeded, self.name_of)
        for desc in descs:
            if any(True for _ in op.sub_blocks()):
                self._differentiate_blocks(op, desc, needed, arrived)
            elif self.target is self.block:
                self._check_overwritten(op, desc, ops)
            self._bind_arrived(op, desc, arrived)
            self.ops.append(desc)
            self._wait(op, desc)

    def _check_overwritten(self, op: OpDesc, desc: OpDesc, ops: Sequence[OpDesc]) -> None:
        """A gradient op reads forward values when the forward pass is over: they must still be those that `op` saw."""
        unread = self.manager.op_info(desc.type).no_need_buffer_vars
        mine = next(i for i, o in enumerate(ops) if o is op)
        seen = {*inputs_of(op), *outputs_of(op)}
        for slot, names in desc.inputs.items():
            for n in names:
                j = self._last_writer.get(n, -1)
                if n in seen and slot not in unread and j > mine:
                    raise InvalidArgumentError(
                        f"op {op.type}: its gradient {desc.type} needs {slot}, variable {n!r}, but op {ops[j].type} "
                        f"(number {j} of the block) overwrites it in place afterwards; let that op write to a variable "
                        "of its own, for example through layers.assign"
                    )

    def _bind_arrived(self, op: OpDesc, desc: OpDesc, arrived: Mapping[str, str]) -> None:
        """Gradients that arrived under another name are renamed; those that did not arrive are zeros, or left out."""
        proto = self.manager.op_info(desc.type).proto
        absent = {self.name_of(v): v for v in outputs_of(op) if v not in arrived}
        for slot, names in list(desc.inputs.items()):
            names = [arrived.get(self._vars.get(n, ""), n) if n in self._vars else n for n in names]
            missing = [n for n in names if n in absent]
            if missing and len(missing) == len(names) and slot in proto.inputs and proto.inputs[slot].dispensable:
                del desc.inputs[slot]
                continue
            for n in dict.fromkeys(missing):
                self.ops.append(OpDesc("fill_zeros_like", {"X": [absent[n]]}, {"Out": [n]}))
            desc.inputs[slot] = names

    def _wait(self, op: OpDesc, desc: OpDesc) -> None:
        sources = set(inputs_of(op))
        for slot, names in desc.outputs.items():
            for i, name in enumerate(names):
                var = self._vars.get(name)
                if name != EMPTY_VAR and var in sources:
                    self._partials.add(var, desc, slot, i)

    # Ops with blocks --------------------------------------------------------------------------------------------------
    def _differentiate_blocks(self, op: OpDesc, desc: OpDesc, needed: set[str], arrived: dict[str, str]) -> None:
        """Give the gradient op a block with the gradients of the forward op's block (while, conditional_block ...).

        Inside, gradients keep the plain names; the gradient op hands over between inside and outside by these.
        """
        for attr, indices in op.block_attrs().items():
            inner = self.block.program.blocks[indices[0]]
            grad_block = self.block.program.append_block(self.target, inner)
            walk = Backward(inner, self.no_grad, self.manager, grad_block)
            reads = {n for o in inner.ops for n in inputs_of(o)}
            outs = [n for n in dict.fromkeys(outputs_of(op)) if differentiable(self.block, n) and n not in self.no_grad]
            # what one round hands to the next has a gradient, also when nobody reads it after the last round
            starts = [n for n in outs if n in arrived or (n in reads and n in inputs_of(op))]
            for var in starts:
                walk.give(var, grad_name(var))
                # handed in by the gradient op, so an outer variable, unless an earlier pass has that name
                (self if self.name_of(var) == grad_name(var) else walk)._declare(grad_name(var), var)
            wanted = [
                n
                for n in dict.fromkeys(inputs_of(op))
                if n not in self.no_grad and differentiable(self.block, n) and (n in needed or n in starts)
            ]
            found = walk.run(inner.ops, starts, wanted)
            walk.finish()
            desc.set_attr(attr, grad_block.idx, AttrType.BLOCK)
            self._bind_block(op, desc, starts, found)

    def _bind_block(self, op: OpDesc, desc: OpDesc, starts: Sequence[str], found: Mapping[str, str]) -> None:
        proto = self.manager.op_info(desc.type).proto
        out_grads = {self.name_of(n) for n in outputs_of(op)}
        for slot, names in list(desc.inputs.items()):
            if names and all(n in out_grads for n in names):
                desc.inputs[slot] = [self.name_of(n) for n in starts]
        if "original_output_grad" in proto.attrs:
            desc.set_attr("original_output_grad", [grad_name(n) for n in starts], AttrType.STRINGS)
        for slot in list(desc.outputs):
            source = slot.removesuffix(GRAD_SUFFIX)
            if source in op.inputs:
                desc.outputs[slot] = [self.name_of(n) if n in found else EMPTY_VAR for n in op.inputs[source]]

    # Adding the ops ---------------------------------------------------------------------------------------------------
    def finish(self, parameters: Mapping[str, str] | None = None) -> None:
        """Append the gradient ops to the target block, with their variables, shapes and dtypes, and roles."""
        writer = {}
        for op in self.ops:
            op.set_attr("op_role", int(OpRole.BACKWARD) | int(op.attrs.get("op_role", 0)), AttrType.INT)
            for n in outputs_of(op):
                self._declare(n)
                writer[n] = op
            self.target.append_op(op)
            infer_op(op, self.target, self.manager.op_info(op.type))
        for parameter, gradient in (parameters or {}).items():
            op = writer[gradient]
            pairs = [*op.attrs.get("op_role_var", []), parameter, gradient]
            op.set_attr("op_role_var", pairs, AttrType.STRINGS)

    def _declare(self, name: str, var: str | None = None) -> None:
        """A gradient looks like its variable until the gradient op's own rules say more."""
        if name in self.target.vars:
            return
        var = var or self._vars.get(name) or self._vars.get(name.split("@RENAME@")[0])
        source = self.block.find_var_recursive(var) if var else None
        if source is None:
            self.target.create_var(name)
            return
        self.target.create_var(
            name, type=source.type, dtype=source.dtype, shape=source.shape, lod_level=source.lod_level
        )


def _names(values: Any) -> list[str]:
    if values is None:
        return []
    if isinstance(values, str) or not isinstance(values, Sequence | Collection):
        values = [values]
    return [v if isinstance(v, str) else v.name for v in values]


def _block_of(value: Any, block: BlockDesc | None) -> BlockDesc:
    if block is not None:
        return block
    owner = getattr(value, "block", None)
    if owner is None:
        raise InvalidArgumentError(
            f"{value!r} does not say which program it is of; pass a variable of a program, or "
            "block=program.global_block()"
        )
    return getattr(owner, "desc", owner)  # type: ignore[no-any-return]


def _stopped(block: BlockDesc, no_grad_set: Any) -> set[str]:
    """no_grad_set and every variable with stop_gradient, in the block and all others of the program."""
    stopped = {v.name for b in block.program.blocks for v in b.vars.values() if v.stop_gradient}
    return stopped | set(_names(no_grad_set))


def append_backward(
    loss: Any,
    parameter_list: Any = None,
    no_grad_set: Any = None,
    *,
    block: BlockDesc | None = None,
    manager: PackManager | None = None,
) -> list[tuple[str, str]]:
    """Append the gradient ops of `loss` to its block; returns (parameter, gradient) names, in order of the parameters.

    loss: a variable of one element (or its name, with `block`). parameter_list: variables or names; default: every
    parameter of the program that may be trained. no_grad_set: variables through which nothing flows.
    Raises InvalidArgumentError when the loss is not one floating element, NotDifferentiableError with the path when an
    op has no gradient, PreconditionNotMetError when no parameter reaches the loss.
    """
    where, name = _block_of(loss, block), _names(loss)[0]
    var = where.var(name)
    if var.type is not VarType.LOD_TENSOR or any(d != 1 for d in var.shape or ()) or not differentiable(where, name):
        raise InvalidArgumentError(
            f"append_backward: loss {name!r} is {var.dtype_name()}{list(var.shape or ())}; expected one floating "
            "element, so reduce it first, for example with layers.mean(loss)"
        )
    no_grad = _stopped(where, no_grad_set)
    root = where.program.blocks[0]
    trained = _names(parameter_list) or [v.name for v in root.vars.values() if v.is_parameter and not v.stop_gradient]
    no_grad -= set(_names(parameter_list))
    unknown = [p for p in trained if where.find_var_recursive(p) is None]
    if unknown:
        raise NotFoundError(
            f"append_backward: {', '.join(map(repr, unknown))} is not a variable of the loss's program; a parameter of "
            "another program has no gradient here"
        )
    if not trained:
        raise PreconditionNotMetError(
            f"append_backward: the program of {name!r} has no parameter that may be trained; create one, or pass "
            "parameter_list"
        )
    walk = Backward(where, no_grad, manager or default_manager())
    forward = list(where.ops)
    if not any(name in outputs_of(op) for op in forward):
        raise PreconditionNotMetError(f"append_backward: no op of block {where.idx} writes the loss {name!r}")
    for op in reversed(forward):
        if name in outputs_of(op):
            op.set_attr("op_role", int(op.attrs.get("op_role", 0)) | int(OpRole.LOSS), AttrType.INT)
            break
    seed = walk.name_of(name)
    fill = OpDesc("fill_constant", {}, {"Out": [seed]})
    fill.set_attr("shape", list(var.shape or ()), AttrType.LONGS)
    fill.set_attr("dtype", int(var.dtype or VarType.FP32), AttrType.INT)
    fill.set_attr("value", 1.0, AttrType.FLOAT)
    fill.set_attr("op_role", int(OpRole.LOSS), AttrType.INT)
    walk.ops.append(fill)
    walk.give(name, seed)
    found = walk.run(forward, [name], trained)
    if not found:
        raise PreconditionNotMetError(
            f"append_backward: loss {name!r} depends on none of the parameters {', '.join(trained)}; check that the "
            "layers between them are not cut by stop_gradient or no_grad_set"
        )
    walk.finish(found)
    return [(p, found[p]) for p in trained if p in found]


def gradients(
    targets: Any,
    inputs: Any,
    target_gradients: Any = None,
    no_grad_set: Any = None,
    *,
    block: BlockDesc | None = None,
    manager: PackManager | None = None,
) -> list[str | None]:
    """Append the gradients of sum(targets * target_gradients) with respect to `inputs`; returns their names.

    targets, inputs: variables or names (with `block`). target_gradients: of the targets' shapes; None = ones.
    None is returned for an input that the targets do not depend on. May be called on the result of an earlier call.
    Raises NotDifferentiableError with the path when an op has no gradient, InvalidArgumentError for unequal lists.
    """
    target_names, input_names, given = _names(targets), _names(inputs), _names(target_gradients)
    where = _block_of(targets[0] if isinstance(targets, list | tuple) else targets, block)
    if given and len(given) != len(target_names):
        raise InvalidArgumentError(
            f"gradients: {len(target_names)} targets but {len(given)} target_gradients; expected one for each, or None"
        )
    for name in (*target_names, *input_names, *given):
        where.var(name)
    no_grad = _stopped(where, no_grad_set) - set(input_names)
    walk = Backward(where, no_grad, manager or default_manager())
    forward = list(where.ops)
    for i, name in enumerate(target_names):
        if given:
            walk.give(name, given[i])
            continue
        seed = walk.name_of(name)
        ones = OpDesc("fill_any_like", {"X": [name]}, {"Out": [seed]})
        ones.set_attr("value", 1.0, AttrType.FLOAT)
        walk.ops.append(ones)
        walk.give(name, seed)
    found = walk.run(forward, target_names, input_names)
    walk.finish()
    return [found.get(n) for n in input_names]
