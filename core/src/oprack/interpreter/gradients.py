"""The gradient ops of a recorded call: the symbols of its grad maker, resolved to what is saved and what flows in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from oprack.errors import NotDifferentiableError, PreconditionNotMetError
from oprack.interpreter.kinds import kind
from oprack.interpreter.op_expr import OpExpr
from oprack.op.grad import GradOp, SlotRef
from oprack.op.grad_desc import make_grad_ops
from oprack.packs.manager import default_manager
from oprack.tensor import LoDTensor
from oprack.types import EMPTY_VAR

if TYPE_CHECKING:
    from oprack.interpreter.node import Node
    from oprack.interpreter.trace import Trace

Source = tuple[str, Any]
"""("saved", position in node.saved), ("grad", position among the outputs), ("temporary", label) or ("none", None)."""


@dataclass(frozen=True)
class Step:
    """One gradient op. sources: by input slot. targets: by output slot, input of the forward op, a label, or None.

    exprs: by the numbers of inputs that flowed in.
    """

    grad: GradOp
    sources: dict[str, list[Source]]
    targets: dict[str, list[int | str | None]]
    exprs: dict[Any, OpExpr] = field(default_factory=dict)


class GradPlan:
    """How gradients of a call's inputs are computed from those of its outputs.

    wrt: arguments that want gradients. outputs: outputs that gradients flow into, by flat position. saved: what the
    gradient ops read of the call, ("in" or "out", position, whether the values are needed or shape and LoD suffice).
    """

    def __init__(self, trace: Trace, wrt: Sequence[int], visible: Sequence[int]) -> None:
        self.trace = trace
        self.wrt = [i for i in wrt if (k := trace.kinds[i]) is not None and k.differentiable]
        info = trace.expr.info
        self.differentiable = info.grad_op_maker is not None
        kinds = trace.outputs
        self.outputs = [j for j in visible if (k := kinds[j]) is not None and k.differentiable]
        self.saved: list[tuple[str, int, bool]] = []
        self.steps: list[Step] = []
        if self.differentiable:
            made = [g for g in make_grad_ops(info, trace.desc) if not g.restores]
            self._positions = {
                "in": _positions(trace.desc.inputs),
                "out": _positions(trace.desc.outputs),
            }
            self._build(made)

    @property
    def empty(self) -> bool:
        """Whether nothing flows back through the call, on purpose."""
        return not (self.wrt and self.outputs) or (self.differentiable and not self.steps)

    def _build(self, grads: Sequence[GradOp]) -> None:
        read: set[str] = set()
        for grad in reversed(grads):
            targets = {slot: self._targets(ref) for slot, ref in grad.outputs.items()}
            named = {t for ts in targets.values() for t in ts if isinstance(t, str)}
            if any(isinstance(t, int) for ts in targets.values() for t in ts) or not read.isdisjoint(named):
                info = default_manager().op_info(grad.type)
                sources = {
                    slot: found
                    for slot, ref in grad.inputs.items()
                    if (found := self._sources(ref, slot not in info.no_need_buffer_vars))
                }
                read.update(s[1] for ss in sources.values() for s in ss if s[0] == "temporary")
                self.steps.insert(0, Step(grad, sources, targets))

    def _flat(self, ref: SlotRef, side: str) -> list[int]:
        found = self._positions[side].get(ref.slot, [])
        return found if ref.index is None else found[ref.index : ref.index + 1]

    def _targets(self, ref: SlotRef) -> list[int | str | None]:
        if ref.role == "temporary":
            return [ref.slot]
        return [i if i in self.wrt else None for i in self._flat(ref, "in")]

    def _sources(self, ref: SlotRef, whole: bool) -> list[Source]:
        if ref.role == "temporary":
            return [("temporary", ref.slot)]
        if ref.role == "output_grad":
            return [
                ("grad", self.outputs.index(j)) if j in self.outputs else ("none", None) for j in self._flat(ref, "out")
            ]
        side = "in" if ref.role == "input" else "out"
        return [("saved", self._save(side, i, whole)) for i in self._flat(ref, side)]

    def _save(self, side: str, i: int, whole: bool) -> int:
        for k, (s, j, w) in enumerate(self.saved):
            if (s, j) == (side, i):
                if whole and not w:
                    self.saved[k] = (side, i, True)
                return k
        self.saved.append((side, i, whole))
        return len(self.saved) - 1

    # Backward ---------------------------------------------------------------------------------------------------------
    def run(self, node: Node, gradients: Sequence[Any], create_graph: bool) -> list[Any]:
        """Gradients of the arguments in `wrt`, tensors or None, from those of the outputs (None = nothing flows in)."""
        expr = self.trace.expr
        if not self.differentiable:
            raise NotDifferentiableError(
                f"op {expr.type} (pack {expr.info.pack}) has no gradient, but a gradient of its result is asked for; "
                "give it a make_grad (`empty_grad` if nothing should flow back), or detach() its inputs"
            )
        if node.saved is None:
            raise PreconditionNotMetError(
                f"backward runs a second time through op {expr.type}, whose saved tensors were let go of after the "
                "first; call backward(retain_graph=True) the first time"
            )
        saved = [self._restored(node, k) for k in range(len(self.saved))]
        temporaries: dict[str, Any] = {}
        found: dict[int, Any] = {}
        for step in self.steps:
            self._run_step(step, node, saved, gradients, temporaries, found)
        for x, out in ((x, out) for step in self.steps for x, out in step.grad.same.items()):
            for i, j in zip(self._positions["in"].get(x, ()), self._positions["out"].get(out, ()), strict=False):
                if i in self.wrt and i not in found and j in self.outputs:
                    found[i] = gradients[self.outputs.index(j)]
        return [found.get(i) for i in self.wrt]

    def _run_step(
        self,
        step: Step,
        node: Node,
        saved: Sequence[Any],
        gradients: Sequence[Any],
        temporaries: dict[str, Any],
        found: dict[int, Any],
    ) -> None:
        from oprack.interpreter.call import grad_expr
        from oprack.interpreter.modes import current_mode

        info = default_manager().op_info(step.grad.type)
        by_slot: dict[str, list[Any]] = {}
        arrived = False
        for slot, sources in step.sources.items():
            values = []
            for what, which in sources:
                if what == "saved":
                    values.append(saved[which])
                elif what == "temporary":
                    values.append(temporaries.get(which))
                else:
                    values.append(gradients[which] if what == "grad" else None)
            flows = sources[0][0] in ("grad", "temporary", "none")
            arrived = arrived or (flows and any(v is not None for v in values))
            if flows and all(v is None for v in values) and info.proto.inputs[slot].dispensable:
                continue
            by_slot[slot] = [
                self._zeros(node, which) if v is None and what == "grad" else v
                for v, (what, which) in zip(values, sources, strict=True)
            ]
        if not arrived:
            return
        expr = grad_expr(info, step, {s: len(v) for s, v in by_slot.items()})
        args = [v for slot, _ in expr.inputs for v in by_slot[slot]]
        results = iter(current_mode().interpreter.apply(expr, args))
        for slot, wanted in expr.outputs:
            for target, _ in zip(step.targets[slot], wanted, strict=True):
                value = next(results)
                if isinstance(target, str):
                    temporaries[target] = value
                elif target is not None and value is not None:
                    found[target] = value

    def _zeros(self, node: Node, which: int) -> Any:
        """A gradient of zeros for an output that nothing flows into."""
        from oprack.interpreter.tensor import new_tensor

        k = self.trace.outputs[self.outputs[which]]
        assert k is not None
        shape = node.shapes[which]
        return new_tensor(self.trace.run.device.xp.zeros(shape, k.dtype), kind(LoDTensor, k.dtype, k.place))

    def _restored(self, node: Node, k: int) -> Any:
        """What was saved, as a tensor."""
        from oprack.interpreter.node import Edge
        from oprack.interpreter.tensor import new_tensor

        side, i, whole = self.saved[k]
        entry = node.saved[k]
        if entry is None:
            return None
        if side == "in":
            if whole:
                self._check_version(node, i, entry)
                return entry
            kind_ = self.trace.kinds[i]
        else:
            kind_ = self.trace.outputs[i]
        assert kind_ is not None
        value, lod = entry
        if not whole:
            value = _hollow(value, kind_.dtype, self.trace.run.device.xp)
        elif i in node.overwritten:
            raise self._overwritten(f"output {self.trace.names_out[i]}", node.overwritten[i])
        tensor = new_tensor(value, kind(kind_.container, kind_.dtype, kind_.place, kind_.lod_level), lod)
        if side == "out" and whole and i in self.outputs:
            tensor._kind = tensor._kind.with_grad
            tensor._node = node if len(self.outputs) == 1 else Edge(node, self.outputs.index(i))
        return tensor

    def _check_version(self, node: Node, i: int, tensor: Any) -> None:
        if tensor._kind.tracked and tensor._version != node.versions.get(i, 0):
            raise self._overwritten(f"input {self.trace.names_in[i]}{_named(tensor)}", tensor._written_by)

    def _overwritten(self, what: str, by: str) -> PreconditionNotMetError:
        return PreconditionNotMetError(
            f"the gradient of op {self.trace.expr.type} needs its {what}, which was changed in place since by {by}; "
            "use the operation that makes a new tensor, change it after backward(), or change a copy (x.clone())"
        )


def _named(tensor: Any) -> str:
    return f" ({tensor.name!r})" if tensor.name else ""


def _positions(slots: dict[str, list[str]]) -> dict[str, list[int]]:
    found, k = {}, 0
    for slot, names in slots.items():
        found[slot] = list(range(k, k + len(names)))
        k += len(names)
    return {s: ps for s, ps in found.items() if ps and any(n != EMPTY_VAR for n in slots[s])}


def _hollow(shape: tuple[int, ...], dtype: Any, xp: Any) -> Any:
    """An array of that shape on the memory of one element: of the input only the shape is read."""
    zero = xp.zeros((), dtype)
    return np.broadcast_to(zero, shape) if xp is np else xp.broadcast_to(zero, shape)
