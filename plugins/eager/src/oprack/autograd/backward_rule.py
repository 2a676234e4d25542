"""The gradients of a recorded call: the gradient program of its op, and the function generated from it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from oprack.autodiff.walk import Backward
from oprack.autograd.starting_gradients import zero_gradient
from oprack.autograd.unchanged import overwritten
from oprack.cache import Cache
from oprack.desc import BlockDesc, OpDesc
from oprack.eager_tensor import Edge, Tensor, new_tensor
from oprack.eager_tensor.meta import TensorMeta, tensor_meta
from oprack.errors import NotDifferentiableError
from oprack.interpreter.op_expr import OpExpr
from oprack.op.attrs import COMMON_ATTRS
from oprack.op.desc_rules import make_grad_ops, read_outputs
from oprack.packs.manager import default_manager
from oprack.runtime.plan.codegen import generated_function
from oprack.tensor import LoDTensor, ShapeOnly
from oprack.types import EMPTY_VAR

if TYPE_CHECKING:
    from oprack.eager_tensor import Node
    from oprack.interpreter.bound_expr import BoundExpr

_SHAPES = 256  # bounds the cache of stand-ins for tensors of which only the shape is read
ARRIVED = "@ARRIVED"


class BackwardRule:
    """How the gradients of a call's inputs are computed from those of its outputs.

    Attributes:
        wrt: Flat positions of the arguments that require gradients.
        outputs: Flat positions of the outputs that receive gradients.
        saved: The forward values that the gradient ops read: ("in" or "out", position, whether the values are needed or
            only shape and LoD).
        quick: The generated function for the usual case (one output, create_graph=False), once it exists.
    """

    quick: Callable[..., Any] | None = None

    def __init__(self, bound: BoundExpr, wrt: Sequence[int], visible: Sequence[int]) -> None:
        self.bound = bound
        self.wrt = _differentiable(bound.metas, wrt)
        self.outputs = _differentiable(bound.outputs, visible)
        self.differentiable = bound.expr.info.grad_op_maker is not None
        self.saved: list[tuple[str, int, bool]] = []
        # By create_graph and which outputs receive gradients. Freed with the rule, which lives as long as the generated
        # call.
        self._compiled: dict[Any, Callable[..., Any]] = {}
        # By name in the gradient program, positions of the forward values.
        self.ins = {n: i for i, n in enumerate(bound.names_in) if n != EMPTY_VAR}
        self.outs: dict[str, int] = {}
        self._hollows = Cache(_SHAPES)
        self.empty = not (self.wrt and self.outputs)
        """Whether no gradient flows back through the call, by the op's definition."""
        if self.differentiable and not self.empty:
            if len(self.outputs) > 1:
                # From some no gradient flows back, as the op defines it.
                grads = [g for g in make_grad_ops(bound.expr.info, bound.desc) if not g.restores]
                slots = [slot for slot, names in bound.desc.outputs.items() for _ in names]
                self.outputs = [j for j in self.outputs if slots[j] in read_outputs(grads)]
            self._whole = self._program([True] * len(self.outputs))
            self.empty = not any(self._whole.results)
            self._note_what_is_read()

    def __repr__(self) -> str:
        return f"<BackwardRule of {self.bound!r} for {', '.join(self.bound.names_in[i] for i in self.wrt)}>"

    @property
    def name(self) -> str:
        """The op, for messages."""
        return f"op {self.bound.expr.type}"

    def _program(self, present: Sequence[bool]) -> GradientProgram:
        """The gradient program of the op alone.

        Args:
            present: Which of `outputs` receive a gradient.

        Returns:
            The program.
        """
        program = self.bound.program_by_value()
        (block,) = program.blocks
        self.outs = {n: j for j, n in enumerate(_flat(block.ops[0].outputs)) if n != EMPTY_VAR}
        targets = [n for n, j in self.outs.items() if j in self.outputs and present[self.outputs.index(j)]]
        walk = _OpWalk(block)
        for n in targets:
            walk.seed(n, n + ARRIVED)
        inputs = [self.bound.names_in[i] for i in self.wrt]
        found = walk.run(targets, inputs)
        program.blocks.clear()  # blocks refer to their program
        return GradientProgram(walk.ops, [found.get(n) for n in inputs], walk.missing)

    def _note_what_is_read(self) -> None:
        read: dict[tuple[str, int], bool] = {}
        for op in self._whole.ops:
            unread = default_manager().op_info(op.type).no_need_buffer_vars
            for slot, names in op.inputs.items():
                for place in filter(None, map(self.forward_value, names)):
                    read[place] = read.get(place, False) or slot not in unread
        self.saved = [(side, i, whole) for (side, i), whole in read.items()]

    def forward_value(self, name: str) -> tuple[str, int] | None:
        """("in" or "out", position) of the forward value that a variable of the gradient program is, or None."""
        if name in self.ins:
            return "in", self.ins[name]
        return ("out", self.outs[name]) if name in self.outs else None

    # Backward ---------------------------------------------------------------------------------------------------------
    def run(
        self, node: Node, gradients: Sequence[Any], apply: Callable[..., Any], plain: bool, create_graph: bool
    ) -> Sequence[Any]:
        """Compute the gradients of the arguments in `wrt`.

        Args:
            node: The recorded call.
            gradients: Those of the outputs; None where none arrived.
            apply: The interpreter's function that calls a gradient op.
            plain: Whether that is the eager interpreter itself, without others around it.
            create_graph: Whether the gradients will be differentiated.

        Returns:
            A tensor or None for each argument in `wrt`.
        """
        key = (create_graph, True) if len(gradients) == 1 else (create_graph, *[g is not None for g in gradients])
        function = self._compiled.get(key)
        if function is None:
            function = self._compiled[key] = self._compile(key[1:], create_graph)
            if key == (False, True):
                self.quick = function
        results: Sequence[Any] = function(node, gradients, apply, plain)
        return results

    def _compile(self, present: Sequence[bool], create_graph: bool) -> Callable[..., Any]:
        return _BackwardCode(self, present, create_graph).function(self.gradients_of(present))

    def gradients_of(self, present: Sequence[bool]) -> GradientProgram:
        """The gradient program for the outputs that receive a gradient.

        Args:
            present: Which of `outputs` receive one.

        Returns:
            The program.

        Raises:
            NotDifferentiableError: The op has no gradient.
        """
        if not self.differentiable:
            info = self.bound.expr.info
            raise NotDifferentiableError(
                f"op {info.type} (pack {info.pack}) has no gradient, but a gradient of its result is asked for; "
                "give it a make_grad (`empty_grad` if nothing should flow back), or detach() its inputs"
            )
        return self._whole if all(present) else self._program(present)

    def may_be_complex(self, i: int) -> bool:
        """Whether a real argument may get a complex gradient, because gradient ops see only complex values."""
        argument = self.bound.metas[i]
        return _kind(argument) == "f" and any(_kind(k) == "c" for k in self.bound.outputs)

    def real_part(self, gradient: Tensor) -> Tensor:
        """The gradient of a real argument, which can't move along the imaginary axis, so only the real part counts.

        A gradient that is part of a graph is returned unchanged, since the real part taken here would not be recorded.
        """
        meta = gradient._meta
        if _kind(meta) != "c" or gradient._node is not None:
            return gradient
        value = gradient._value.real.copy()
        return new_tensor(value, tensor_meta(meta.container, value.dtype, meta.place, meta.lod_level), gradient._lod)

    def zeros(self, node: Node, which: int) -> Tensor:
        """A zero gradient, for an output that receives none."""
        meta = self.bound.outputs[self.outputs[which]]
        assert meta is not None
        return zero_gradient(node.shapes[which], meta)

    def hollow(self, k: int, entry: Any) -> Tensor:
        """A stand-in for a saved tensor of which only shape and LoD are read."""
        side, i, _ = self.saved[k]
        like = self.bound.metas[i] if side == "in" else self.bound.outputs[i]
        assert like is not None
        shape, lod = entry
        tensor: Tensor | None = self._hollows[k, shape] if not lod else None
        if tensor is None:
            value = ShapeOnly(SimpleNamespace(shape=shape, dtype=like.dtype), f"the gradient of {self.name}")
            tensor = new_tensor(value, tensor_meta(LoDTensor, like.dtype, like.place, like.lod_level), lod)
            if not lod:
                self._hollows[k, shape] = tensor
        return tensor

    def check_input(self, node: Node, i: int, tensor: Tensor) -> None:
        """Raise PreconditionNotMetError if a saved argument was overwritten since."""
        if tensor._version != node.versions.get(i, 0):
            name = f" ({tensor.name!r})" if tensor.name else ""
            raise overwritten(self.name, f"input {self.bound.names_in[i]}{name}", tensor._written_by)

    def check_outputs(self, node: Node) -> None:
        """Raise PreconditionNotMetError if a saved output was overwritten since."""
        for side, j, whole in self.saved:
            if side == "out" and whole and (writer := node.overwriter(j)) is not None:
                raise overwritten(self.name, f"output {self.bound.names_out[j]}", writer)


