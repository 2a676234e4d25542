"""Generates the function that computes the gradients of a recorded call's arguments."""

from __future__ import annotations

import linecache
import weakref
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

from oprack.autograd.summation import sum_expr
from oprack.eager_tensor import Edge, Tensor
from oprack.interpreter.op_expr import OpExpr
from oprack.op.info import OpInfo
from oprack.packs.manager import default_manager
from oprack.tensor.meta import tensor_meta

if TYPE_CHECKING:
    from oprack.autograd.backward_rule import BackwardRule, Source, Step

_number = count()


class BackwardGenerator:
    """Generates `back(node, gradients, apply, plain)`; see BackwardRule.run.

    In the generated code, v<i> is a saved tensor, g<i> the incoming gradient of an output, t_<n>_<i> a temporary, and
    d<i> the computed gradient of an argument.

    Args:
        rule: How the gradients of a call's inputs are computed.
        present: Which outputs receive a gradient. Gradient ops that none reaches are left out, so there is one function
            for each combination that occurs.
        create_graph: Whether saved outputs are connected to the graph, so that the gradients can be differentiated.
    """

    def __init__(self, rule: BackwardRule, present: Sequence[bool], create_graph: bool) -> None:
        self.rule, self.present, self.create_graph = rule, present, create_graph
        self._names: dict[str, Any] = {"Tensor": Tensor, "Edge": Edge, "rule": rule, "__name__": __name__}
        self._computed: set[str] = set()  # outputs of gradient ops that the code has assigned so far
        self._ready: set[str] = set()  # saved tensors and incoming gradients that the code has assigned so far

    def generate(self) -> Callable[..., Any]:
        """Compile the function, and register its source with linecache so that tracebacks show it."""
        body: list[str] = []
        for n, step in enumerate(self.rule.steps):
            body += self._step(n, step)
        body += self._same()
        results = [f"d{i}" if f"d{i}" in self._computed else "None" for i in self.rule.wrt]
        body.append(f"return ({', '.join(results)},)")
        lines = ["s = node.saved"]
        # Saved outputs must not have been overwritten since; saved inputs are checked one by one in `_saved`.
        if any(side == "out" and whole for side, _, whole in self.rule.saved):
            lines.append("if node.lent: rule.check_outputs(node)")
        source = "def back(node, gradients, apply, plain):\n" + "".join(f"    {line}\n" for line in [*lines, *body])
        filename = f"<gradient of {self.rule.bound.expr.type} {next(_number)}>"
        linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
        exec(compile(source, filename, "exec"), self._names)
        function = self._names.pop("back")
        # The source goes with the function; otherwise a long session would fill linecache.
        weakref.finalize(function, linecache.cache.pop, filename, None)
        return function  # type: ignore[no-any-return]

    def _step(self, n: int, step: Step) -> list[str]:
        """The lines that call a gradient op; none when no gradient flows into it."""
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
        # Looks up the generated call directly, to save the overhead of the interpreter.
        lines.append(f"call = calls{n}.get(({metas},)) if plain else None")
        result = f"call({passed}) if call is not None else apply(E{n}, ({passed},))"
        lines.append(f"{', '.join(targets)}{',' if len(targets) == 1 else ''} = {result}")
        return lines + sums

    def _inputs(self, step: Step, info: OpInfo, lines: list[str]) -> dict[str, list[str]] | None:
        """Expressions of the inputs by slot; lines that they need go into `lines`. None when no gradient flows in."""
        by_slot: dict[str, list[str]] = {}
        arrived = False
        for slot, sources in step.sources.items():
            is_gradient = sources[0][0] != "saved"
            present = [self._is_present(s) for s in sources]
            arrived = arrived or (is_gradient and any(present))
            if is_gradient and not any(present) and slot in info.proto.inputs and info.proto.inputs[slot].dispensable:
                continue
            by_slot[slot] = [self._text(s, h, lines) for s, h in zip(sources, present, strict=True)]
        return by_slot if arrived else None

    def _targets(self, n: int, targets: Sequence[int | str | None]) -> tuple[list[str], list[str]]:
        """Names of a gradient op's outputs (an argument's gradient, a temporary, or nothing), and lines that sum."""
        names: list[str] = []
        sums: list[str] = []
        for t in targets:
            name = "_" if t is None else f"t_{n}_{len(names)}" if isinstance(t, str) else f"d{t}"
            if isinstance(t, str):
                self._names[f"label {t}"] = name
            elif name in self._computed:
                # An earlier gradient op has computed a part of the same gradient.
                self._names["SUM"] = sum_expr(2)
                part = f"p_{n}_{len(names)}"
                sums.append(f"{name} = apply(SUM, ({name}, {part}))")
                name = part
            names.append(name)
            if t is not None:
                self._computed.add(name)
            if isinstance(t, int) and self.rule.may_be_complex(t):
                sums.insert(0, f"{name} = rule.real_part({name})")
        return names, sums

    def _is_present(self, source: Source) -> bool:
        kind, which = source
        if kind == "grad":
            return bool(self.present[which])
        return kind == "saved" or (kind == "temporary" and f"label {which}" in self._names)

    def _text(self, source: Source, present: bool, lines: list[str]) -> str:
        kind, which = source
        if kind == "saved":
            return self._saved(which, lines)
        if kind == "temporary":
            return str(self._names[f"label {which}"]) if present else "None"
        if kind == "none":
            return "None"
        name = f"g{which}"
        if name not in self._ready:
            self._ready.add(name)
            lines.append(f"{name} = gradients[{which}]" if present else f"{name} = rule.zeros(node, {which})")
        return name

    def _saved(self, k: int, lines: list[str]) -> str:
        """Emit the lines that wrap a saved value in a tensor, once; returns the name of the tensor."""
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
            # Only memory that was written or is shared has a version to compare.
            lines.append(f"if {name}._memory is not None: rule.check_input(node, {i}, {name})")
            return name
        recorded = self.create_graph and i in rule.outputs
        # A saved output is wrapped in a new tensor: saving the tensor itself would create a reference cycle, since it
        # refers to the node.
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
        """The lines for inputs whose gradient equals that of an output, so that no op is needed."""
        rule = self.rule
        lines = []
        for x, out in ((x, out) for step in rule.steps for x, out in step.grad.same.items()):
            pairs = zip(rule.positions["in"].get(x, ()), rule.positions["out"].get(out, ()), strict=False)
            for i, j in pairs:
                if i in rule.wrt and f"d{i}" not in self._computed and j in rule.outputs:
                    lines.append(f"d{i} = gradients[{rule.outputs.index(j)}]")
                    self._computed.add(f"d{i}")
        return lines


def _gradient_expr(step: Step, info: OpInfo, by_slot: Mapping[str, Sequence[str]]) -> OpExpr:
    """The gradient op of a step, as an expression with the inputs that are present and the outputs that are needed."""
    attrs = info.checker.check(step.grad.attrs) if info.checker is not None else dict(step.grad.attrs)
    inputs = tuple((slot, len(by_slot[slot])) for slot in info.proto.inputs if by_slot.get(slot))
    flags_by_slot = {slot: tuple(t is not None for t in step.targets.get(slot, ())) for slot in info.proto.outputs}
    outputs = tuple((slot, flags) for slot, flags in flags_by_slot.items() if any(flags))
    return OpExpr(info, attrs, inputs, outputs, flat=True)
