"""Generates the function of a segment from the records of a traced run."""

from __future__ import annotations

import keyword
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

import numpy as np

from oprack.runtime.kernel_context import KernelContext
from oprack.runtime.plan.kernel_code import KernelCode, Value
from oprack.runtime.plan.shape_check import ShapeCheck
from oprack.runtime.record import OpRecord
from oprack.tensor import LoDTensor, SelectedRows, ShapeOnly
from oprack.types import EMPTY_VAR

# Bytes up to which a result gets a new array even where an input's memory is free.
_SMALL = 1 << 16
_LOCALS = ("run", "result", "segment", "met", "key")


@dataclass
class Local(Value):
    """A local variable of the generated function, one for each time that a variable is written.

    buffer: number of the memory; views of each other share it. used: last record that reads it; shaped: last one that
    needs no more than its shape. held: somebody else
    holds the value, too, for longer. flag: parameter that says whether the caller's memory may be overwritten, "" when
    nobody asks.
    """

    buffer: int
    external: bool = False
    held: bool = False
    used: int = -1
    shaped: int = -1
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


@dataclass(frozen=True)
class Source:
    """Text of a function `segment(run, ...)`. lines: line -> index of the record."""

    text: str
    lines: Mapping[int, int]


@dataclass(frozen=True)
class _Written:
    """Statements of one op. ask, compare: of its shape rule; by_shapes: whether what that says follows from shapes."""

    ask: list[str]
    by_shapes: bool
    call: list[str]
    compare: list[str]
    meet: list[str]
    drop: list[str]


@dataclass
class Generated:
    """The generated functions, the names that they use, and how to call them.

    source: for shapes that were met before. asking: for those that are new to it, which asks every op's shape rule.
    meets: whether it meets shapes that only a kernel knows. slots: per record and slot, the locals of its inputs.
    """

    source: Source
    asking: Source
    namespace: dict[str, Any]
    inputs: list[Port]
    outputs: list[Port]
    meets: bool
    slots: list[Bound]


@dataclass
class _Step:
    """An op bound to locals. met: outputs whose shapes only its kernel knows."""

    record: OpRecord
    ins: Bound
    outs: Bound
    check: ShapeCheck
    met: list[Local]


