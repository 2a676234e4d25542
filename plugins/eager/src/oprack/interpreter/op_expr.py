"""OpExpr: an op with its attributes and the number of tensors in each slot; a call adds only the tensors."""

from __future__ import annotations

import copy
from collections import namedtuple
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from oprack.desc import OpDesc
from oprack.errors import InvalidArgumentError, did_you_mean
from oprack.kernel import ANY_KERNEL, KernelRules
from oprack.op import OpInfo, OpProto
from oprack.op.signature import output_names
from oprack.packs.manager import default_manager
from oprack.types import EMPTY_VAR, AttrType

Arity = tuple[tuple[str, int], ...]
Wanted = tuple[tuple[str, tuple[bool, ...]], ...]


class OpExpr:
    """An op, ready to be called with a flat list of tensors; `OpExpr.of` makes one by names.

    Args:
        info: The OpInfo.
        attrs: Attributes by name, checked, defaults filled in.
        inputs: (slot, number of tensors) of the slots that are present, in OpProto order.
        outputs: (slot, for each of its tensors whether to compute it).
        in_place: Input slot -> output slot that overwrites it.
        flat: Whether a call returns a list of all outputs, with None for those that are not computed; otherwise it
            returns one tensor, or a tuple with a field per slot, without intermediate outputs.
        rules: Which kernels calls may run.

    Attributes:
        calls: TensorMetas of the arguments -> generated function, for calls that autograd does not record.
        grad_calls: The same for calls that autograd records.
        bound: TensorMetas of the arguments -> BoundExpr.
    """

    __slots__ = (
        "_twins",
        "attrs",
        "bound",
        "calls",
        "flat",
        "grad_calls",
        "in_place",
        "info",
        "inputs",
        "outputs",
        "rules",
        "type",
    )

    def __init__(
        self,
        info: OpInfo,
        attrs: Mapping[str, Any],
        inputs: Arity,
        outputs: Wanted,
        in_place: Mapping[str, str] | None = None,
        flat: bool = False,
        rules: KernelRules = ANY_KERNEL,
    ) -> None:
        self.info, self.type = info, info.type
        self.attrs = {name: value for name, value in attrs.items() if name in info.proto.attrs}
        self.inputs, self.outputs = inputs, outputs
        self.in_place, self.flat = dict(in_place or {}), flat
        # Never evicted: they go with the expression, and an op sees few combinations of metas.
        self.calls: dict[Any, Any] = {}
        self.grad_calls: dict[Any, Any] = {}
        self.bound: dict[Any, Any] = {}
        self.rules = rules
        self._twins: dict[KernelRules, OpExpr] = {}

    @classmethod
    def of(
        cls,
        op: str | OpInfo,
        attrs: Mapping[str, Any] | None = None,
        *,
        inputs: Mapping[str, int] | Sequence[str],
        outputs: Mapping[str, int] | None = None,
        flat: bool = False,
    ) -> OpExpr:
        """Describe a call by names: `apply(OpExpr.of("scale", {"scale": 2.0}, inputs=["X"]), x)`.

        Args:
            op: The op type, or its OpInfo.
            attrs: Attributes by name, which are checked; defaults are filled in.
            inputs: Number of tensors by input slot, or the slots where each has one.
            outputs: Number of tensors by output slot; default: one of each that is not dispensable.
            flat: As for the class.

        Returns:
            The expression, which may be called as often as wanted.

        Raises:
            UnknownOpError: No pack brings the op.
            AttributeValueError: An attribute is missing or out of range.
            InvalidArgumentError: The op has no such slot or attribute, lacks an input, or runs a block.
        """
        info = default_manager().op_info(op) if isinstance(op, str) else op
        proto, counts = info.proto, dict(inputs if isinstance(inputs, Mapping) else dict.fromkeys(inputs, 1))
        require_no_block(proto)
        for what, given, known in (
            ("input", counts, proto.inputs),
            ("output", outputs or {}, proto.outputs),
            ("attribute", attrs or {}, proto.attrs),
        ):
            for name in given:
                if name not in known:
                    raise InvalidArgumentError(
                        f"op {proto.type} has no {what} {name!r}{did_you_mean(name, known)}; expected "
                        f"{', '.join(known) or 'none'}"
                    )
        for slot, count in counts.items():
            if count < 1 or (count > 1 and not proto.inputs[slot].duplicable):
                raise InvalidArgumentError(f"op {proto.type}: input {slot} can't have {count} tensors")
        if missing := [s for s, p in proto.inputs.items() if s not in counts and not p.dispensable]:
            raise InvalidArgumentError(f"op {proto.type}: input {', '.join(missing)} is missing among inputs")
        checked = dict(attrs or {})
        checked = info.checker.check(checked) if info.checker is not None else checked
        wanted = default_outputs(proto, dict(outputs or {}), 1)
        return cls(info, checked, tuple((s, counts[s]) for s in proto.inputs if s in counts), wanted, flat=flat)

    @property
    def proto(self) -> OpProto:
        """The op's OpProto."""
        return self.info.proto

    def restricted(self, rules: KernelRules) -> OpExpr:
        """The same expression for other kernels.

        Args:
            rules: Which kernels calls may run; those of a mode.
        """
        if rules is self.rules:
            return self
        # No lock: if two threads each create one, only generated code is duplicated.
        twin = self._twins.get(rules)
        if twin is None:
            twin = copy.copy(self)
            # Separate caches, since other kernels are chosen for the same metas.
            twin.calls, twin.grad_calls, twin.bound, twin.rules = {}, {}, {}, rules
            self._twins[rules] = twin
        return twin

    def input_names(self, present: Sequence[bool]) -> dict[str, list[str]]:
        """Names of variables by slot, "@EMPTY@" for absent inputs."""
        names, k = {}, 0
        for slot, count in self.inputs:
            many = self.proto.inputs[slot].duplicable
            names[slot] = [(f"{slot}[{i}]" if many else slot) if present[k + i] else EMPTY_VAR for i in range(count)]
            k += count
        return names

    def output_names(self, inputs: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
        """Names of variables by slot; an output computed in place has the name of its input."""
        used = {n for names in inputs.values() for n in names}
        in_place = {out: x for x, out in self.in_place.items() if x in inputs}
        names = {}
        for slot, flags in self.outputs:
            if slot in in_place:
                names[slot] = list(inputs[in_place[slot]])
                continue
            many = self.proto.outputs[slot].duplicable
            own = slot if slot not in used else f"{slot} (output)"
            names[slot] = [(f"{own}[{i}]" if many else own) if w else EMPTY_VAR for i, w in enumerate(flags)]
        return names

    def desc(self, present: Sequence[bool]) -> OpDesc:
        """The op's desc, with variables named after its slots; `present` says which inputs are not absent."""
        inputs = self.input_names(present)
        types = {name: p.type for name, p in self.proto.attrs.items() if name in self.attrs}
        return OpDesc(self.type, inputs, self.output_names(inputs), self.attrs, types)

    @property
    def returned(self) -> list[str]:
        """Slots of the result."""
        protos = self.proto.outputs
        return [slot for slot, _ in self.outputs if self.flat or not protos[slot].intermediate]

    def __repr__(self) -> str:
        ins = ", ".join(f"{s}*{n}" if n > 1 else s for s, n in self.inputs)
        rules = "" if self.rules is ANY_KERNEL else f" {self.rules!r}"
        return f"<OpExpr {self.type}({ins}) -> {', '.join(s for s, _ in self.outputs)}{rules}>"


@cache
def result_class(op_type: str, slots: tuple[str, ...]) -> Any:
    """The named tuple that holds the results of an op with several outputs."""
    fields = output_names(slots)
    name = f"{op_type}_result"
    # One class for each op and set of slots, so that results of the same call are of the same type.
    return type(name, (namedtuple(name, fields, rename=True),), {"__slots__": ()})


def attr_key(attrs: Mapping[str, Any]) -> Any:
    """A hashable key of attributes, equal only for those that make the same op."""
    key = []
    for name, value in attrs.items():
        kind = type(value)
        # Python takes 0.0 and -0.0 for equal, and True and 1, but they make different ops.
        if not (kind is str or ((kind is float or kind is int) and value)):
            value = _frozen(value)
        key.append((name, value))
    return tuple(key)


def _frozen(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple([_frozen(v) for v in value])
    if isinstance(value, Mapping):
        return tuple(value.items())
    if hasattr(value, "tolist"):
        return _frozen(value.tolist())
    if hasattr(value, "desc"):
        raise TypeError("a Variable has no value to look up")
    return repr(value) if value == 0 or value is True else value


def default_outputs(proto: OpProto, asked: Mapping[str, int], count: int) -> Wanted:
    """The outputs of a call: those that are not dispensable, and those requested.

    Args:
        proto: The op.
        asked: Requested output slot -> number of its tensors.
        count: Number of tensors of any other duplicable output.
    """
    outputs = []
    for slot, p in proto.outputs.items():
        if slot in asked:
            outputs.append((slot, (True,) * asked[slot]))
        elif not p.dispensable:
            outputs.append((slot, (True,) * (count if p.duplicable else 1)))
    return tuple(outputs)


def require_no_block(proto: OpProto) -> None:
    """Raise InvalidArgumentError for an op that runs a block."""
    if any(p.type in (AttrType.BLOCK, AttrType.BLOCKS) for p in proto.attrs.values()):
        raise InvalidArgumentError(
            f"op {proto.type} runs a block of a program, so it can't be called by itself; use Python's own if and "
            "while, or build a program with oprack.layers"
        )