def _differentiable(metas: Sequence[TensorMeta | None], positions: Iterable[int]) -> list[int]:
    """The positions that hold a tensor whose dtype has gradients."""
    return [i for i in positions if (meta := metas[i]) is not None and meta.differentiable]


def _kind(meta: TensorMeta | None) -> str:
    """NumPy's letter for the kind of a tensor's dtype; "" when there is none."""
    return "" if meta is None or meta.dtype is None else str(meta.dtype.kind)


def _flat(slots: Mapping[str, Sequence[str]]) -> list[str]:
    return [n for names in slots.values() for n in names]


class GradientProgram(NamedTuple):
    """The gradient ops of one op alone, in which the gradient that arrives for its output y is y@ARRIVED.

    Attributes:
        ops: The gradient ops.
        results: Names of the gradients of the inputs.
        missing: Gradients that have not arrived although an op reads them, with their variables.
    """

    ops: list[OpDesc]
    results: list[str | None]
    missing: dict[str, str]


def expr_of_op(op: OpDesc, absent: Callable[[str], bool]) -> OpExpr:
    """An op of a program, such as one of gradients, with the inputs that are present and the outputs that are needed.

    Args:
        op: The op.
        absent: Says of a variable's name whether it has no value.

    Returns:
        The expression, flat.
    """
    info = default_manager().op_info(op.type)
    attrs = {name: value for name, value in op.attrs.items() if name not in COMMON_ATTRS}
    if info.checker is not None:
        attrs = info.checker.check(attrs)
    inputs = tuple(
        (slot, len(names))
        for slot, p in info.proto.inputs.items()
        if (names := op.inputs.get(slot)) and not (p.dispensable and all(map(absent, names)))
    )
    flags = {slot: tuple(n != EMPTY_VAR for n in op.outputs.get(slot, ())) for slot in info.proto.outputs}
    return OpExpr(info, attrs, inputs, tuple((s, f) for s, f in flags.items() if any(f)), flat=True)


