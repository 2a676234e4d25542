"""Gradient makers: from a forward op to its gradient ops, symbolically, so that programs and eager calls share them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from oprack.errors import DefinitionError
from oprack.op.facets import GradOpMaker
from oprack.op.proto import OpProto, slot_name

Role = Literal["input", "output", "output_grad", "input_grad"]


@dataclass(frozen=True)
class SlotRef:
    """All variables of a slot of the forward op, or their gradients; index: only that one of them."""

    role: Role
    slot: str
    index: int | None = None


class ForwardOp:
    """What a grad maker sees of the op it differentiates."""

    def __init__(
        self, proto: OpProto, attrs: Mapping[str, Any], inputs: Collection[str], outputs: Collection[str]
    ) -> None:
        """inputs, outputs: the slots that are present (hold at least one variable); a mapping also says how many."""
        self.type = proto.type
        self.proto = proto
        self.attrs = dict(attrs)
        self._inputs, self._outputs = inputs, outputs

    def has_input(self, slot: str) -> bool:
        return slot in self._inputs

    def has_output(self, slot: str) -> bool:
        return slot in self._outputs

    def input_count(self, slot: str) -> int:
        """Number of variables of an input slot."""
        if isinstance(self._inputs, Mapping):
            return int(self._inputs.get(slot, 0))
        return int(slot in self._inputs)

    def input(self, slot: str) -> SlotRef:
        return self._ref("input", slot, self.proto.inputs)

    def output(self, slot: str) -> SlotRef:
        return self._ref("output", slot, self.proto.outputs)

    def output_grad(self, slot: str) -> SlotRef:
        """Gradient that flows in: of output `slot`."""
        return self._ref("output_grad", slot, self.proto.outputs)

    def input_grad(self, slot: str, i: int | None = None) -> SlotRef:
        """Gradient to compute: of input `slot`, or of its variable i only."""
        return self._ref("input_grad", slot, self.proto.inputs, i)

    def _ref(self, role: Role, slot: str, slots: Collection[str], index: int | None = None) -> SlotRef:
        if slot not in slots:
            kind = "input" if role.startswith("input") else "output"
            raise DefinitionError(
                f"grad maker of {self.type}: {role}({slot!r}), but its {kind}s are {', '.join(slots) or 'none'}"
            )
        return SlotRef(role, slot, index)


class GradOp:
    """A gradient op: `GradOp("relu_grad", Out=fwd.output("Out"), Out_grad=fwd.output_grad("Out"), X_grad=...)`.

    Keywords are slots (`Out_grad` = `Out@GRAD`); those bound to `fwd.input_grad(...)` are outputs, all others inputs.
    slots: the same for slots that Python can't spell. A slot bound to None is absent.
    outputs: outputs that are no gradients, such as a forward input that the gradient op restores.
    """

    def __init__(
        self,
        type: str,
        *,
        attrs: Mapping[str, Any] | None = None,
        slots: Mapping[str, SlotRef | None] | None = None,
        outputs: Mapping[str, SlotRef] | None = None,
        **spelled: SlotRef | None,
    ) -> None:
        self.type = type
        self.attrs = dict(attrs or {})
        self.inputs: dict[str, SlotRef] = {}
        self.outputs: dict[str, SlotRef] = dict(outputs or {})
        named = dict(slots or {}) | {slot_name(k, grads=True): v for k, v in spelled.items()}
        for slot, ref in named.items():
            if ref is None:
                continue
            if not isinstance(ref, SlotRef):
                raise DefinitionError(
                    f"GradOp({type!r}): slot {slot} is {ref!r}; expected fwd.input(...), fwd.output(...), "
                    "fwd.output_grad(...) or fwd.input_grad(...)"
                )
            (self.outputs if ref.role == "input_grad" else self.inputs)[slot] = ref

    def __repr__(self) -> str:
        return f"GradOp({self.type!r}, inputs={self.inputs}, outputs={self.outputs})"


class FunctionGradOpMaker(GradOpMaker):
    """A maker from a function `make_grad(fwd)` that returns one GradOp or a list."""

    def __init__(self, function: Callable[[ForwardOp], GradOp | Sequence[GradOp]]) -> None:
        self.function = function

    def __call__(self, fwd: ForwardOp) -> GradOp | Sequence[GradOp]:
        return self.function(fwd)


class DefaultGradOpMaker(GradOpMaker):
    """`<type>_grad` with every input, every output and every output's gradient; computes every input's gradient.

    Convenient, but it keeps all forward values alive until backward: write a maker that passes only what is needed.
    """

    def __call__(self, fwd: ForwardOp) -> GradOp:
        slots: dict[str, SlotRef | None] = {}
        for slot in fwd.proto.inputs:
            if fwd.has_input(slot):
                slots[slot] = fwd.input(slot)
                slots[slot + "@GRAD"] = fwd.input_grad(slot)
        for slot in fwd.proto.outputs:
            if fwd.has_output(slot):
                slots[slot] = fwd.output(slot)
                slots[slot + "@GRAD"] = fwd.output_grad(slot)
        return GradOp(fwd.type + "_grad", attrs=fwd.attrs, slots=slots)


class EmptyGradOpMaker(GradOpMaker):
    """Emits no gradient op: nothing flows back through this op, on purpose (shape, compare ops, random draws)."""

    def __call__(self, fwd: ForwardOp) -> Sequence[GradOp]:
        return ()


empty_grad = EmptyGradOpMaker()
"""`make_grad = empty_grad` in a definition: the op is a constant to its inputs, on purpose."""
