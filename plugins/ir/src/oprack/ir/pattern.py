"""Patterns: the subgraphs that a fusion looks for, written as nested ops.

    def row(p):
        conv = p.op("conv2d", Input="x", Filter=p.param("w"))
        bias = p.maybe(p.op("elementwise_add", X=conv, Y=p.param("b"), commutative=True))
        root = p.op("batch_norm", X=bias, Scale=p.param("scale"), ..., unchanged=("MeanOut", "VarianceOut"))
        return root, lambda m: ...

A string matches any variable; the same string matches the same variable everywhere.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from oprack.errors import DefinitionError
from oprack.ir.nodes import OpNode, VarNode
from oprack.types import EMPTY_VAR

if TYPE_CHECKING:
    from oprack.ir.graph import Graph

_COMMUTING = ("X", "Y")


class Found:
    """The bindings of a partial match: ops by pattern, variables by name. Immutable, as alternatives share it."""

    __slots__ = ("ops", "vars")  # loading a model creates thousands

    def __init__(
        self, ops: Mapping[OpPattern, OpNode] | None = None, vars: Mapping[str, VarNode | None] | None = None
    ) -> None:
        self.ops: Mapping[OpPattern, OpNode] = ops or {}
        self.vars: Mapping[str, VarNode | None] = vars or {}

    def with_op(self, pattern: OpPattern, op: OpNode) -> Found:
        return Found({**self.ops, pattern: op}, self.vars)

    def returning(self, graph: Graph, node: VarNode) -> Sequence[OpNode]:
        """The matched ops that overwrite a variable with the value that it already holds."""
        if not graph.is_overwritten(node):
            return ()
        return [op for pattern, op in self.ops.items() if pattern.returns(op, node.name)]

    def with_var(self, name: str, node: VarNode | None) -> Found:
        return Found(self.ops, {**self.vars, name: node})


class Pattern:
    """A condition on a variable: any variable, a parameter, or the output of an op."""

    optional = False
    """Whether the slot may be absent."""
    producers: frozenset[str] | None = None
    """Types of ops that may have produced the variable; None means that anything may have."""
    depth: int = 0
    """Length of its longest chain of ops."""

    def match(self, graph: Graph, node: VarNode, found: Found) -> Iterator[Found]:
        """Yield an extension of the bindings `found` for every way in which `node` matches."""
        raise NotImplementedError(f"{type(self).__name__} must define match")


class VarPattern(Pattern):
    """Any variable, bound to a name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def match(self, graph: Graph, node: VarNode, found: Found) -> Iterator[Found]:
        bound = self.bind(graph, node, found)
        if bound is not None:
            yield bound

    def bind(self, graph: Graph, node: VarNode, found: Found) -> Found | None:
        """The only way in which `node` matches; None when it does not."""
        if node.name == EMPTY_VAR:
            return None
        if self.name not in found.vars:
            return found.with_var(self.name, node)
        return found if found.vars[self.name] is node else None


class ParamPattern(VarPattern):
    """A parameter whose value is known."""

    def __init__(self, name: str, optional: bool = False) -> None:
        super().__init__(name)
        self.optional = optional

    def bind(self, graph: Graph, node: VarNode, found: Found) -> Found | None:
        if graph.constant(node, found.returning(graph, node)) is None:
            return None
        return super().bind(graph, node, found)