class _OpWalk(Backward):
    """The backward pass over one op, whose missing gradients are no ops but zeros of the shapes that the node has."""

    def __init__(self, block: BlockDesc) -> None:
        super().__init__(block, (), default_manager())
        self.missing: dict[str, str] = {}

    def zeros(self, var: str, gradient: str) -> None:
        self.missing[gradient] = var


class _BackwardCode:
    """Writes `back(node, gradients, apply, plain)`; see BackwardRule.run.

    In the code v<i> is a saved tensor, g<i> the gradient that arrived at an output, and t<n>_<i> what a gradient op
    computed.

    Args:
        rule: How the gradients of a call's inputs are computed.
        present: Which outputs receive a gradient. There is one function for each combination that occurs.
        create_graph: Whether saved outputs are connected to the graph, so that the gradients can be differentiated.
    """

    def __init__(self, rule: BackwardRule, present: Sequence[bool], create_graph: bool) -> None:
        self.rule, self.create_graph = rule, create_graph
        self._names: dict[str, Any] = {"Tensor": Tensor, "Edge": Edge, "rule": rule, "__name__": __name__}
        self._lines = ["s = node.saved"]
        # Saved outputs must not have been overwritten since; saved inputs are checked one by one in `_saved`.
        if any(side == "out" and whole for side, _, whole in rule.saved):
            self._lines.append("if node.lent: rule.check_outputs(node)")
        # what the code calls variables of the gradient program
        self._texts = {EMPTY_VAR: "None"}
        for name, j in rule.outs.items():
            if j in rule.outputs and present[k := rule.outputs.index(j)]:
                self._lines.append(f"g{k} = gradients[{k}]")
                self._texts[name + ARRIVED] = f"g{k}"

    def function(self, program: GradientProgram) -> Callable[..., Any]:
        """Make the function."""
        rule, results = self.rule, program.results
        for gradient, var in program.missing.items():
            if (j := rule.outs[var]) in rule.outputs:  # others have no gradient at all
                self._lines.append(f"z{j} = rule.zeros(node, {rule.outputs.index(j)})")
                self._texts[gradient] = f"z{j}"
        of_real = {n for i, n in zip(rule.wrt, results, strict=True) if n and rule.may_be_complex(i)}
        for n, op in enumerate(program.ops):
            self._call(n, op, of_real)
        returned = [self._texts[n] if n else "None" for n in results]
        lines = [*self._lines, f"return ({', '.join(returned)},)"]
        source = "def back(node, gradients, apply, plain):\n" + "".join(f"    {line}\n" for line in lines)
        return generated_function(source, "back", f"gradient of {rule.name}", self._names)

    def _call(self, n: int, op: OpDesc, of_real: Collection[str]) -> None:
        """The lines that call a gradient op. of_real: gradients of real arguments that may come out complex."""
        expr = self._names[f"E{n}"] = expr_of_op(op, lambda name: self._text(name) == "None")
        self._names[f"calls{n}"] = expr.calls
        args = [self._text(name) for slot, _ in expr.inputs for name in op.inputs[slot]]
        made = [name for slot, _ in expr.outputs for name in op.outputs[slot]]
        targets = ["_" if name == EMPTY_VAR else f"t{n}_{k}" for k, name in enumerate(made)]
        passed = ", ".join(args)
        metas = ", ".join("None" if a == "None" else f"{a}._meta" for a in args)
        # Looks up the generated call directly, to save the overhead of the interpreter.
        self._lines.append(f"call = calls{n}.get(({metas},)) if plain else None")
        result = f"call({passed}) if call is not None else apply(E{n}, ({passed},))"
        self._lines.append(f"{', '.join(targets)}{',' if len(targets) == 1 else ''} = {result}")
        for name, target in zip(made, targets, strict=True):
            self._texts.setdefault(name, target)
            if name.partition("@RENAME@")[0] in of_real:
                self._lines.append(f"{target} = rule.real_part({target})")

    def _text(self, name: str) -> str:
        """What the code calls a variable of the gradient program; a saved value is wrapped in a tensor on first use."""
        text = self._texts.get(name)
        if text is None:
            place = self.rule.forward_value(name)
            text = self._texts[name] = "None" if place is None else self._saved(*place)
        return text

    def _saved(self, side: str, i: int) -> str:
        """Emit the lines that wrap a saved value in a tensor; returns the name of the tensor."""
        rule, bound = self.rule, self.rule.bound
        k, whole = next((k, w) for k, (s, j, w) in enumerate(rule.saved) if (s, j) == (side, i))
        like = bound.metas[i] if side == "in" else bound.outputs[i]
        if like is None:
            return "None"
        name, lines = f"v{k}", self._lines
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
        lines.append(f"{name}._value, {name}._lod = s[{k}]" if like.lod_level else f"{name}._value = s[{k}]")
        node = "node" if len(rule.outputs) == 1 else f"Edge(node, {rule.outputs.index(i)})" if recorded else ""
        lines.append(f"{name}._node = {node if recorded else 'None'}")
        return name
