"""Generates the function that computes the gradients of a recorded call's arguments."""

from __future__ import annotations

import linecache
import weakref
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

from oprack.autograd.summation import sum_expr
from oprack.interpreter.op_expr import OpExpr
from oprack.op.info import OpInfo
from oprack.packs.manager import default_manager
from oprack.tensor.eager_tensor import Tensor
from oprack.tensor.meta import tensor_meta
from oprack.tensor.node import Edge

if TYPE_CHECKING:
    from oprack.autograd.backward_rule import BackwardRule, Source, Step

_number = count()


class BackwardGenerator:
    """Generates `back(node, gradients, apply, plain)`; see BackwardRule.run.

    In the code v is a saved tensor, g a gradient that flows in, t a temporary, and d a gradient that is computed.

    Args:
        rule: How the gradients of a call's inputs are computed.
        present: Which of the outputs a gradient flows into. Gradient ops that none reaches are left out, so there is a
            function for each combination that occurs.
        create_graph: Whether saved outputs carry their own record, so that the gradients can be differentiated.
    """

    def __init__(self, rule: BackwardRule, present: Sequence[bool], create_graph: bool) -> None:
        self.rule, self.present, self.create_graph = rule, present, create_graph
        self._names: dict[str, Any] = {"Tensor": Tensor, "Edge": Edge, "rule": rule, "__name__": __name__}
        self._found: set[str] = set()
        self._ready: set[str] = set()

    def generate(self) -> Callable[..., Any]:
        """The function, with its code where tracebacks find it."""
        body: list[str] = []
        for n, step in enumerate(self.rule.steps):
            body += self._step(n, step)
        body += self._same()
        results = [f"d{i}" if f"d{i}" in self._found else "None" for i in self.rule.wrt]
        body.append(f"return ({', '.join(results)},)")
        lines = ["s = node.saved"]
        # memory that was overwritten since the call makes the gradient wrong; of inputs each checks itself
        if any(side == "out" and whole for side, _, whole in self.rule.saved):
            lines.append("if node.overwritten: rule.check_outputs(node)")
        source = "def back(node, gradients, apply, plain):\n" + "".join(f"    {line}\n" for line in [*lines, *body])
        filename = f"<gradient of {self.rule.bound.expr.type} {next(_number)}>"
        linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
        exec(compile(source, filename, "exec"), self._names)
        function = self._names.pop("back")
        # the text goes with the function, or a long session would fill the cache of lines
        weakref.finalize(function, linecache.cache.pop, filename, None)
        return function  # type: ignore[no-any-return]

    def _step(self, n: int, step: Step) -> list[str]:
        """The call of a gradient op; nothing when no gradient flows into it."""
        info = default_manager().op_info(step.grad.type)
        lines: list[str] = []
        by_slot = self._inputs(step, info, lines)
        if by_slot is None:
            return []
        expr = self._names[f"E{n}"] = _gradient_expr(step, info, by_slot)
        self._names[f"calls{n}"] = expr.calls
        args = [text for slot, _ in expr.inputs for text in by_slot[slot]]
        targets, sums = self._targets(n, [t for slot, _ in expr.outputs for t in step.targets[slot]])
        passed = ", ".join(args)
        metas = ", ".join("None" if a == "None" else f"{a}._meta" for a in args)
        # the table of generated calls is asked here, without the interpreter in between
        lines.append(f"call = calls{n}.get(({metas},)) if plain else None")
        result = f"call({passed}) if call is not None else apply(E{n}, ({passed},))"
        lines.append(f"{', '.join(targets)}{',' if len(targets) == 1 else ''} = {result}")
        return lines + sums

    def _inputs(self, step: Step, info: OpInfo, lines: list[str]) -> dict[str, list[str]] | None:
        """Texts of the inputs by slot, after `lines` that compute them; None when no gradient flows in."""
        by_slot: dict[str, list[str]] = {}
        arrived = False
        for slot, sources in step.sources.items():
            flows = sources[0][0] != "saved"
            here = [self._is_here(s) for s in sources]
            arrived = arrived or (flows and any(here))
            if flows and not any(here) and slot in info.proto.inputs and info.proto.inputs[slot].dispensable:
                continue
            by_slot[slot] = [self._text(s, h, lines) for s, h in zip(sources, here, strict=True)]
        return by_slot if arrived else None

    def _targets(self, n: int, targets: Sequence[int | str | None]) -> tuple[list[str], list[str]]:
        """Names of a gradient op's outputs (an argument's gradient, a temporary, or nothing), and lines that sum."""
        names: list[str] = []
        sums: list[str] = []
        for t in targets:
            name = "_" if t is None else f"t_{n}_{len(names)}" if isinstance(t, str) else f"d{t}"
            if isinstance(t, str):
                self._names[f"label {t}"] = name
            elif name in self._found:  # an earlier op has computed a part of this gradient
                # Two gradient ops that compute parts of one gradient.
                self._names["SUM"] = sum_expr(2)
                part = f"p_{n}_{len(names)}"
                sums.append(f"{name} = apply(SUM, ({name}, {part}))")
                name = part
            names.append(name)
            if t is not None:
                self._found.add(name)
            if isinstance(t, int) and self.rule.may_be_complex(t):
                sums.insert(0, f"{name} = rule.real_part({name})")
        return names, sums

    def _is_here(self, source: Source) -> bool:
        what, which = source
        if what == "grad":
            return bool(self.present[which])
        return what == "saved" or (what == "temporary" and f"label {which}" in self._names)

    def _text(self, source: Source, here: bool, lines: list[str]) -> str:
        what, which = source
        if what == "saved":
            return self._saved(which, lines)
        if what == "temporary":
            return str(self._names[f"label {which}"]) if here else "None"
        if what == "none":
            return "None"
        name = f"g{which}"
        if name not in self._ready:
            self._ready.add(name)
            lines.append(f"{name} = gradients[{which}]" if here else f"{name} = rule.zeros(node, {which})")
        return name

    def _saved(self, k: int, lines: list[str]) -> str:
        """Lines that make a tensor of what was saved; its name."""
        rule, bound = self.rule, self.rule.bound
        side, i, whole = rule.saved[k]
        like = bound.metas[i] if side == "in" else bound.outputs[i]
        if like is None:
            return "None"
        name = f"v{k}"
        if name in self._ready:
            return name
        self._ready.add(name)
        if not whole:
            lines.append(f"{name} = rule.hollow({k}, s[{k}])")
            return name
        if side == "in":
            lines.append(f"{name} = s[{k}]")
            # Only memory that was written to or is shared has a version to compare.
            lines.append(f"if {name}._memory is not None: rule.check_input(node, {i}, {name})")
            return name
        recorded = self.create_graph and i in rule.outputs
        # A saved output is wrapped anew: to save its tensor would close a circle with the node that it holds.
        plain = tensor_meta(like.container, like.dtype, like.place, like.lod_level)
        self._names[f"K{k}"] = plain.with_grad if recorded else plain
        lines += [f"{name} = Tensor()", f"{name}._meta = K{k}"]
        if like.lod_level:
            lines.append(f"{name}._value, {name}._lod = s[{k}]")
        else:
            lines.append(f"{name}._value = s[{k}]")
        node = "node" if len(rule.outputs) == 1 else f"Edge(node, {rule.outputs.index(i)})" if recorded else ""
        lines.append(f"{name}._node = {node if recorded else 'None'}")
        return name

    def _same(self) -> list[str]:
        """Inputs that have the gradient of an output without any op."""
        rule = self.rule
        lines = []
        for x, out in ((x, out) for step in rule.steps for x, out in step.grad.same.items()):
            pairs = zip(rule.positions["in"].get(x, ()), rule.positions["out"].get(out, ()), strict=False)
            for i, j in pairs:
                if i in rule.wrt and f"d{i}" not in self._found and j in rule.outputs:
                    lines.append(f"d{i} = gradients[{rule.outputs.index(j)}]")
                    self._found.add(f"d{i}")
        return lines


def _gradient_expr(step: Step, info: OpInfo, by_slot: Mapping[str, Sequence[str]]) -> OpExpr:
    """The gradient op of a step as an expression of the inputs that there are, with the outputs that are wanted."""
    attrs = info.checker.check(step.grad.attrs) if info.checker is not None else dict(step.grad.attrs)
    inputs = tuple((slot, len(by_slot[slot])) for slot in info.proto.inputs if by_slot.get(slot))
    wanted = {slot: tuple(t is not None for t in step.targets.get(slot, ())) for slot in info.proto.outputs}
    outputs = tuple((slot, flags) for slot, flags in wanted.items() if any(flags))
    return OpExpr(info, attrs, inputs, outputs, flat=True)
