"""The text of a kernel's call in generated code: what plans and eager calls have in common."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from oprack.errors import KernelNotFoundError
from oprack.kernel import Candidate, KernelSpecialization
from oprack.kernel.invoke import Arguments, bind_inputs, bind_named, by_output_slot
from oprack.runtime.kernel_call import OperatorContext
from oprack.runtime.plan.binding import Bound, Local
from oprack.runtime.plan.record import OpRecord
from oprack.tensor import LoDTensor, LoDTensorArray, SparseValue

if TYPE_CHECKING:
    from oprack.runtime.run_context import RunContext


class KernelCode:
    """Writes the call of a recorded op's kernel, and what the result is assigned to.

    The code refers to LoDTensor, KernelContext, ShapeOnly, `xp`, `run` and its `place` by these names.

    Args:
        record: What the recorded run decided.
        ins: Inputs by slot, None for an absent one.
        outs: Outputs by slot, None for an absent one.
        xp: NumPy or CuPy.
        named: Called with a hint and an object; returns what the code calls the object.
        run: The run of all calls of the code; None: each call has its own.
    """

    def __init__(
        self,
        record: OpRecord,
        ins: Bound,
        outs: Bound,
        xp: Any,
        named: Callable[[str, Any], str],
        run: RunContext | None,
    ) -> None:
        self.record, self.ins, self.outs, self.xp, self.named, self._run = record, ins, outs, xp, named, run
        # of each kernel of the chain, once its call is written: what `specialize` returned, and what it takes by name
        self.specialized: list[tuple[Callable[..., Any] | None, list[str]]] = []

    def whole(self, value: Local | None) -> str:
        """The value as a variable of the program would hold it."""
        if value is None or not value.tensor:
            return "None" if value is None else value.name
        # of an eager call others may have the memory
        shared = "" if self._run is None else ", place=place, shared=True"
        return f"LoDTensor({value.name}, {value.lod or None}, check=False{shared})"

    def context(self) -> str:
        """A KernelContext; of one run it is always the same where no input has LoD."""
        op, lods = self.record.op, self.lods()
        if self._run is not None and lods == "{}":
            return self.named("context", OperatorContext(op, {}, self._run))
        return f"KernelContext({self.named('op', op)}, {lods}, run)"

    # Calls ------------------------------------------------------------------------------------------------------------
    def call(self, into: str, buffer: str = "None", other_buffer: str = "None") -> str:
        """Write an expression that calls the kernel, and the next one where it declines or the first input is too
        small.

        Args:
            into: Name that the result is assigned to. The expression assigns to it as well, to compare it.
            buffer: Text of the memory that the kernel may write its first output to.
            other_buffer: The same for the kernels that take over.
        """
        best, *others = self.record.chosen.chain()
        texts = [self._one(best, buffer), *(self._one(kernel, other_buffer) for kernel in others)]
        text = ""
        # Written from the inside out: each kernel's expression has the next one's as its else branch.
        for kernel, call in zip(reversed((best, *others)), reversed(texts), strict=True):
            conditions = []
            if text and kernel.spec.min_numel:
                first = self._first(kernel)
                if first is None:  # an absent input counts as one without elements
                    continue
                conditions.append(f"{first.name}.size >= {kernel.spec.min_numel}")
            if kernel.spec.may_decline:
                text = text or f"{self.named('all_declined', all_declined)}()"
                conditions.append(f"({into} := {call}) is not NotImplemented")
                call = into
            text = f"{call} if {' and '.join(conditions)} else {text}" if conditions else call
        return text

    def _first(self, kernel: Candidate) -> Any:
        """The value whose size decides."""
        inputs = kernel.signature.inputs
        return next(iter(self.ins.get(inputs[0][0], ())), None) if inputs else None

    def _one(self, kernel: Candidate, buffer: str) -> str:
        """The call of one kernel, or of the specialized one for the op."""
        arguments = _Texts(self, buffer)
        args = bind_inputs(kernel.signature, arguments)
        specialized = self._specialized(kernel)
        wanted = [] if specialized is None else _wanted(specialized, self.xp)
        self.specialized.append((specialized, wanted))
        if specialized is None:
            function = kernel.spec.function
            called = function.__name__  # of a lambda it is no identifier
            name = self.named(called if called.isidentifier() else self.record.op.type, function)
            args += [f"{param}={text}" for param, text in bind_named(kernel.signature, arguments).items()]
        else:
            name = self.named(self.record.op.type, specialized)
            # A specialized kernel has defaults for absent inputs at the end, and fewer arguments make a faster call.
            while args and args[-1] == "None":
                args.pop()
            args += [f"{param}={arguments.injected(param)}" for param in wanted if param == "ctx" or buffer != "None"]
        return f"{name}({', '.join(args)})"

    def _specialized(self, kernel: Candidate) -> Callable[..., Any] | None:
        if kernel.spec.specialize is None:
            return None
        op = self.record.op
        dtypes = {slot: tuple(v.dtype if v else None for v in values) for slot, values in self.ins.items()}
        has_lod = any(v.lod for values in self.ins.values() for v in values if v)
        return kernel.spec.specialize(KernelSpecialization(op.type, op.attrs, dtypes, self.xp, has_lod))

    def constant(self, hint: str, value: Any) -> str:
        """An attribute's value."""
        # repr of an infinity or a NaN is no expression, and lists may not be shared with a kernel's defaults.
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
        """What the call is assigned to, and the statements that turn it into outputs."""
        result, after = self.record.result, list[str]()
        if isinstance(result, dict):
            for key, slot, value in by_output_slot(result, self.record.op.info.proto):
                made: list[str] = []
                target = self._target(slot, value, made)
                if target != "_":
                    after += [f"{target} = result[{key!r}]", *made]
            return "result", after
        proto = self.record.op.info.proto
        texts = [self._target(slot, value, after) for _, slot, value in by_output_slot(result, proto)]
        if isinstance(result, tuple):
            return f"{', '.join(texts)}{',' if len(texts) == 1 else ''}", after
        return (texts[0] if texts else "_"), after

    def assigned(self, buffer: str = "None", other_buffer: str = "None") -> tuple[list[str], list[str]]:
        """The statements of the call, and those that turn what it returned into outputs."""
        target, after = self.targets()
        if len(list(self.record.chosen.chain())) == 1 and not self.record.chosen.spec.may_decline:
            return [f"{target} = {self.call(target, buffer)}"], after + (["del result"] if target == "result" else [])
        if target.isidentifier():
            made = [f"{target} = {self.call(target, buffer, other_buffer)}"]
            return made, after + (["del result"] if target == "result" else [])
        return [f"result = {self.call('result', buffer, other_buffer)}", f"{target} = result", "del result"], after

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

    def _finish(self, made: Local, returned: Any, position: tuple[str, int]) -> Iterator[str]:
        """Statements that turn what the kernel returned into the values of an output, by its slot and number."""
        if isinstance(returned, LoDTensor):
            if made.lod:
                yield f"{made.lod} = {made.name}.lod"
            yield f"{made.name} = {made.name}.array"
            return
        if isinstance(returned, SparseValue | LoDTensorArray):
            return
        if isinstance(returned, np.generic) or not hasattr(returned, "dtype"):
            yield f"{made.name} = xp.asarray({made.name})"
        if made.lod:
            slot, i = next(source for source, target in self.record.inferred.shares if target == position)
            # Needs no statement: what reads the offsets does so under the name of the input's.
            made.lod = source.lod if (source := self.ins[slot][i]) else ""


