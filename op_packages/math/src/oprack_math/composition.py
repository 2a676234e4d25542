"""Gradients of gradient ops that are compositions of ops: to any order, since those have gradients themselves.

class ExpGrad(GradFromOut, of=Exp):
    make_grad = composed(lambda o, Out, Out_grad: Out_grad * Out)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from oprack import op_info
from oprack.errors import DefinitionError
from oprack.op import ForwardOp, GradOp
from oprack.op.facets import GradOpMaker
from oprack.op.grad import SlotRef
from oprack.op.proto import slot_name


class Value:
    """What an op of a composition reads or computes; it has Python's arithmetic, with numbers and with its like."""

    def __init__(self, composition: Composition, ref: SlotRef, wanted: bool) -> None:
        self.composition, self.ref = composition, ref
        self.wanted = wanted  # whether it depends on an input that may have a gradient

    def __add__(self, other: Value | float) -> Value:
        if isinstance(other, Value):
            return self.composition.elementwise_add(X=self, Y=other)
        return self.composition.scale(X=self, bias=float(other))

    def __sub__(self, other: Value | float) -> Value:
        return self.composition.elementwise_sub(X=self, Y=other) if isinstance(other, Value) else self + -other

    def __rsub__(self, other: float) -> Value:
        return self.composition.scale(X=self, scale=-1.0, bias=float(other))

    def __mul__(self, other: Value | float) -> Value:
        if isinstance(other, Value):
            return self.composition.elementwise_mul(X=self, Y=other)
        return self.composition.scale(X=self, scale=float(other))

    def __truediv__(self, other: Value | float) -> Value:
        return self.composition.elementwise_div(X=self, Y=other) if isinstance(other, Value) else self * (1 / other)

    def __neg__(self) -> Value:
        return self * -1.0

    __radd__, __rmul__ = __add__, __mul__


class Composition:
    """Ops one after the other. `o.reduce_sum(X=x, dim=[1])` is the first output of that op.

    `outputs=["Out"]` is for ops that write some of their outputs in some cases only; of several names there is a list.

    Attributes:
        attrs: Those of the op that is composed.
    """

    def __init__(self, fwd: ForwardOp) -> None:
        self.attrs = fwd.attrs
        self.steps: list[tuple[str, dict[str, Value], dict[str, Value], dict[str, Any]]] = []
        self._count = 0

    def __getattr__(self, op_type: str) -> Callable[..., Any]:
        proto = op_info(op_type).proto

        def append(outputs: Sequence[str] | None = None, **given: Any) -> Any:
            grads = op_type.endswith("_grad")
            inputs = {slot_name(name, grads=grads): x for name, x in given.items() if isinstance(x, Value)}
            attrs = {name: x for name, x in given.items() if not isinstance(x, Value)}
            if unknown := inputs.keys() - proto.inputs.keys():
                raise DefinitionError(
                    f"{op_type} has no input {', '.join(unknown)}; expected {', '.join(proto.inputs)}"
                )
            wanted = any(x.wanted for x in inputs.values())
            written = [slot for slot, p in proto.outputs.items() if not p.dispensable] if outputs is None else outputs
            made = {slot: self.temporary(wanted) for slot in written}
            self.steps.append((op_type, inputs, made, attrs))
            return next(iter(made.values())) if outputs is None or len(outputs) == 1 else list(made.values())

        return append

    def constant(self, value: Value) -> Value:
        """The same value, through which no gradient flows."""
        return Value(self, value.ref, False)

    def temporary(self, wanted: bool = False) -> Value:
        """A value that nobody else knows."""
        self._count += 1
        return Value(self, SlotRef("temporary", f"{self._count}"), wanted)


class composed(GradOpMaker):  # written as a decorator
    """The grad maker of an op that computes what a composition of other ops does.

    The op itself runs as its kernel does. Its gradient ops are those of the composition, with what they read.

    Args:
        function: From a Composition and the op's inputs, by the names that its kernel has for their slots, to the
            output, or to a dict of the outputs by slot. An input that the function leaves out has no gradient, as
            where it is a part of others; one that may be absent is None then.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self._names = [name for name in list(inspect.signature(function).parameters)[1:]]

    def __call__(self, fwd: ForwardOp) -> list[GradOp]:
        o = Composition(fwd)
        slots = {name: slot_name(name, grads=True) for name in self._names}
        given = {n: Value(o, fwd.input(s), True) if fwd.has_input(s) else None for n, s in slots.items()}
        found = self.function(o, **given)
        outputs = found if isinstance(found, dict) else {next(iter(fwd.proto.outputs)): found}
        backward = _Backward(o)
        for slot, value in outputs.items():
            if fwd.has_output(slot) and value is not None:
                backward.add(value, fwd.output_grad(slot))
        backward.run()
        for name, value in given.items():
            if value is not None:
                backward.end(value, fwd.input_grad(slots[name]))
        return [*(_grad_op(*step) for step in o.steps), *backward.ops]


def _grad_op(op_type: str, inputs: dict[str, Value], outputs: dict[str, Value], attrs: dict[str, Any]) -> GradOp:
    """An op of the composition itself."""
    read, made = ({slot: x.ref for slot, x in values.items()} for values in (inputs, outputs))
    return GradOp(op_type, inputs=read, outputs=made, attrs=attrs)


def _said(op_type: str, attrs: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes that are not at their default, as an empty list does not tell its type."""
    known = op_info(op_type).proto.attrs
    return {name: x for name, x in attrs.items() if name not in known or known[name].default != x}