class OpPattern(Pattern):
    """The output of an op of one of some types; see PatternBuilder.op.

    Args:
        types: The types of ops that match.
        slots: Patterns by input slot.
        line: File and line, for messages.
    """

    def __init__(self, types: tuple[str, ...], slots: Mapping[str, Any], line: str, **options: Any) -> None:
        self.types, self.line = types, line
        self.slots = {slot: _patterns(value, line) for slot, value in slots.items()}
        self.attrs: Mapping[str, Any] = options["attrs"]
        self.where: Callable[[OpNode], bool] | None = options["where"]
        self.out: str | None = options["out"]
        self.commutative: bool = options["commutative"]
        self.unchanged: tuple[str, ...] = tuple(options["unchanged"])
        self.producers = frozenset(types)
        self.depth = 1 + max((p.depth for patterns in self.slots.values() for p in patterns), default=0)
        self._needed = [slot for slot, patterns in self.slots.items() if not all(p.optional for p in patterns)]
        # Most candidates fail because of the type of a preceding op, which is cheap to test, so it is tested first.
        single = [(slot, patterns[0]) for slot, patterns in self.slots.items() if len(patterns) == 1]
        produced = [(slot, p.producers) for slot, p in single if p.producers is not None]
        self._produced = [produced]
        if self.commutative and not all(s in self.slots for s in _COMMUTING):
            raise DefinitionError(f"pattern at {line}: a commutative op has slots X and Y; got {', '.join(self.slots)}")
        if self.commutative:
            x, y = _COMMUTING
            self._produced.append([({x: y, y: x}.get(slot, slot), types) for slot, types in produced])

    def returns(self, op: OpNode, name: str) -> bool:
        """Whether the op writes this variable only through slots that return an input unchanged."""
        slots = [slot for slot, nodes in op.outputs.items() if any(n.name == name for n in nodes)]
        return bool(slots) and all(slot in self.unchanged for slot in slots)

    def main_output(self, graph: Graph, op: OpNode) -> VarNode | None:
        """The output that the pattern stands for: the one that `out` names, or the op's first."""
        return op.output(self.out or next(iter(graph.manager.op_info(op.type).proto.outputs), ""))

    def match(self, graph: Graph, node: VarNode, found: Found) -> Iterator[Found]:
        op = node.producer
        if op is not None and op.type in self.types and self.main_output(graph, op) is node:
            yield from self.match_op(graph, op, found)

    def match_op(self, graph: Graph, op: OpNode, found: Found) -> Iterator[Found]:
        """Yield an extension of the bindings `found` for every way in which the op matches."""
        # The last condition: a pattern that occurs twice in a larger one must match the same op in both places.
        if op.opaque or op.type not in self.types or found.ops.get(self, op) is not op:
            return
        if not self._has_slots(op) or not self._has_attrs(graph, op) or not (self.where is None or self.where(op)):
            return
        for order, produced in enumerate(self._produced):
            if _are_produced(op.inputs, produced):
                x, y = _COMMUTING
                inputs = {**op.inputs, x: op.inputs[y], y: op.inputs[x]} if order else op.inputs
                pairs = self._pairs(inputs)
                if pairs is not None:
                    yield from _match_all(graph, pairs, found.with_op(self, op))

    def _has_slots(self, op: OpNode) -> bool:
        """Whether the op has every input that the pattern requires, and no other."""
        inputs, slots = op.inputs, self.slots
        for slot in inputs:
            if slot not in slots and _is_present(inputs[slot]):
                return False
        for slot in self._needed:
            if slot not in inputs or not _is_present(inputs[slot]):
                return False
        return True

    def _has_attrs(self, graph: Graph, op: OpNode) -> bool:
        if self.attrs:
            proto = graph.manager.op_info(op.type).proto.attrs
            for name, value in self.attrs.items():
                if op.attr(name, proto[name].default if name in proto else None) != value:
                    return False
        return True

    def _pairs(self, inputs: Mapping[str, Sequence[VarNode]]) -> list[tuple[Pattern, VarNode | None]] | None:
        """Pair each pattern with the variable that it must match; None when the numbers differ in a slot."""
        pairs: list[tuple[Pattern, VarNode | None]] = []
        for slot, patterns in self.slots.items():
            bound = inputs.get(slot, ())
            nodes: Sequence[VarNode | None] = bound if _is_present(bound) else [None] * len(patterns)
            if len(nodes) != len(patterns):
                return None
            pairs += zip(patterns, nodes, strict=False)
        return pairs


class MaybePattern(Pattern):
    """An optional op. Without it, the pattern of its slot `through` (default: the first non-parameter) matches."""

    def __init__(self, pattern: OpPattern, through: str | None) -> None:
        self.pattern = pattern
        candidates = [p for slot in pattern.slots if through in (None, slot) for p in pattern.slots[slot]]
        inner = [p for p in candidates if not isinstance(p, ParamPattern)]
        if not inner:
            raise DefinitionError(f"pattern at {pattern.line}: maybe(...) has nothing to fall back to; name a slot")
        self.inner = inner[0]
        self.producers, self.depth = _any_of([pattern, self.inner]), pattern.depth

    def match(self, graph: Graph, node: VarNode, found: Found) -> Iterator[Found]:
        yield from self.pattern.match(graph, node, found)
        yield from self.inner.match(graph, node, found)


