"""The text of a kernel's call in generated code: by the size of its first input, prepared where the kernel can."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from oprack.interpreter.kinds import Kind
from oprack.interpreter.trace import Trace
from oprack.kernel import Candidate, KernelCall
from oprack.runtime.kernel_context import KernelContext
from oprack.runtime.plan.codegen import by_size, wanted_by
from oprack.tensor import LoDTensor


class Invoker:
    """Writes calls of the kernels of one traced call.

    places: input slot -> its arguments. names: what the generated code refers to; grows. buffer: text of what a kernel
    may write its first output to.
    """

    def __init__(self, trace: Trace, places: Mapping[str, Sequence[int]], names: dict[str, Any], buffer: str) -> None:
        self._trace, self._places, self._names, self._buffer = trace, places, names, buffer
        assert trace.record is not None
        self._record = trace.record
        self._xp = trace.run.device.xp

    def text(self) -> str:
        """The call, or several under conditions on the size of the first input."""
        largest, *others = by_size(self._record.chosen)
        call, above = self._one(largest), largest
        conditions: list[str] = []
        for kernel in others:
            first = self._first(above)
            if first is None:
                call, conditions = self._one(kernel), []
            else:
                conditions.insert(0, f"{self._one(kernel)} if x{first}.size < {above.spec.least} else")
            above = kernel
        return " ".join([*conditions, call])

    def _first(self, kernel: Candidate) -> int | None:
        """The argument whose size decides."""
        inputs = kernel.signature.inputs
        places = self._places.get(inputs[0][0], ()) if inputs else ()
        return next((i for i in places if self._kind(i) is not None), None)

    def _kind(self, i: int) -> Kind | None:
        return self._trace.kinds[i]

    def _one(self, kernel: Candidate) -> str:
        signature, attrs = kernel.signature, self._record.op.attrs
        args = [self._argument(*given) for given in signature.inputs]
        prepared = self._prepared(kernel)
        if prepared is None:
            function, injected = kernel.spec.function, frozenset(signature.injected)
            args += [f"{p}={self._constant(p, attrs[a])}" for p, a in signature.attrs]
        else:
            function, injected = prepared
            while args and args[-1] == "None":
                args.pop()
        if "ctx" in injected:
            args.append(f"ctx={self._context()}")
        if "xp" in injected:
            args.append("xp=xp")
        if "out" in injected and (self._buffer != "None"):
            args.append(f"out={self._buffer}")
        elif "out" in injected and prepared is None and "out" in signature.injected:
            args.append("out=None")
        name = f"kernel_{len(self._names)}"
        self._names[name] = function
        return f"{name}({', '.join(args)})"

    def _prepared(self, kernel: Candidate) -> tuple[Any, frozenset[str]] | None:
        if kernel.spec.prepare is None:
            return None
        kinds = {
            s: tuple(None if (k := self._kind(i)) is None else k.dtype for i in ps) for s, ps in self._places.items()
        }
        op = self._record.op
        function = kernel.spec.prepare(KernelCall(op.type, op.attrs, kinds, self._xp))
        return None if function is None else (function, wanted_by(function, self._xp))

    def _argument(self, slot: str, many: bool, container: str) -> str:
        texts = []
        for i in self._places.get(slot, ()):
            kind = self._kind(i)
            if kind is None:
                texts.append("None")
            elif container and kind.container is LoDTensor:
                lod = f"l{i}" if kind.lod_level else "None"
                texts.append(f"LoDTensor(x{i}, {lod}, place=place, check=False, shared=True)")
            else:
                texts.append(f"x{i}")
        if many:
            return f"[{', '.join(texts)}]"
        return texts[0] if texts else "None"

    def _constant(self, name: str, value: Any) -> str:
        if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and abs(value) < 1e300):
            return repr(value)
        self._names[f"attr_{name}"] = value
        return f"attr_{name}"

    def _context(self) -> str:
        """What a kernel may ask about the op: always the same where no input has LoD."""
        lods = []
        for slot, places in self._places.items():
            texts = [f"l{i}" if (k := self._kind(i)) is not None and k.lod_level else "[]" for i in places]
            if any(t != "[]" for t in texts):
                lods.append(f"{slot!r}: [{', '.join(texts)}]")
        if not lods:
            self._names["context"] = KernelContext(self._record.op, {}, self._trace.run)
            return "context"
        self._names["operator"] = self._record.op
        return f"KernelContext(operator, {{{', '.join(lods)}}}, run)"