class _Texts(Arguments[Any, str]):
    """Arguments as expressions; `buffer` is the text of the memory that the first output may be written to."""

    def __init__(self, code: KernelCode, buffer: str) -> None:
        self._code, self._buffer = code, buffer

    def values(self, slot: str) -> Sequence[Any]:
        return self._code.ins.get(slot, ())

    def value(self, slot: str, i: int, value: Any, container: str) -> str:
        if value is None:
            return "None"
        if value.tensor and slot in self._code.record.op.info.no_need_buffer_vars:
            # a ShapeOnly without the names of op and kernel: a call that fails is made again on the reference path
            x = value.name
            value = dataclasses.replace(value, name=f"({x} if {x}.__class__ is ShapeOnly else ShapeOnly({x}))")
        text: str = self._code.whole(value) if container else value.name
        return text

    def attr(self, name: str) -> str:
        return self._code.constant(name, self._code.record.op.attrs[name])

    def injected(self, name: str) -> str:
        return self._code.context() if name == "ctx" else self._buffer if name == "out" else name

    def absent(self) -> str:
        return "None"

    def several(self, values: list[str]) -> str:
        return f"[{', '.join(values)}]"

    def group(self, group: Any, fields: dict[str, str]) -> str:
        named, defaults = self._code.named, group._field_defaults
        values = [fields[n] if n in fields else self._code.constant(n, defaults[n]) for n in group._fields]
        # a third of the time that a call of the class takes, which is a Python function with as many arguments
        return f"{named('new_tuple', tuple.__new__)}({named(group.__name__, group)}, ({', '.join(values)},))"


def all_declined() -> NoReturn:
    """Fail, so that the op runs once more on the reference path, which says who declined and why."""
    raise KernelNotFoundError("every kernel that fits has declined")


def _wanted(function: Any, xp: Any) -> list[str]:
    """What of `ctx` and `out` a specialized kernel takes."""
    called = getattr(function, "func", function)
    if isinstance(called, xp.ufunc):
        return ["out"]
    parameters = inspect.signature(function).parameters.values()
    return sorted({p.name for p in parameters if p.kind is p.KEYWORD_ONLY} & {"ctx", "out"})
