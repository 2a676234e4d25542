"""Generates the function that serves all calls of one op expression with arguments of the same TensorMetas."""

from __future__ import annotations

import linecache
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
from oprack.eager_tensor import Edge, Node, Tensor, share_memory
from oprack.interpreter.bound_expr import BoundExpr
from oprack.interpreter.op_expr import OpExpr, result_class
from oprack.interruption import let_interruptions_pass
from oprack.runtime.plan.kernel_code import KernelCode, Value
from oprack.runtime.run_context import OperatorContext
from oprack.tensor import LoDTensor, LoDTensorArray, ShapeOnly
from oprack.tensor.meta import TensorMeta

if TYPE_CHECKING:
    from oprack.autograd.backward_rule import BackwardRule

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


def put(buffer: Any, result: Any) -> Any:
    """A result in the memory of a buffer that it fits, if there is one."""
    if buffer is None or buffer.shape != result.shape or buffer.dtype != result.dtype:
        return result
    buffer[...] = result
    return buffer


class CallGenerator:
    """Generates `call(a0, a1, ...)` and `finish(values, a0, a1, ...)`, which wraps what the reference path computed.

    In the code a is an argument, x its value, l its LoD; r is the value of an output, m its LoD, o its tensor.
    """

    def __init__(self, bound: BoundExpr, rule: BackwardRule | None) -> None:
        self.bound, self.rule, self.expr = bound, rule, bound.expr
        self.args = [f"a{i}" for i in range(len(bound.metas))]
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
            "KernelContext": OperatorContext,
            "ShapeOnly": ShapeOnly,
            "bare": bare,
            "buffer_of": buffer_of,
            "put": put,
            "share_memory": share_memory,
            "let_interruptions_pass": let_interruptions_pass,
            "reference": bound.reference,
            "accept": bound.accept,
            "compare": bound.compare,
            "seen": bound.seen,
            "place": bound.place,
            "run": bound.run,
            "xp": bound.run.device.xp,
            "activate": bound.run.device.activate,
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
        for i, meta in enumerate(self.bound.metas):
            if meta is not None:
                yield f"x{i} = a{i}._value"
                if meta.lod_level:
                    yield f"l{i} = a{i}._lod"

    def _check_shapes(self) -> Iterator[str]:
        parts = []
        if any(meta is not None and meta.container is LoDTensorArray for meta in self.bound.metas):
            # it grows in place: its elements are looked at every time
            yield f"dims = accept(None, ({', '.join(self.args)},))"
            return
        for i, meta in enumerate(self.bound.metas):
            if meta is not None:
                parts.append(f"x{i}.shape")
                if meta.lod_level:
                    parts.append(f"(*map(len, l{i}),)")
        if parts:
            yield f"shapes = {parts[0] if len(parts) == 1 else '(' + ', '.join(parts) + ')'}"
            yield f"dims = accept(shapes, ({', '.join(self.args)},)) if seen[shapes] is None else None"

    # The kernel -------------------------------------------------------------------------------------------------------
    def _call(self) -> Iterator[str]:
        if not self.bound.generated:
            yield f"values = reference(({', '.join(self.args)}{',' if self.args else ''}))"
            yield from self._finish()
            return
        for x in self.expr.in_place if self.rule is not None else ():
            yield from (f"a{i}.require_writable({self.expr.type!r})" for i in self.places.get(x, ()))
        checks = list(self._check_shapes())
        yield from checks
        buffer = self._buffer()
        made, after = self._code().assigned(buffer, buffer)
        args = f"({', '.join(self.args)}{',' if self.args else ''})"
        guard = "" if self.bound.place.kind == "cpu" else "with activate(): "
        yield "try:"
        yield f"    {guard}{'; '.join(made)}"
        yield "except (RuntimeWarning, FloatingPointError):"  # what the user's settings make of infinities
        yield f"    with quiet(): {'; '.join(made)}"
        yield "except Exception:"
        yield "    let_interruptions_pass()"
        yield f"    reference({args})"  # says what is wrong
        yield "    raise"
        yield from after
        if checks:
            results = "".join(f"r{j}, " if meta is not None else "None, " for j, meta in enumerate(self.bound.outputs))
            yield f"if dims: compare(dims, ({results}), {args})"

    def _buffer(self) -> str:
        """The memory that an op in place writes to."""
        tied = self._tied(self.expr.outputs[0][0]) if self.expr.outputs else None
        declared = tied is not None and self.expr.outputs[0][0] in self.expr.info.inplace.values()
        return f"buffer_of(x{tied})" if declared else "None"

    def _code(self) -> _EagerKernelCode:
        """The call among the arguments and results of this function."""
        bound = self.bound
        assert bound.record is not None

        def values(slots: dict[str, list[int]], metas: Sequence[TensorMeta | None], name: str, lod: str) -> Values:
            return {
                slot: [
                    None
                    if (k := metas[i]) is None
                    else Value(f"{name}{i}", f"{lod}{i}" if k.lod_level else "", k.container is LoDTensor, k.dtype)
                    for i in places
                ]
                for slot, places in slots.items()
            }

        ins, outs = values(self.places, bound.metas, "x", "l"), values(self.outs, bound.outputs, "r", "m")
        return _EagerKernelCode(bound.record, ins, outs, bound.run.device.xp, self._named, bound.run)

    def _named(self, hint: str, value: Any) -> str:
        name = f"{hint}_{len(self.names)}"
        self.names[name] = value
        return name

    # Results ----------------------------------------------------------------------------------------------------------
    def _finish(self) -> Iterator[str]:
        for j, meta in enumerate(self.bound.outputs):
            if meta is not None:
                yield f"r{j}, m{j} = bare(values[{j}])"
        buffer = self._buffer() if self.bound.generated else "None"
        if buffer != "None" and any(buffer in line for line in self._code().assigned(buffer, buffer)[0]):
            yield f"r0 = put({buffer}, r0)"  # as later calls do, so that views see what the first one writes, too

    # Tensors ----------------------------------------------------------------------------------------------------------
    def _tied(self, out_slot: str) -> int | None:
        """The argument that an output is written to, in an op in place."""
        tied = (self.places[x][0] for x, out in self.expr.in_place.items() if out == out_slot and x in self.places)
        return next(tied, None)

    def _wrap(self) -> Iterator[str]:
        yield from self._node()
        record = self.bound.record
        chain = record.chosen.chain() if record is not None else ()
        viewed = next((kernel.signature.inputs[0][0] for kernel in chain if kernel.spec.view), "")
        for slot in self.expr.returned:
            tied = self._tied(slot)
            for j in self.outs[slot]:
                meta = self.bound.outputs[j]
                if meta is None:
                    continue
                if tied is not None:
                    yield f"o{j} = a{tied}"
                    yield f"o{j}._overwrite(r{j}, {self._node_of(j)}, {self.expr.type!r})"
                    continue
                wants = self.rule is not None and j in self.rule.outputs
                self.names[f"K{j}"] = meta.with_grad if wants else meta
                yield f"o{j} = Tensor()"
                yield f"o{j}._value = r{j}"
                yield f"o{j}._meta = K{j}"
                yield f"o{j}._node = {self._node_of(j)}"
                if meta.lod_level:
                    yield f"o{j}._lod = m{j}"
                if viewed:
                    yield f"share_memory(o{j}, a{self.places[viewed][0]})"
        yield f"return {self._result()}"

    def _node_of(self, j: int) -> str:
        if self.rule is None or j not in self.rule.outputs:
            return "None"
        if len(self.rule.outputs) == 1:
            return "n"
        return f"Edge(n, {self.rule.outputs.index(j)})"

    def _node(self) -> Iterator[str]:
        rule = self.rule
        if rule is None:
            return
        self.names["rule"] = rule
        yield "n = Node()"
        yield "n.rule = rule"
        yield f"n.next = ({', '.join(f'a{i}._node' for i in rule.wrt)},)"
        saved = [self._saved(*s) for s in rule.saved]
        yield f"n.saved = ({', '.join(saved)}{',' if saved else ''})"
        if len(rule.outputs) > 1 or self.bound.outputs[rule.outputs[0]] is None:
            yield f"n.shapes = ({', '.join(f'r{j}.shape' for j in rule.outputs)},)"
        tracked = [
            i for side, i, whole in rule.saved if side == "in" and whole and (k := self.bound.metas[i]) and k.tracked
        ]
        if tracked:
            yield f"n.versions = {{{', '.join(f'{i}: a{i}._version' for i in tracked)}}}"

    def _saved(self, side: str, i: int, whole: bool) -> str:
        """What a node keeps: an argument itself, the value of an output, or a shape; with LoD where there is one."""
        meta = self.bound.metas[i] if side == "in" else self.bound.outputs[i]
        if meta is None:
            return "None"
        value, lod = (f"x{i}", f"l{i}") if side == "in" else (f"r{i}", f"m{i}")
        if not whole:
            return f"({value}.shape, {lod if meta.lod_level else '()'})"
        if side == "in":
            return f"a{i}"
        return f"({value}, {lod})" if meta.lod_level else value

    def _result(self) -> str:
        def texts(slot: str) -> list[str]:
            return [f"o{j}" if self.bound.outputs[j] is not None else "None" for j in self.outs[slot]]

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


class _EagerKernelCode(KernelCode):
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
            return self.named("context", OperatorContext(op, {}, self._run))
        return f"KernelContext({self.named('op', op)}, {lods}, run)"

    def as_array(self, made: Value, returned: Any) -> Iterator[str]:
        if self.xp is np:
            yield f"if {made.name}.__class__ is not ndarray: {made.name} = xp.asarray({made.name})"

    def share_lod(self, made: Value, source: Value) -> Iterator[str]:
        yield f"{made.lod} = {source.lod}"
