"""Generates the function that serves all calls of one op expression with arguments of the same kinds."""

from __future__ import annotations

import linecache
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from oprack.interpreter.bound_expr import Trace
from oprack.interpreter.op_expr import OpExpr, result_class
from oprack.runtime.kernel_context import KernelContext
from oprack.runtime.plan.kernel_code import KernelCode, Value
from oprack.tensor import LoDTensor, LoDTensorArray, ShapeOnly
from oprack.tensor.eager_tensor import Tensor, share_memory
from oprack.tensor.meta import Kind
from oprack.tensor.node import Edge, Node

if TYPE_CHECKING:
    from oprack.autograd.backward_rule import GradPlan

# Infinities and NaN are values like others, here as in programs; `check_finite` finds the op that makes them. To set
# NumPy's error state for every call would take longer than many a call.
warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"oprack(_\w+)?(\.|$)")

_number = count()
Values = dict[str, list[Value | None]]


def bare(value: Any) -> tuple[Any, Any]:
    """Value and LoD of what the reference path left in a variable."""
    return (value.array, value.lod) if isinstance(value, LoDTensor) else (value, [])


def buffer_of(array: Any) -> Any:
    """The array itself when an op in place may write to it, else None."""
    flags = array.flags
    return array if flags.c_contiguous and flags.owndata and getattr(flags, "writeable", True) else None


