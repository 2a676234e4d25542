"""Generates the function that serves all calls of one op expression with arguments of the same TensorMetas.

It is a plan of one op, between statements that take values out of tensors and others that make tensors of results.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from oprack.eager_tensor import Edge, Node, Tensor, lend_without_gradient, share_memory
from oprack.eager_tensor.meta import TensorMeta
from oprack.eager_tensor.tensor import Rule
from oprack.interpreter.bound_expr import BoundExpr
from oprack.interpreter.op_expr import OpExpr, result_class
from oprack.python.interruption import let_interruptions_pass
from oprack.runtime.plan.binding import Bound, Local
from oprack.runtime.plan.codegen import SegmentGenerator, generated_function
from oprack.tensor import LoDTensor

# Infinities and NaN are values like others, here as in programs; `check_finite` finds the op that makes them. To set
# NumPy's error state for every call would take longer than many a call.
warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"oprack(_\w+)?(\.|$)")


def bare(value: Any) -> tuple[Any, Any]:
    """Value and LoD of what the reference path left in a variable."""
    return (value.array, value.lod) if isinstance(value, LoDTensor) else (value, [])


def may_overwrite(array: Any) -> bool:
    """Whether an op in place may write to an array's memory."""
    flags = array.flags
    return bool(flags.c_contiguous and flags.owndata and getattr(flags, "writeable", True))


def put(buffer: Any, result: Any) -> Any:
    """A result in the memory of a buffer that it fits, if there is one."""
    if buffer is None or buffer.shape != result.shape or buffer.dtype != result.dtype:
        return result
    buffer[...] = result
    return buffer


class RuleOfOp(Rule, Protocol):
    """What a recorded call of an op leaves for its gradients; `BackwardRule` of autograd.

    Attributes:
        wrt: Flat positions of the arguments that require gradients.
        saved: The values that the gradients read: ("in" or "out", position, whether whole values are needed).
    """

    wrt: list[int]
    saved: list[tuple[str, int, bool]]


class Wrapping(Protocol):
    """What tensors of outputs are, where a call runs on parts of tensors that lie on several ranks."""

    def meta(self, j: int, made: TensorMeta) -> TensorMeta:
        """The meta of output j, whose part has meta `made`."""

    def shape(self, j: int) -> tuple[int, ...] | None:
        """The logical shape of output j; None: that of its part."""

    def weighing(self, j: int, made: TensorMeta) -> Callable[[Any], Any] | None:
        """What makes this rank's summand of output j of what was computed; None: nothing has to be done."""

    def kept(self, x: Tensor) -> Tensor:
        """What a gradient reads of an argument."""