class EitherPattern(Pattern):
    """The first of several patterns that fits."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        self.patterns = tuple(patterns)
        self.producers, self.depth = _any_of(patterns), max(p.depth for p in patterns)

    def match(self, graph: Graph, node: VarNode, found: Found) -> Iterator[Found]:
        producer = None if node.producer is None else node.producer.type
        for pattern in self.patterns:
            if pattern.producers is None or producer in pattern.producers:
                yield from pattern.match(graph, node, found)


def _are_produced(inputs: Mapping[str, Sequence[VarNode]], produced: Sequence[tuple[str, Collection[str]]]) -> bool:
    """Whether ops of the types that their patterns require produced the inputs."""
    for slot, types in produced:
        producer = inputs[slot][0].producer
        if producer is None or producer.type not in types:
            return False
    return True


def _is_present(nodes: Sequence[VarNode]) -> bool:
    for node in nodes:
        if node.name != EMPTY_VAR:
            return True
    return False


def _any_of(patterns: Sequence[Pattern]) -> frozenset[str] | None:
    types: set[str] = set()
    for pattern in patterns:
        if pattern.producers is None:
            return None
        types |= pattern.producers
    return frozenset(types)


def _match_all(
    graph: Graph, pairs: Sequence[tuple[Pattern, VarNode | None]], found: Found, start: int = 0
) -> Iterator[Found]:
    for i in range(start, len(pairs)):
        pattern, node = pairs[i]
        if isinstance(pattern, VarPattern):
            bound = found.with_var(pattern.name, None) if node is None else pattern.bind(graph, node, found)
            if bound is None:
                return
            found = bound
        elif node is not None:
            for extended in pattern.match(graph, node, found):
                yield from _match_all(graph, pairs, extended, i + 1)
            return
    yield found


def _patterns(value: Any, line: str) -> list[Pattern]:
    values = value if isinstance(value, list) else [value]
    patterns = [VarPattern(v) if isinstance(v, str) else v for v in values]
    for p in patterns:
        if not isinstance(p, Pattern):
            raise DefinitionError(
                f"pattern at {line}: {p!r} is no pattern; expected a name, p.op(...), p.param(...), p.maybe(...), "
                "p.either(...), or a list of these"
            )
    return patterns


class PatternBuilder:
    """The argument `p` of a fusion row, which builds patterns."""

    def op(
        self,
        types: str | Sequence[str],
        *,
        attrs: Mapping[str, Any] | None = None,
        where: Callable[[OpNode], bool] | None = None,
        out: str | None = None,
        commutative: bool = False,
        unchanged: Sequence[str] = (),
        **slots: Any,
    ) -> OpPattern:
        """An op of one of these types with exactly these input slots (lists for duplicable ones).

        Args:
            types: The op type, or several alternatives.
            attrs: Values that attributes must have; an attribute that is not set has its default.
            where: A condition on the OpNode.
            out: The output slot that the pattern stands for (default: the op's first).
            commutative: Whether X and Y may be swapped.
            unchanged: Removable output slots, which return an input (such as running statistics in inference).
        """
        frame = sys._getframe(1)
        line = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        names = (types,) if isinstance(types, str) else tuple(types)
        options = {"attrs": attrs or {}, "where": where, "out": out, "commutative": commutative, "unchanged": unchanged}
        return OpPattern(names, slots, line, **options)

    def param(self, name: str, optional: bool = False) -> ParamPattern:
        """A parameter whose value is known.

        Args:
            optional: Whether the slot may be absent.
        """
        return ParamPattern(name, optional)

    def maybe(self, pattern: OpPattern, through: str | None = None) -> MaybePattern:
        """An optional op; without it, its slot `through` matches (default: the first that is not a parameter)."""
        return MaybePattern(pattern, through)

    def either(self, *patterns: Pattern) -> EitherPattern:
        """The first of these patterns that fits."""
        return EitherPattern(patterns)