class SegmentGenerator:
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
        self._names: dict[str, Any] = {"LoDTensor": LoDTensor, "KernelContext": KernelContext}
        self._names |= {"ShapeOnly": ShapeOnly, "xp": xp}
        self._functions: dict[int, str] = {}

    def generate(self) -> Generated:
        """Bind every op to locals first: only then is it known where each local is used last."""
        steps = [self._bind(i, record) for i, record in enumerate(self._records)]
        entered = {id(local) for _, local in self._inputs}
        returned = [(n, loc) for n, loc in self._env.items() if n in self._keep and id(loc) not in entered]
        for _, local in returned:
            local.used = len(steps)
        written = [self._write(i, step) for i, step in enumerate(steps)]
        values = [v for _, loc in returned for v in (loc.name, loc.lod) if v]
        seen = Counter(loc.buffer for _, loc in (*self._inputs, *returned))
        shared = {buffer for buffer, count in seen.items() if count > 1}
        return Generated(
            self._function(written, values, asking=False),
            self._function(written, values, asking=True),
            self._names,
            [Port(n, loc.tensor, bool(loc.lod), bool(loc.flag), loc.buffer in shared) for n, loc in self._inputs],
            [Port(n, loc.tensor, bool(loc.lod), shared=loc.buffer in shared) for n, loc in returned],
            any(step.met for step in steps),
            [step.ins for step in steps],
        )

    def _write(self, i: int, step: _Step) -> _Written:
        first, *others = self._call(i, step)
        call = [f"{first}  # {_comment(step.record)}", *others]
        asked, compared = self._check(i, step), self._compare(i, step)
        return _Written(asked, step.check.by_shapes, call, compared, self._meet(i, step), self._drop(i, step))

    def _function(self, written: Sequence[_Written], values: Sequence[str], asking: bool) -> Source:
        """The function for shapes that are new (asking), or for those that were met: it asks for nothing that follows
        from shapes, until an op comes that alone knows the shapes of its outputs.
        """
        entering = ", ".join(f"{local.name} = {_printable(name)}" for name, local in self._inputs)
        body = [f"    # {line}" for line in wrap(entering, 110)]
        if asking or any(w.meet for w in written):
            body.append("    met = run.shapes_met")
        lines: dict[int, int] = {}
        for i, w in enumerate(written):
            asked = asking or not w.by_shapes
            for text in (*(w.ask if asked else ()), *w.call, *(w.compare if asked else ()), *w.meet, *w.drop):
                body.append("    " + text)
                lines[len(body) + 1] = i
            asking = asking or bool(w.meet)
        body.append(f"    return [{', '.join(values)}]")
        parameters = [p for _, loc in self._inputs for p in (loc.name, loc.lod, loc.flag) if p]
        return Source("\n".join([f"def segment({', '.join(['run', *parameters])}):", *body, ""]), lines)

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
        for slot, values in record.inputs.items():
            ins[slot] = [
                None if v is None or n == EMPTY_VAR else self._read(n, v)
                for n, v in zip(op.inputs[slot], values, strict=True)
            ]
        for slot, locals_ in ins.items():
            for local in locals_:
                if local is not None and local.tensor and slot in op.info.no_need_buffer_vars:
                    local.shaped = i
                elif local is not None:
                    local.used = i
        check = ShapeCheck(record)
        viewed, met = None, list[Local]()
        for kernel in record.chosen.chain():
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
                if isinstance(value, LoDTensor | SelectedRows) and (slot, len(made)) not in check.known_outputs:
                    met.append(local)
                made.append(local)
            outs[slot] = made
        return _Step(record, ins, outs, check, met)

    # Writing ----------------------------------------------------------------------------------------------------------
    def _drop(self, i: int, step: _Step) -> list[str]:
        """Statements that let go of what the op needs last: values, and buffers of which only shapes are read later."""
        mine = {x.name: x for x in (*_present(step.ins), *_present(step.outs)) if not x.held}.values()
        dead = [x.name for x in mine if max(x.used, x.shaped) == i]
        hollow = [x.name for x in mine if x.used == i < x.shaped]
        texts = [f"{name} = ShapeOnly({name})" for name in hollow]
        return [*texts, f"del {', '.join(dead)}"] if dead else texts

    def _check(self, i: int, step: _Step) -> list[str]:
        """The statement that asks the op's shape rule: when shapes are new, or always if its answer may differ."""
        check = step.check
        if not check.needed:
            return []
        shapes = "".join(f"{x.name}.shape, " for x in _present(step.ins)).rstrip()
        code = self._code(step)
        given = [code.whole(x) for xs in step.ins.values() for x in xs]
        asked = f"{self._named(f'shapes{i}', check)}({', '.join(['run', *given])})"
        seen = self._named(f"seen{i}", check.seen)
        return [
            f"_dims = {asked}" + (f" if met is None and ({shapes}) not in {seen} else None" if check.by_shapes else "")
        ]

    def _compare(self, i: int, step: _Step) -> list[str]:
        """The statement that holds what the kernel made to what the shape rule said, when it was asked."""
        made = [x.name for x in (step.outs[slot][k] for slot, k in step.check.made) if x]
        if not step.check.needed or not made:
            return []
        return [f"if _dims: {self._named(f'shapes{i}', step.check)}.compare(_dims, {', '.join(made)})"]

    def _meet(self, i: int, step: _Step) -> list[str]:
        """Statements after an op that alone knows the shapes of some outputs: what follows depends on these as well."""
        if not step.met:
            return []
        shapes, after = "".join(f"{x.name}.shape, " for x in step.met).rstrip(), self._named(f"after{i}", {})
        return [f"met = {after}.get(key := (met, {shapes})) or run.meet({after}, key)"]

    def _code(self, step: _Step) -> _SegmentCode:
        return _SegmentCode(step.record, step.ins, step.outs, self._xp, self._named)

    def _call(self, i: int, step: _Step) -> list[str]:
        """The op's statements."""
        # where a small array comes, to find out whether a buffer is free costs more than a new one
        made, after = self._code(step).assigned(self._buffer_for(i, step))
        return [*made, *after]

    def _named(self, hint: str, value: Any) -> str:
        """What the code calls an object; the same name for a function that it knows already."""
        if callable(value) and id(value) in self._functions:
            return self._functions[id(value)]
        taken = keyword.iskeyword(hint) or hint in (*self._names, *_LOCALS) or hint[:1] in "v_"
        name = f"{hint}_{len(self._names)}" if taken or hint.startswith(("lod", "own")) else hint
        self._names[name] = value
        if callable(value):
            self._functions[id(value)] = name
        return name

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


class _SegmentCode(KernelCode):
    """Calls among the locals of a segment."""

    def whole(self, value: Local | None) -> str:
        """The value as a variable would hold it."""
        if value is None:
            return "None"
        return self.lod_tensor(value) if value.tensor else value.name

    def lod_tensor(self, value: Local) -> str:
        return f"LoDTensor({value.name}, {value.lod or None}, check=False)"

    def context(self) -> str:
        return f"KernelContext({self.named('op', self.record.op)}, {self.lods()}, run)"

    def as_array(self, made: Local, returned: Any) -> Iterator[str]:
        if isinstance(returned, np.generic) or not hasattr(returned, "dtype"):
            yield f"{made.name} = xp.asarray({made.name})"

    def share_lod(self, made: Local, source: Local) -> Iterator[str]:
        made.lod = source.lod  # no statement: later ones read the input's
        return iter(())


def _comment(record: OpRecord) -> str:
    """The variables that an op writes, for people who read the code."""
    return ", ".join(_printable(n) for names in record.op.outputs.values() for n in names if n != EMPTY_VAR)


def _printable(name: str) -> str:
    """A name comes with the model: one with a line break in it would go on as code."""
    return name if name.isprintable() else ascii(name)


def _present(bound: Bound) -> Iterator[Local]:
    return (local for locals_ in bound.values() for local in locals_ if local is not None)
