"""The text of a kernel's call in generated code: what plans and eager calls have in common."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oprack.kernel import Candidate, KernelCall
from oprack.op.proto import slot_name
from oprack.runtime.plan.record import OpRecord
from oprack.tensor import LoDTensor, LoDTensorArray, SelectedRows


@dataclass
class Value:
    """What generated code calls a value.

    name: holds the bare array of a LoDTensor, or the object itself when `tensor` is False. lod: holds its offsets, ""
    when it has none.
    """

    name: str
    lod: str
    tensor: bool
    dtype: Any


class KernelCode:
    """Writes the call of a recorded op's kernel, and what the result is assigned to.

    ins, outs: the values by slot, None for an absent one. named: (hint, object) -> what the code calls the object.
    The code refers to ShapeOnly by this name.
    Subclasses say how a LoDTensor and a KernelContext are made, and how an output becomes an array and gets its LoD.
    """

    def __init__(
        self,
        record: OpRecord,
        ins: Mapping[str, Sequence[Any]],
        outs: Mapping[str, Sequence[Any]],
        xp: Any,
        named: Callable[[str, Any], str],
    ) -> None:
        self.record, self.ins, self.outs, self.xp, self.named = record, ins, outs, xp, named

    def lod_tensor(self, value: Any) -> str:
        """The value as the LoDTensor that a kernel asks for."""
        raise NotImplementedError(f"{type(self).__name__} must define lod_tensor")

    def context(self) -> str:
        """A KernelContext."""
        raise NotImplementedError(f"{type(self).__name__} must define context")

    def as_array(self, made: Any, returned: Any) -> Iterator[str]:
        """Statements that make an array of an output that may be a scalar; `returned` was it when traced."""
        raise NotImplementedError(f"{type(self).__name__} must define as_array")

    def share_lod(self, made: Any, source: Any) -> Iterator[str]:
        """Statements that give an output the LoD of an input."""
        raise NotImplementedError(f"{type(self).__name__} must define share_lod")

    # Calls ------------------------------------------------------------------------------------------------------------
    def call(self, buffer: str = "None", small_buffer: str = "None") -> str:
        """The kernel called, or that of several which suits the size of the first input.

        buffer: text of what it may write its first output to; small_buffer: the same for a kernel of small inputs.
        """
        largest, *others = kernels_by_size(self.record.chosen)
        call, above = self._one(largest, buffer), largest
        conditions: list[str] = []
        for kernel in others:
            first = self._first(above)
            small = self._one(kernel, small_buffer)
            if first is None:  # as a size of 0
                call, conditions = small, []
            else:
                conditions.insert(0, f"{small} if {first.name}.size < {above.spec.least} else")
            above = kernel
        return " ".join([*conditions, call])

    def _first(self, kernel: Candidate) -> Any:
        """The value whose size decides."""
        inputs = kernel.signature.inputs
        return next(iter(self.ins.get(inputs[0][0], ())), None) if inputs else None

    def _one(self, kernel: Candidate, buffer: str) -> str:
        """The call of one kernel, or of what it prepared for the op."""
        signature, attrs = kernel.signature, self.record.op.attrs
        args = [self._argument(*given) for given in signature.inputs]
        prepared = self._prepared(kernel)
        if prepared is None:
            function, injected = kernel.spec.function, frozenset(signature.injected)
            name = self.named(function.__name__, function)
            args += [f"{p}={self._constant(p, attrs[a])}" for p, a in signature.attrs]
        else:
            name, injected = self.named(self.record.op.type, prepared), _wanted(prepared, self.xp)
            while args and args[-1] == "None":
                args.pop()
        if "ctx" in injected:
            args.append(f"ctx={self.context()}")
        if "xp" in injected:
            args.append("xp=xp")
        if "out" in injected and (buffer != "None" or prepared is None):
            args.append(f"out={buffer}")
        return f"{name}({', '.join(args)})"

    def _prepared(self, kernel: Candidate) -> Callable[..., Any] | None:
        if kernel.spec.prepare is None:
            return None
        op = self.record.op
        dtypes = {slot: tuple(v.dtype if v else None for v in values) for slot, values in self.ins.items()}
        return kernel.spec.prepare(KernelCall(op.type, op.attrs, dtypes, self.xp))

    def _argument(self, slot: str, many: bool, container: str) -> str:
        texts = []
        for value in self.ins.get(slot, ()):
            if value is None:
                texts.append("None")
            else:
                if value.tensor and slot in self.record.op.info.no_need_buffer_vars:
                    # without the names of op and kernel: a call that fails is made again on the reference path
                    x = value.name
                    value = dataclasses.replace(value, name=f"({x} if {x}.__class__ is ShapeOnly else ShapeOnly({x}))")
                texts.append(self.lod_tensor(value) if value.tensor and container else value.name)
        if many:
            return f"[{', '.join(texts)}]"
        return texts[0] if texts else "None"

    def _constant(self, hint: str, value: Any) -> str:
        if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and abs(value) < 1e300):
            return repr(value)
        return self.named(hint, value)

    def lods(self) -> str:
        """LoD of the inputs that have some, as the KernelContext takes it."""
        found = [
            f"{slot!r}: [{', '.join(v.lod if v and v.lod else '[]' for v in values)}]"
            for slot, values in self.ins.items()
            if any(v and v.lod for v in values)
        ]
        return f"{{{', '.join(found)}}}"

    # Results ----------------------------------------------------------------------------------------------------------
    def targets(self) -> tuple[str, list[str]]:
        """What the call is assigned to, and the statements that make the outputs of it."""
        result, after = self.record.result, list[str]()
        protos = list(self.record.op.info.proto.outputs)
        if isinstance(result, dict):
            grads = any("@GRAD" in s for s in protos)
            for key, returned in result.items():
                made: list[str] = []
                slot = key if key in protos else slot_name(key, grads=grads)
                target = self._target(slot, returned, made)
                if target != "_":
                    after += [f"{target} = result[{key!r}]", *made]
            return "result", after
        if isinstance(result, tuple):
            texts = [self._target(slot, returned, after) for slot, returned in zip(protos, result, strict=False)]
            return f"{', '.join(texts)}{',' if len(texts) == 1 else ''}", after
        return (self._target(protos[0], result, after) if protos else "_"), after

    def _target(self, slot: str, returned: Any, after: list[str]) -> str:
        made = self.outs.get(slot)
        if not made or not any(made):
            return "_"
        many = self.record.op.info.proto.outputs[slot].duplicable and isinstance(returned, list | tuple)
        texts = []
        for i, item in enumerate(returned if many else [returned]):
            value = made[i] if i < len(made) else None
            texts.append(value.name if value else "_")
            if value is not None:
                after += self._finish(value, item, (slot, i))
        return f"[{', '.join(texts)}]" if many else texts[0]

    def _finish(self, made: Any, returned: Any, position: tuple[str, int]) -> Iterator[str]:
        """Statements that turn what the kernel returned into the values of an output, by its slot and number."""
        if isinstance(returned, LoDTensor):
            if made.lod:
                yield f"{made.lod} = {made.name}.lod"
            yield f"{made.name} = {made.name}.array"
            return
        if isinstance(returned, SelectedRows | LoDTensorArray):
            return
        yield from self.as_array(made, returned)
        if made.lod:
            slot, i = next(source for source, target in self.record.inferred.shares if target == position)
            yield from self.share_lod(made, self.ins[slot][i])


def kernels_by_size(chosen: Candidate) -> list[Candidate]:
    """A kernel and those that take over for smaller inputs."""
    return [chosen, *kernels_by_size(chosen.smaller)] if chosen.smaller is not None else [chosen]


def _wanted(function: Any, xp: Any) -> frozenset[str]:
    """What of `ctx` and `out` a prepared function takes."""
    called = getattr(function, "func", function)
    if isinstance(called, xp.ufunc):
        return frozenset(["out"])
    parameters = inspect.signature(function).parameters.values()
    return frozenset(p.name for p in parameters if p.kind is p.KEYWORD_ONLY) & {"ctx", "out"}
