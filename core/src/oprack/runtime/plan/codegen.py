"""Generates the function of a segment from the records of a traced run."""

from __future__ import annotations

import inspect
import keyword
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from textwrap import wrap
from typing import Any

import numpy as np

from oprack.kernel import Candidate, KernelCall
from oprack.op.proto import slot_name
from oprack.runtime.kernel_context import KernelContext
from oprack.runtime.plan.record import OpRecord
from oprack.tensor import LoDTensor, LoDTensorArray, SelectedRows
from oprack.types import EMPTY_VAR

# Bytes up to which a result gets a new array even where an input's memory is free.
_SMALL = 1 << 16


@dataclass
class Local:
    """A local variable of the generated function, one for each time that a variable is written.

    name: holds the bare array of a LoDTensor, or the object itself when `tensor` is False. lod: the local with its
    offsets, "" when it has none. buffer: number of the memory; views of each other share it. used: last record that
    reads it. held: somebody else holds the value, too, for longer. flag: parameter that says whether the caller's
    memory may be overwritten, "" when nobody asks.
    """

    name: str
    lod: str
    tensor: bool
    dtype: Any
    buffer: int
    external: bool = False
    held: bool = False
    used: int = -1
    flag: str = ""


Bound = dict[str, list[Local | None]]


@dataclass(frozen=True)
class Port:
    """A variable that enters or leaves a segment.

    lod: its offsets follow the array. flag: then follows whether its memory may be overwritten. shared: another
    variable that enters or leaves may be on the same memory.
    """

    var: str
    tensor: bool
    lod: bool
    flag: bool = False
    shared: bool = False


@dataclass
class Generated:
    """Source of `segment(run, ...)`, the names that it uses, and how to call it.

    lines: line -> index of the record. slots: per record and slot, the locals (array, lod) of its inputs.
    """

    source: str
    namespace: dict[str, Any]
    inputs: list[Port]
    outputs: list[Port]
    lines: dict[int, int] = field(default_factory=dict)
    slots: list[dict[str, list[tuple[str, str]]]] = field(default_factory=list)


@dataclass
class _Step:
    record: OpRecord
    ins: Bound
    outs: Bound