class _Backward:
    """The way back through a composition: gradient ops, and the gradients that each value has so far."""

    def __init__(self, o: Composition) -> None:
        self.ops: list[GradOp] = []
        self._o = o
        self._partials: dict[Value, list[SlotRef]] = {}

    def add(self, value: Value, gradient: SlotRef) -> None:
        self._partials.setdefault(value, []).append(gradient)

    def run(self) -> None:
        for op_type, inputs, outputs, attrs in reversed(self._o.steps):
            totals = {slot: total for slot, x in outputs.items() if (total := self._total(x)) is not None}
            if totals and any(x.wanted for x in inputs.values()):
                self._differentiate(op_type, inputs, outputs, attrs, totals)

    def end(self, value: Value, target: SlotRef) -> None:
        """Let the gradient of an input be what `target` stands for."""
        total = self._total(value)
        if total is None:
            return
        for op in self.ops:  # whoever computes it alone writes there
            for slot, ref in op.outputs.items():
                if ref is total and not any(total in other.inputs.values() for other in self.ops):
                    op.outputs[slot] = target
                    return
        self.ops.append(GradOp("assign", inputs={"X": total}, outputs={"Out": target}))

    def _total(self, value: Value) -> SlotRef | None:
        """The sum of the gradients of a value, where there are some."""
        partials = self._partials.pop(value, [])
        total = partials[0] if partials else None
        for partial in partials[1:]:
            assert total is not None
            result = self._o.temporary().ref
            self.ops.append(GradOp("elementwise_add", inputs={"X": total, "Y": partial}, outputs={"Out": result}))
            total = result
        return total

    def _differentiate(
        self,
        op_type: str,
        inputs: dict[str, Value],
        outputs: dict[str, Value],
        attrs: dict[str, Any],
        totals: dict[str, SlotRef],
    ) -> None:
        """The gradient ops of one step, whose slots are those of the composition's values."""
        info = op_info(op_type)
        checked = attrs if info.checker is None else info.checker.check(attrs)
        made = info.require_grad_op_maker()(ForwardOp(info.proto, checked, inputs, outputs))
        own: dict[str, SlotRef] = {}

        def bound(ref: SlotRef) -> SlotRef | None:
            if ref.role == "input":
                return inputs[ref.slot].ref if ref.slot in inputs else None
            if ref.role == "output":
                return outputs[ref.slot].ref if ref.slot in outputs else None
            if ref.role == "output_grad":
                return totals.get(ref.slot)
            if ref.role == "input_grad":
                if ref.slot not in inputs or not inputs[ref.slot].wanted:
                    return None
                self.add(inputs[ref.slot], gradient := self._o.temporary().ref)
                return gradient
            return own.setdefault(ref.slot, self._o.temporary().ref)

        for grad in [made] if isinstance(made, GradOp) else made:
            for slot, same in grad.same.items():
                self.add(inputs[slot], totals[same])
            read = {slot: x for slot, ref in grad.inputs.items() if (x := bound(ref)) is not None}
            results = {slot: x for slot, ref in grad.outputs.items() if (x := bound(ref)) is not None}
            if results:
                self.ops.append(GradOp(grad.type, inputs=read, outputs=results, attrs=_said(grad.type, grad.attrs)))


def masked(fwd: ForwardOp) -> GradOp:
    """The grad maker of an op that multiplies a gradient by what does not change: it is its own gradient.

    Such are the gradients of piecewise linear functions of one variable, and of dropout.
    """
    (flowing,) = (slot for slot in fwd.proto.inputs if slot.endswith("@GRAD"))
    (result,) = fwd.proto.outputs
    inputs = {slot: fwd.input(slot) for slot in fwd.proto.inputs if fwd.has_input(slot)}
    inputs[flowing] = fwd.output_grad(result)
    return GradOp(fwd.type, inputs=inputs, outputs={result: fwd.input_grad(flowing)}, attrs=fwd.attrs)