class CallGenerator:
    """Generates `call(_a0, _a1, ...)`; with `values=` it wraps what the reference path has computed.

    In the code _a is an argument, v a value, lod its LoD and own whether its memory may be overwritten; _o is the
    tensor of an output.

    Args:
        bound: The call.
        rule: How its gradients are computed; None: it is not recorded.
        wrapping: What tensors of outputs are, other than new ones of this process.
    """

    def __init__(self, bound: BoundExpr, rule: RuleOfOp | None, wrapping: Wrapping | None = None) -> None:
        self.bound, self.rule, self.expr, self.wrapping = bound, rule, bound.expr, wrapping
        self.args = [f"_a{i}" for i in range(len(bound.metas))]
        self.places = _positions(self.expr.inputs)
        self.outs = _positions([(slot, len(wanted)) for slot, wanted in self.expr.outputs])
        self.names: dict[str, Any] = {}
        self.statements: list[str] = []
        if bound.generated:
            assert bound.record is not None and bound.check is not None
            plan = SegmentGenerator([bound.record], (), (), bound.run.device.xp, (), run=bound.run)
            step, self.statements = plan.one_op(bound.check)
            self.names = plan.names
            self.ins, self.made = _flat(step.ins, self.places), _flat(step.outs, self.outs)
        else:
            self.ins, self.made = _locals(bound.metas, 0), _locals(bound.outputs, len(bound.metas))
            self._reuse_memory()
        self.names |= {
            "__name__": __name__,
            "Tensor": Tensor,
            "Node": Node,
            "Edge": Edge,
            "ndarray": np.ndarray,
            "bare": bare,
            "may_overwrite": may_overwrite,
            "put": put,
            "share_memory": share_memory,
            "lend_without_gradient": lend_without_gradient,
            "let_interruptions_pass": let_interruptions_pass,
            "kept": wrapping and wrapping.kept,
            "reference": bound.reference,
            "activate": bound.run.device.activate,
            "ERRORS_OF_INFINITIES": (RuntimeWarning, FloatingPointError),  # if the user's settings make some
        }

    def generate(self) -> Callable[..., Any]:
        """The function, with its code where tracebacks find it."""
        lines = [*self._unpack(), "if values is None:", *_indented(self._call())]
        if finish := list(self._finish()):
            lines += ["else:", *_indented(finish)]
        lines += self._wrap()
        source = "\n".join([f"def call({', '.join([*self.args, 'values=None'])}):", *_indented(lines), ""])
        function: Any = generated_function(source, "call", f"eager {self.expr.type}", self.names)
        function.source = source
        return function  # type: ignore[no-any-return]

    def _reuse_memory(self) -> None:
        """Let the first output of an op in place go to its argument's memory, as plans do: others may have views."""
        for slot, out in self.expr.in_place.items():
            first, written = self.ins[self.places[slot][0]] if slot in self.places else None, self.outs.get(out)
            made = self.made[0] if written and written[0] == 0 else None
            if first and made and first.tensor and first.dtype == made.dtype:
                first.flag = f"own{first.name[1:]}"

    # Values -----------------------------------------------------------------------------------------------------------
    def _unpack(self) -> Iterator[str]:
        for a, x in zip(self.args, self.ins, strict=True):
            if x is not None:
                yield f"{x.name} = {a}._value"
                if x.lod:
                    yield f"{x.lod} = {a}._lod"
                if x.flag:
                    yield f"{x.flag} = may_overwrite({x.name})"

    def _call(self) -> Iterator[str]:
        args = f"({', '.join(self.args)}{',' if self.args else ''})"
        for x in self.expr.in_place if self.rule is not None else ():
            yield from (f"{self.args[i]}.require_writable({self.expr.type!r})" for i in self.places.get(x, ()))
        if not self.statements:
            yield f"values = reference({args})"
            yield from self._finish()
            return
        here = self.bound.place.kind == "cpu"
        yield "try:"
        yield from _indented(self.statements if here else ["with activate():", *_indented(self.statements)])
        yield "except Exception as _error:"
        yield "    let_interruptions_pass()"
        yield f"    values = reference({args})"  # says what is wrong
        yield "    if not isinstance(_error, ERRORS_OF_INFINITIES): raise"
        yield from _indented(self._finish())
        if self.bound.run.device.xp is np:
            for r in self.made:
                if r is not None and r.tensor:
                    yield f"if {r.name}.__class__ is not ndarray: {r.name} = xp.asarray({r.name})"

    def _finish(self) -> Iterator[str]:
        for j, r in enumerate(self.made):
            if r is not None:
                yield f"{r.name}, {r.lod or '_'} = bare(values[{j}])"
        first = next(iter(self.made), None)
        for x in self.ins:
            if x and x.flag and first and (not self.statements or any(x.flag in line for line in self.statements)):
                # as later calls do, so that views see what the first one writes, too
                yield f"{first.name} = put({x.name} if {x.flag} else None, {first.name})"

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
                r, meta = self.made[j], self.bound.outputs[j]
                if r is None or meta is None:
                    continue
                if tied is not None:
                    yield f"_o{j} = {self.args[tied]}"
                    yield f"_o{j}._overwrite({r.name}, {self._node_of(j)}, {self.expr.type!r})"
                    continue
                wants = self.rule is not None and j in self.rule.outputs
                meta = meta.with_grad if wants else meta
                yield f"_o{j} = Tensor()"
                yield from self._logical(j, meta, r.name)
                self.names[f"_K{j}"] = meta if self.wrapping is None else self.wrapping.meta(j, meta)
                yield f"_o{j}._value = {r.name}"
                yield f"_o{j}._meta = _K{j}"
                yield f"_o{j}._node = {self._node_of(j)}"
                if r.lod:
                    yield f"_o{j}._lod = {r.lod}"
                if viewed and self.wrapping is None:  # calls in place give other tensors new values there
                    yield f"share_memory(_o{j}, {self.args[self.places[viewed][0]]})"
                if self.rule is not None and not wants and ("out", j, True) in self.rule.saved:
                    yield f"lend_without_gradient(_n, {j}, _o{j})"
        yield f"return {self._result()}"

    def _logical(self, j: int, meta: TensorMeta, value: str) -> Iterator[str]:
        """What makes an output a tensor of which its value is a part."""
        if self.wrapping is None:
            return
        shape, weighing = self.wrapping.shape(j), self.wrapping.weighing(j, meta)
        yield f"_o{j}._logical_shape = {f'{value}.shape' if shape is None else shape}"
        if weighing is not None:
            self.names[f"_w{j}"] = weighing
            yield f"{value} = _w{j}({value})"

    def _node_of(self, j: int) -> str:
        if self.rule is None or j not in self.rule.outputs:
            return "None"
        if len(self.rule.outputs) == 1:
            return "_n"
        return f"Edge(_n, {self.rule.outputs.index(j)})"

    def _node(self) -> Iterator[str]:
        rule = self.rule
        if rule is None:
            return
        self.names["_rule"] = rule
        yield "_n = Node()"
        yield "_n.rule = _rule"
        yield f"_n.next = ({', '.join(f'{self.args[i]}._node' for i in rule.wrt)},)"
        saved = [self._saved(*s) for s in rule.saved]
        yield f"_n.saved = ({', '.join(saved)}{',' if saved else ''})"
        outputs = [self.made[j] for j in rule.outputs]
        if len(outputs) > 1:
            yield f"_n.shapes = ({', '.join(f'{r.name}.shape' for r in outputs if r is not None)},)"
        tracked = [
            i for side, i, whole in rule.saved if side == "in" and whole and (k := self.bound.metas[i]) and k.tracked
        ]
        if tracked:
            yield f"_n.versions = {{{', '.join(f'{i}: {self.args[i]}._version' for i in tracked)}}}"

    def _saved(self, side: str, i: int, whole: bool) -> str:
        """What a node keeps: an argument itself, the value of an output, or a shape; with LoD where there is one."""
        x = self.ins[i] if side == "in" else self.made[i]
        if x is None:
            return "None"
        if not whole:
            return f"({x.name}.shape, {x.lod or '()'})"
        if side == "in":
            return self.args[i] if self.wrapping is None else f"kept({self.args[i]})"
        return f"({x.name}, {x.lod})" if x.lod else x.name

    def _result(self) -> str:
        def texts(slot: str) -> list[str]:
            return [f"_o{j}" if self.bound.outputs[j] is not None else "None" for j in self.outs[slot]]

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


def _positions(counts: Sequence[tuple[str, int]]) -> dict[str, list[int]]:
    """By slot the positions of its tensors among all."""
    positions, k = {}, 0
    for slot, n in counts:
        positions[slot] = list(range(k, k + n))
        k += n
    return positions


def _flat(bound: Bound, positions: dict[str, list[int]]) -> list[Local | None]:
    """Local variables in the order of positions; None for what a kernel has left out."""
    return [x for slot, at in positions.items() for x in [*bound.get(slot, ()), *[None] * len(at)][: len(at)]]


def _locals(metas: Sequence[TensorMeta | None], first: int) -> list[Local | None]:
    """What the code calls the values of a call that runs on the reference path."""
    return [
        None if m is None else Local(f"v{k}", f"lod{k}" if m.lod_level else "", m.container is LoDTensor, m.dtype, k)
        for k, m in enumerate(metas, first)
    ]


def _indented(lines: Iterable[str]) -> list[str]:
    return ["    " + line for line in lines]