class Generator:
    """Generates one segment.

    keep: variables that are read afterwards, and so are returned. parameters: those that the scope goes on holding.
    """

    def __init__(
        self, records: Sequence[OpRecord], keep: Collection[str], xp: Any, parameters: Collection[str] = ()
    ) -> None:
        self._records, self._keep, self._xp = records, keep, xp
        written = {n for r in records for names in r.op.outputs.values() for n in names}
        self._held = {n for n in parameters if n not in written}
        self._env: dict[str, Local] = {}
        self._inputs: list[tuple[str, Local]] = []
        self._buffers: list[list[Local]] = []
        self._count = 0
        self._names: dict[str, Any] = {"LoDTensor": LoDTensor, "KernelContext": KernelContext, "xp": xp}
        self._functions: dict[int, str] = {}
        self._prepared: dict[tuple[int, int], tuple[str, frozenset[str]] | None] = {}

    def generate(self) -> Generated:
        """Bind every op to locals first: only then is it known where each local is used last."""
        steps = [self._bind(i, record) for i, record in enumerate(self._records)]
        entered = {id(local) for _, local in self._inputs}
        returned = [(n, loc) for n, loc in self._env.items() if n in self._keep and id(loc) not in entered]
        for _, local in returned:
            local.used = len(steps)
        entering = ", ".join(f"{local.name} = {_printable(name)}" for name, local in self._inputs)
        body = [f"    # {line}" for line in wrap(entering, 110)]
        lines: dict[int, int] = {}
        for i, step in enumerate(steps):
            first, *others = self._call(i, step)
            for text in (f"{first}  # {_comment(step.record)}", *others, *self._drop(i, step)):
                body.append("    " + text)
                lines[len(body) + 1] = i
        values = [v for _, loc in returned for v in (loc.name, loc.lod) if v]
        body.append(f"    return [{', '.join(values)}]")
        parameters = [p for _, loc in self._inputs for p in (loc.name, loc.lod, loc.flag) if p]
        source = "\n".join([f"def segment({', '.join(['run', *parameters])}):", *body, ""])
        seen = Counter(loc.buffer for _, loc in (*self._inputs, *returned))
        shared = {buffer for buffer, count in seen.items() if count > 1}
        return Generated(
            source,
            self._names,
            [Port(n, loc.tensor, bool(loc.lod), bool(loc.flag), loc.buffer in shared) for n, loc in self._inputs],
            [Port(n, loc.tensor, bool(loc.lod), shared=loc.buffer in shared) for n, loc in returned],
            lines,
            [{s: [(x.name, x.lod) if x else ("", "") for x in xs] for s, xs in step.ins.items()} for step in steps],
        )

    # Binding ----------------------------------------------------------------------------------------------------------
    def _local(self, value: Any, buffer: int | None = None) -> Local:
        k, self._count = self._count, self._count + 1
        if buffer is None:
            buffer = len(self._buffers)
            self._buffers.append([])
        tensor = isinstance(value, LoDTensor)
        local = Local(
            f"v{k}",
            f"lod{k}" if tensor and value.lod else "",
            tensor,
            value.array.dtype if tensor else None,
            buffer,
        )
        self._buffers[buffer].append(local)
        return local

    def _read(self, var: str, value: Any) -> Local:
        local = self._env.get(var)
        if local is None:
            local = self._env[var] = self._local(value)
            local.external, local.held = True, var in self._held
            self._inputs.append((var, local))
        return local

    def _bind(self, i: int, record: OpRecord) -> _Step:
        op, ins, outs = record.op, Bound(), Bound()
        for slot, values in record.given.items():
            ins[slot] = [
                None if v is None or n == EMPTY_VAR else self._read(n, v)
                for n, v in zip(op.inputs[slot], values, strict=True)
            ]
        for local in _present(ins):
            local.used = i
        viewed = None
        for kernel in by_size(record.chosen):
            if kernel.spec.view:
                viewed = next((x for x in ins.get(kernel.signature.inputs[0][0], ()) if x is not None), None)
        for slot, values in record.outputs.items():
            made: list[Local | None] = []
            for name, value in zip(op.outputs[slot], values, strict=False):
                if value is None or name == EMPTY_VAR:
                    made.append(None)
                    continue
                local = self._env[name] = self._local(value, viewed.buffer if viewed else None)
                local.used = i
                made.append(local)
            outs[slot] = made
        return _Step(record, ins, outs)

    # Writing ----------------------------------------------------------------------------------------------------------
    def _drop(self, i: int, step: _Step) -> list[str]:
        dead = [x.name for x in (*_present(step.ins), *_present(step.outs)) if x.used == i and not x.held]
        return [f"del {', '.join(dict.fromkeys(dead))}"] if dead else []

    def _call(self, i: int, step: _Step) -> list[str]:
        """The op's statements: its kernel called, or the one of several that suits the size of the first input."""
        largest, *others = by_size(step.record.chosen)
        call, above = self._invoke(i, step, largest, self._buffer_for(i, step)), largest
        conditions: list[str] = []
        for kernel in others:
            first = next(iter(step.ins.get(above.signature.inputs[0][0], ())), None)
            if first is None:  # as a size of 0
                call, conditions = self._invoke(i, step, kernel, "None"), []
            else:
                # a small array costs less than to find out whether a buffer is free
                small = self._invoke(i, step, kernel, "None")
                conditions.insert(0, f"{small} if {first.name}.size < {above.spec.least} else")
            above = kernel
        call = " ".join([*conditions, call])
        return self._assign(step, call)

    def _invoke(self, i: int, step: _Step, kernel: Candidate, buffer: str) -> str:
        """A kernel's call, or that of what it prepared for the op. buffer: text of what to give it as `out`."""
        signature, attrs = kernel.signature, step.record.op.attrs
        args = [self._argument(step.ins.get(s), dup, c) for s, dup, c in signature.inputs]
        prepared = self._prepare(i, step, kernel)
        if prepared is None:
            function, injected = self._function(kernel.spec.function), frozenset(signature.injected)
            args += [f"{p}={self._constant(attrs[a], p)}" for p, a in signature.attrs]
        else:
            function, injected = prepared
            while args and args[-1] == "None":
                args.pop()
        if "ctx" in injected:
            args.append(f"ctx={self._context(step)}")
        if "xp" in injected:
            args.append("xp=xp")
        if "out" in injected and (buffer != "None" or prepared is None):
            args.append(f"out={buffer}")
        return f"{function}({', '.join(args)})"

    def _prepare(self, i: int, step: _Step, kernel: Candidate) -> tuple[str, frozenset[str]] | None:
        """What the kernel prepared for this op: its name here, and what it wants besides inputs; None when nothing."""
        if kernel.spec.prepare is None:
            return None
        key = (i, id(kernel.spec.function))
        if key not in self._prepared:
            op = step.record.op
            dtypes = {s: tuple(x.dtype if x else None for x in xs) for s, xs in step.ins.items()}
            function = kernel.spec.prepare(KernelCall(op.type, op.attrs, dtypes, self._xp))
            found = None if function is None else (self._named(op.type, function), wanted_by(function, self._xp))
            self._prepared[key] = found
        return self._prepared[key]

    def _argument(self, locals_: list[Local | None] | None, duplicable: bool, container: str) -> str:
        if locals_ is None:
            return "[]" if duplicable else "None"
        texts = [self._value(x, container) for x in locals_]
        return f"[{', '.join(texts)}]" if duplicable else texts[0]

    def _value(self, local: Local | None, container: str) -> str:
        if local is None:
            return "None"
        if local.tensor and container:
            return f"LoDTensor({local.name}, {local.lod or None}, check=False)"
        return local.name

    def _constant(self, value: Any, hint: str) -> str:
        if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and abs(value) < 1e300):
            return repr(value)
        return self._named(hint, value)

    def _named(self, hint: str, value: Any) -> str:
        taken = keyword.iskeyword(hint) or hint in (*self._names, "run", "result", "segment") or hint[:1] in "v_"
        name = f"{hint}_{len(self._names)}" if taken or hint.startswith(("lod", "own")) else hint
        self._names[name] = value
        return name

    def _function(self, function: Any) -> str:
        found = self._functions.get(id(function))
        if found is None:
            found = self._functions[id(function)] = self._named(function.__name__, function)
        return found

    def _context(self, step: _Step) -> str:
        lods = [
            f"{slot!r}: [{', '.join(x.lod if x and x.lod else '[]' for x in xs)}]"
            for slot, xs in step.ins.items()
            if any(x and x.lod for x in xs)
        ]
        return f"KernelContext({self._named('op', step.record.op)}, {{{', '.join(lods)}}}, run)"

    def _buffer_for(self, i: int, step: _Step) -> str:
        """The memory of an input that the op may overwrite, when nobody reads it afterwards; else "None"."""
        op = step.record.op
        out_slot = next(iter(step.outs), "")
        x_slot = next((x for x, out in op.info.inplace.items() if out == out_slot), "")
        made, given = step.outs.get(out_slot), step.ins.get(x_slot)
        if not made or not given or made[0] is None or given[0] is None or not given[0].tensor:
            return "None"
        x, out = given[0], made[0]
        others = [loc for loc in self._buffers[x.buffer] if loc is not x and loc.used >= i]
        same_var = op.inputs[x_slot][0] == op.outputs[out_slot][0]
        reads = sum(y is x for ys in step.ins.values() for y in ys)
        if x.dtype != out.dtype or x.used != i or others or reads > 1 or (x.external and not same_var):
            return "None"
        if x.external:
            x.flag = x.flag or f"own{x.name[1:]}"
        # with a second tensor the result may be larger than X, by broadcasting, where X has a dim of 1
        seconds = [y for slot, ys in step.ins.items() if slot != x_slot for y in ys if y is not None and y.tensor]
        # for a small result a new array costs less than the conditions
        conditions = [x.flag] if x.flag else [f"{x.name}.nbytes > {_SMALL}"]
        if not same_var:
            conditions += [
                f"({y.name}.shape == {x.name}.shape or {y.name}.ndim <= {x.name}.ndim and 1 not in {x.name}.shape)"
                for y in seconds
            ]
        if not x.external:
            conditions += [f"{x.name}.flags.owndata"]
            conditions += [f"{x.name}.flags.writeable"] if self._xp is np else []  # CuPy's arrays always are
        return f"{x.name} if {' and '.join(conditions)} else None"

    def _assign(self, step: _Step, call: str) -> list[str]:
        record = step.record
        protos = list(record.op.info.proto.outputs)
        result = record.result
        after: list[str] = []
        if isinstance(result, dict):
            grads = any("@GRAD" in s for s in protos)
            lines = [f"result = {call}"]
            for key, value in result.items():
                slot = key if key in protos else slot_name(key, grads=grads)
                target = self._target(step, slot, value, after)
                if target != "_":
                    lines.append(f"{target} = result[{key!r}]")
            return [*lines, *after, "del result"]
        if isinstance(result, tuple):
            targets = [self._target(step, s, v, after) for s, v in zip(protos, result, strict=False)]
            return [f"{', '.join(targets)}{',' if len(targets) == 1 else ''} = {call}", *after]
        target = self._target(step, protos[0], result, after) if protos else "_"
        return [f"{target} = {call}", *after]

    def _target(self, step: _Step, slot: str, value: Any, after: list[str]) -> str:
        made = step.outs.get(slot)
        if not made or not any(made):
            return "_"
        many = step.record.op.info.proto.outputs[slot].duplicable and isinstance(value, list | tuple)
        values = list(value) if many else [value]
        texts = []
        for j, item in enumerate(values):
            local = made[j] if j < len(made) else None
            if local is None:
                texts.append("_")
                continue
            texts.append(local.name)
            after += self._finish(step, local, item, (slot, j))
        return f"[{', '.join(texts)}]" if many else texts[0]

    def _finish(self, step: _Step, local: Local, value: Any, position: tuple[str, int]) -> Iterator[str]:
        """Statements that turn what the kernel returned into the locals of an output."""
        if isinstance(value, LoDTensor):
            if local.lod:
                yield f"{local.lod} = {local.name}.lod"
            yield f"{local.name} = {local.name}.array"
            return
        if isinstance(value, SelectedRows | LoDTensorArray):
            return
        if isinstance(value, np.generic) or not hasattr(value, "dtype"):
            yield f"{local.name} = xp.asarray({local.name})"
        if local.lod:
            slot, j = next(s for s, target in step.record.shares if target == position)
            source = step.ins[slot][j]
            assert source is not None
            local.lod = source.lod


def by_size(chosen: Candidate) -> list[Candidate]:
    """A kernel and those that take over for smaller inputs."""
    return [chosen, *by_size(chosen.smaller)] if chosen.smaller is not None else [chosen]


def wanted_by(function: Any, xp: Any) -> frozenset[str]:
    """What of `ctx` and `out` a prepared function takes."""
    called = getattr(function, "func", function)
    if isinstance(called, xp.ufunc):
        return frozenset(["out"])
    parameters = inspect.signature(function).parameters.values()
    return frozenset(p.name for p in parameters if p.kind is p.KEYWORD_ONLY) & {"ctx", "out"}


def _comment(record: OpRecord) -> str:
    """The variables that an op writes, for people who read the code."""
    return ", ".join(_printable(n) for names in record.op.outputs.values() for n in names if n != EMPTY_VAR)


def _printable(name: str) -> str:
    """A name comes with the model: one with a line break in it would go on as code."""
    return name if name.isprintable() else ascii(name)


def _present(bound: Bound) -> Iterator[Local]:
    return (local for locals_ in bound.values() for local in locals_ if local is not None)