class Generator:
    """Generates `call(a0, a1, ...)` and `finish(values, a0, a1, ...)`, which wraps what the reference path computed.

    In the code a is an argument, x its value, l its LoD; r is the value of an output, m its LoD, o its tensor.
    """

    def __init__(self, trace: Trace, plan: GradPlan | None) -> None:
        self.trace, self.plan, self.expr = trace, plan, trace.expr
        self.args = [f"a{i}" for i in range(len(trace.kinds))]
        self.places: dict[str, list[int]] = {}
        k = 0
        for slot, n in self.expr.inputs:
            self.places[slot] = list(range(k, k + n))
            k += n
        self.outs: dict[str, list[int]] = {}
        k = 0
        for slot, wanted in self.expr.outputs:
            self.outs[slot] = list(range(k, k + len(wanted)))
            k += len(wanted)
        self.names: dict[str, Any] = {
            "__name__": __name__,
            "Tensor": Tensor,
            "Node": Node,
            "Edge": Edge,
            "ndarray": np.ndarray,
            "LoDTensor": LoDTensor,
            "KernelContext": KernelContext,
            "ShapeOnly": ShapeOnly,
            "bare": bare,
            "buffer_of": buffer_of,
            "share_memory": share_memory,
            "reference": trace.reference,
            "accept": trace.accept,
            "compare": trace.compare,
            "seen": trace.seen,
            "place": trace.place,
            "run": trace.run,
            "xp": trace.run.device.xp,
            "activate": trace.run.device.activate,
            "quiet": lambda: np.errstate(all="ignore"),
        }

    def generate(self) -> Callable[..., Any]:
        """The function, with its code where tracebacks find it. `finish` is its attribute."""
        call, finish = list(self._call()), list(self._finish())
        given = ", ".join(self.args)
        lines = [f"def call({given}):", *self._indented([*self._unpack(), *call, *self._wrap()])]
        lines += [f"def finish({', '.join(['values', *self.args])}):"]
        lines += self._indented([*self._unpack(), *finish, *self._wrap()])
        source = "\n".join(lines) + "\n"
        filename = f"<eager {self.expr.type} {next(_number)}>"
        linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
        exec(compile(source, filename, "exec"), self.names)
        function = self.names.pop("call")
        weakref.finalize(function, linecache.cache.pop, filename, None)
        function.finish = self.names.pop("finish")
        function.source = source
        return function  # type: ignore[no-any-return]

    @staticmethod
    def _indented(lines: list[str]) -> list[str]:
        return ["    " + line for line in lines]

    # Inputs -----------------------------------------------------------------------------------------------------------
    def _unpack(self) -> Iterator[str]:
        for i, kind in enumerate(self.trace.kinds):
            if kind is not None:
                yield f"x{i} = a{i}._value"
                if kind.lod_level:
                    yield f"l{i} = a{i}._lod"

    def _check_shapes(self) -> Iterator[str]:
        parts = []
        if any(kind is not None and kind.container is LoDTensorArray for kind in self.trace.kinds):
            # it grows in place: its elements are looked at every time
            yield f"dims = accept(None, ({', '.join(self.args)},))"
            return
        for i, kind in enumerate(self.trace.kinds):
            if kind is not None:
                parts.append(f"x{i}.shape")
                if kind.lod_level:
                    parts.append(f"(*map(len, l{i}),)")
        if parts:
            yield f"shapes = {parts[0] if len(parts) == 1 else '(' + ', '.join(parts) + ')'}"
            yield f"dims = accept(shapes, ({', '.join(self.args)},)) if shapes not in seen else None"

    # The kernel -------------------------------------------------------------------------------------------------------
    def _call(self) -> Iterator[str]:
        if not self.trace.generated:
            yield f"values = reference(({', '.join(self.args)}{',' if self.args else ''}))"
            yield from self._finish()
            return
        for x in self.expr.in_place if self.plan is not None else ():
            yield from (f"a{i}.require_writable({self.expr.type!r})" for i in self.places.get(x, ()))
        checks = list(self._check_shapes())
        yield from checks
        tied = self._tied(self.expr.outputs[0][0]) if self.expr.outputs else None
        declared = self.expr.outputs[0][0] in self.expr.info.inplace.values() if tied is not None else False
        buffer = f"buffer_of(x{tied})" if declared else "None"
        code = self._code()
        call = code.call(buffer, buffer)
        target, after = code.targets()
        args = f"({', '.join(self.args)}{',' if self.args else ''})"
        guard = "" if self.trace.place.kind == "cpu" else "with activate(): "
        yield "try:"
        yield f"    {guard}{target} = {call}"
        yield "except (RuntimeWarning, FloatingPointError):"  # what the user's settings make of infinities
        yield f"    with quiet(): {target} = {call}"
        yield "except Exception:"
        yield f"    reference({args})"  # says what is wrong
        yield "    raise"
        yield from after
        if checks:
            made = "".join(f"r{j}, " if kind is not None else "None, " for j, kind in enumerate(self.trace.outputs))
            yield f"if dims: compare(dims, ({made}), {args})"

    def _code(self) -> _Code:
        """The call among the arguments and results of this function."""
        trace = self.trace
        assert trace.record is not None

        def values(slots: dict[str, list[int]], kinds: Sequence[Kind | None], name: str, lod: str) -> Values:
            return {
                slot: [
                    None
                    if (k := kinds[i]) is None
                    else Value(f"{name}{i}", f"{lod}{i}" if k.lod_level else "", k.container is LoDTensor, k.dtype)
                    for i in places
                ]
                for slot, places in slots.items()
            }

        ins, outs = values(self.places, trace.kinds, "x", "l"), values(self.outs, trace.outputs, "r", "m")
        return _Code(trace.record, ins, outs, trace.run.device.xp, self._named, trace.run)

    def _named(self, hint: str, value: Any) -> str:
        name = f"{hint}_{len(self.names)}"
        self.names[name] = value
        return name

    # Results ----------------------------------------------------------------------------------------------------------
    def _finish(self) -> Iterator[str]:
        for j, kind in enumerate(self.trace.outputs):
            if kind is not None:
                yield f"r{j}, m{j} = bare(values[{j}])"

    # Tensors ----------------------------------------------------------------------------------------------------------
    def _tied(self, out_slot: str) -> int | None:
        """The argument that an output is written to, in an op in place."""
        tied = (self.places[x][0] for x, out in self.expr.in_place.items() if out == out_slot and x in self.places)
        return next(tied, None)

    def _wrap(self) -> Iterator[str]:
        yield from self._node()
        record = self.trace.record
        viewed = record.chosen.signature.inputs[0][0] if record is not None and record.chosen.spec.view else ""
        for slot in self.expr.returned:
            tied = self._tied(slot)
            for j in self.outs[slot]:
                kind = self.trace.outputs[j]
                if kind is None:
                    continue
                if tied is not None:
                    yield f"o{j} = a{tied}"
                    yield f"o{j}._overwrite(r{j}, {self._node_of(j)}, {self.expr.type!r})"
                    continue
                wants = self.plan is not None and j in self.plan.outputs
                self.names[f"K{j}"] = kind.with_grad if wants else kind
                yield f"o{j} = Tensor()"
                yield f"o{j}._value = r{j}"
                yield f"o{j}._kind = K{j}"
                yield f"o{j}._node = {self._node_of(j)}"
                if kind.lod_level:
                    yield f"o{j}._lod = m{j}"
                if viewed:
                    yield f"share_memory(o{j}, a{self.places[viewed][0]})"
        yield f"return {self._result()}"

    def _node_of(self, j: int) -> str:
        if self.plan is None or j not in self.plan.outputs:
            return "None"
        if len(self.plan.outputs) == 1:
            return "n"
        return f"Edge(n, {self.plan.outputs.index(j)})"

    def _node(self) -> Iterator[str]:
        plan = self.plan
        if plan is None:
            return
        self.names["plan"] = plan
        yield "n = Node()"
        yield "n.plan = plan"
        yield f"n.next = ({', '.join(f'a{i}._node' for i in plan.wrt)},)"
        saved = [self._saved(*s) for s in plan.saved]
        yield f"n.saved = ({', '.join(saved)}{',' if saved else ''})"
        if len(plan.outputs) > 1 or self.trace.outputs[plan.outputs[0]] is None:
            yield f"n.shapes = ({', '.join(f'r{j}.shape' for j in plan.outputs)},)"
        tracked = [
            i for side, i, whole in plan.saved if side == "in" and whole and (k := self.trace.kinds[i]) and k.tracked
        ]
        if tracked:
            yield f"n.versions = {{{', '.join(f'{i}: a{i}._version' for i in tracked)}}}"

    def _saved(self, side: str, i: int, whole: bool) -> str:
        """What a node keeps: an argument itself, the value of an output, or a shape; with LoD where there is one."""
        kind = self.trace.kinds[i] if side == "in" else self.trace.outputs[i]
        if kind is None:
            return "None"
        value, lod = (f"x{i}", f"l{i}") if side == "in" else (f"r{i}", f"m{i}")
        if not whole:
            return f"({value}.shape, {lod if kind.lod_level else '()'})"
        if side == "in":
            return f"a{i}"
        return f"({value}, {lod})" if kind.lod_level else value

    def _result(self) -> str:
        def texts(slot: str) -> list[str]:
            return [f"o{j}" if self.trace.outputs[j] is not None else "None" for j in self.outs[slot]]

        expr: OpExpr = self.expr
        if expr.flat:
            return f"[{', '.join(t for slot in expr.returned for t in texts(slot))}]"
        many = [expr.proto.outputs[s].duplicable for s in expr.returned]
        fields = [f"[{', '.join(texts(s))}]" if m else texts(s)[0] for s, m in zip(expr.returned, many, strict=True)]
        if len(fields) == 1:
            return fields[0]
        if not fields:
            return "None"
        self.names["Result"] = result_class(expr.type, tuple(expr.returned))
        return f"Result({', '.join(fields)})"


class _Code(KernelCode):
    """A call among the arguments of an eager function."""

    def __init__(self, *args: Any) -> None:
        *others, self._run = args
        super().__init__(*others)

    def lod_tensor(self, value: Value) -> str:
        return f"LoDTensor({value.name}, {value.lod or None}, place=place, check=False, shared=True)"

    def context(self) -> str:
        """Always the same where no input has LoD."""
        op, lods = self.record.op, self.lods()
        if lods == "{}":
            return self.named("context", KernelContext(op, {}, self._run))
        return f"KernelContext({self.named('op', op)}, {lods}, run)"

    def as_array(self, made: Value, returned: Any) -> Iterator[str]:
        if self.xp is np:
            yield f"if {made.name}.__class__ is not ndarray: {made.name} = xp.asarray({made.name})"

    def share_lod(self, made: Value, source: Value) -> Iterator[str]:
        yield f"{made.lod} = {source.lod}"
