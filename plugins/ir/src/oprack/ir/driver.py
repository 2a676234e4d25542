"""The driver of fusions: finds what a row's pattern describes, checks that it may go, and puts the new ops there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from oprack.errors import DefinitionError, did_you_mean
from oprack.ir.graph import Graph
from oprack.ir.match import Match, NewParam, NewVar, Value
from oprack.ir.nodes import OpNode, VarNode, one_dtype
from oprack.ir.pattern import EitherPattern, Found, OpPattern, Pattern, PatternBuilder
from oprack.types import EMPTY_VAR

Build = Callable[[Match], "Value | Mapping[str, Value] | None"]
Row = Callable[[PatternBuilder], tuple[Pattern, Build]]


class Fusion:
    """One rewrite, callable on a graph: `fusion(graph)` applies it until nothing matches and returns how often it did.

    `a + b` applies both in turn until neither matches.

    Args:
        name: The name, for reports.
        row: A function of a PatternBuilder that returns (pattern, build).
    """

    def __init__(self, name: str, row: Row) -> None:
        self.name = name
        self.__doc__ = row.__doc__
        self.pattern, self.build = row(PatternBuilder())
        self.roots = _root_patterns(self.pattern, name)
        self.depth = self.pattern.depth
        # Most ops of a program fit no row, and these say so without a look at any pattern.
        types = dict.fromkeys(t for root in self.roots for t in root.types)
        self._ending_in = {t: [root for root in self.roots if t in root.types] for t in types}

    def __call__(self, graph: Graph) -> int:
        return Fusions([self])(graph)

    def apply_once(self, graph: Graph, tried: _Tried | None = None) -> int:
        """One walk over the ops; returns the number of rewrites.

        Args:
            tried: Matches that earlier walks tried, of this row and others.
        """
        tried = tried or _Tried([self])
        count, failed, types = 0, tried.in_vain[self], self._ending_in
        # over a copy of the list, since rewrites change it; ops that went are no producers any more
        with np.errstate(all="ignore"):  # parameters may be anything
            for op in graph.ops:
                if op.type in types and op not in failed and op.is_producer():
                    match = self._apply_at(graph, op)
                    if match is None:
                        failed.add(op)
                    else:
                        tried.forget_near(match)
                        count += 1
        return count

    def _apply_at(self, graph: Graph, op: OpNode) -> Match | None:
        for match in self.matches(graph, op):
            result = self.build(match)
            if result is not None and _replace(match, self._by_slot(match, result)):
                return match
        return None

    def matches(self, graph: Graph, op: OpNode) -> Iterator[Match]:
        """Every way in which the pattern ends in this op and may be replaced."""
        for root in self._ending_in.get(op.type, ()):
            for found in root.match_op(graph, op, Found()):
                match = Match(graph, op, found)
                if _may_go(match, root):
                    yield match

    def _by_slot(self, match: Match, result: Any) -> dict[str, Value]:
        if not isinstance(result, Mapping):
            root = next(p for p in self.roots if match.found.ops.get(p) is match.root)
            main = root.main_output(match.graph, match.root)
            slot = next(s for s, nodes in match.root.outputs.items() if main in nodes)
            result = {slot: result}
        for slot, value in result.items():
            if not isinstance(value, VarNode | NewVar) or match.root.output(slot) is None:
                raise DefinitionError(
                    f"fusion {self.name!r} ({self.roots[0].line}) gave {value!r} for output {slot} of {match.root!r}; "
                    "expected m[...], what m.op(...) returned, a dict of these by output slot, or None"
                )
        return dict(result)

    def __add__(self, other: Fusion | Fusions) -> Fusions:
        return Fusions([self]) + other

    def __repr__(self) -> str:
        return f"<Fusion {self.name} at {self.roots[0].line}>"


class Fusions:
    """Several rows as one pass.

    Args:
        rows: The rows.
    """

    def __init__(self, rows: list[Fusion]) -> None:
        self.rows = rows

    def __call__(self, graph: Graph) -> int:
        total, tried = 0, _Tried(self.rows)
        clean: dict[Fusion, int] = {}  # rows without a match -> number of rewrites at that time
        # A rewrite by one row may be what another one waits for, so a row is done only when no row has rewritten
        # anything since it last found nothing.
        while any(clean.get(row) != total for row in self.rows):
            for row in self.rows:
                if clean.get(row) != total:
                    count = row.apply_once(graph, tried)
                    total += count
                    if not count:
                        clean[row] = total
        return total

    def __add__(self, other: Fusion | Fusions) -> Fusions:
        return Fusions([*self.rows, *(other.rows if isinstance(other, Fusions) else [other])])

    def __repr__(self) -> str:
        return f"<Fusions {' + '.join(row.name for row in self.rows)}>"


class _Tried:
    """Where walks need not look again: a row that can't be applied at an op can't be until something changes near it.

    in_vain: by row, ops at which it could not be applied.
    """

    def __init__(self, rows: Sequence[Fusion]) -> None:
        self.in_vain: dict[Fusion, set[OpNode]] = {row: set() for row in rows}
        self._depth = max(row.depth for row in rows)

    def forget_near(self, match: Match) -> None:
        """Rows look again at what follows a rewrite, and at what follows the ops that it reads from.

        A pattern sees the ops up to its depth before its root, and who reads what these write.
        """
        seen: set[OpNode] = set()
        near = {reader for node in match.captured() for reader in node._consumers}
        near.update(node.producer for node in match.captured() if node.producer is not None)
        for _ in range(self._depth + 1):
            seen |= near
            near = {reader for op in near for node in op.writes() for reader in node._consumers if reader not in seen}
        # All rows, since the ops near a rewrite are new to each of them.
        for failed in self.in_vain.values():
            failed -= seen


def fusion(name: str) -> Callable[[Row], Fusion]:
    """Make a fusion of a function that gets a PatternBuilder and returns (pattern, build).

    build gets a Match and returns what takes the place of the pattern's last op: what `m.op(...)` returned, or a
    variable of the pattern; a dict of these by output slot when several are read; None to leave the match alone. Other
    ops of the pattern go, too, unless what takes the place of the last one reads what they write.

    Args:
        name: The name, for reports.

    Returns:
        A decorator that turns the function into a Fusion.
    """
    return lambda row: Fusion(name, row)


def _root_patterns(pattern: Pattern, name: str) -> list[OpPattern]:
    if isinstance(pattern, OpPattern):
        return [pattern]
    if isinstance(pattern, EitherPattern):
        return [root for p in pattern.patterns for root in _root_patterns(p, name)]
    raise DefinitionError(f"fusion {name!r}: the pattern ends in {pattern!r}; expected p.op(...) or p.either of them")


def _may_go(match: Match, root: OpPattern) -> bool:
    """The guard: all inputs come from outside, are of the result's dtype and still hold their values at the root, and
    nobody else reads what lies between."""
    graph, ops = match.graph, match.found.ops
    end = root.main_output(graph, match.root)
    if end is None or not one_dtype([*match.captured(), end]):
        return False
    matched = set(ops.values())
    for node in match.captured():
        # An input that the match itself computes would be read after its op is gone.
        if node.producer in matched or graph.is_overwritten(node, match.found.returning(graph, node)):
            return False
    for pattern, op in ops.items():
        if op.hidden_writes or (pattern is not root and not _inner(match, op, pattern.unchanged)):
            return False
    return True


def _inner(match: Match, op: OpNode, exempt: Collection[str]) -> bool:
    """Whether only ops of the match read what an op writes, slots in `exempt` left aside."""
    matched = set(match.found.ops.values())
    return all(
        node.name == EMPTY_VAR or (not match.graph.is_kept(node) and matched.issuperset(node._consumers))
        for slot, nodes in op.outputs.items()
        if slot not in exempt
        for node in nodes
    )


def _replace(match: Match, result: Mapping[str, Value]) -> bool:
    """Put the new ops in place of the matched ones; False when names or other readers forbid it."""
    graph, root = match.graph, match.root
    exempt = {slot for pattern, op in match.found.ops.items() if op is root for slot in pattern.unchanged}
    # Outputs that the build gives nothing for must have no readers.
    if not _inner(match, root, exempt.union(result)):
        return False
    name = root.outputs[next(iter(result))][0].name
    stay = _still_read(match, result)  # before another op writes what stands for an output
    for slot, value in result.items():
        if isinstance(value, VarNode) and not graph.replace_var(root.outputs[slot][0], value):
            return False
    _redirect_unchanged(match)
    _make(match, result, name)
    waiting = [op for op in dict.fromkeys(match.found.ops.values()) if op not in stay]
    while waiting:
        free = [op for op in waiting if not any([n._consumers for n in op.writes() if n.producer is op])]
        # Readers first; ops that write what they read never become free, and go in any order.
        for op in free or waiting:
            graph.remove_op(op)
            waiting.remove(op)
    return True


def _still_read(match: Match, result: Mapping[str, Value]) -> set[OpNode]:
    """Ops of the match whose outputs are the result or are read by the new ops, with those that they read from."""
    new = (v for op in match.new_ops for values in op.inputs.values() for v in values)
    matched, stay = set(match.found.ops.values()), set[OpNode]()
    nodes = [v for v in (*result.values(), *new) if isinstance(v, VarNode)]
    while nodes:
        op = nodes.pop().producer
        if op in matched and op not in stay and op is not match.root:
            stay.add(op)
            nodes += op.reads()
    return stay


def _redirect_unchanged(match: Match) -> None:
    """Readers of an unchanged output read what the op read."""
    for pattern, op in match.found.ops.items():
        for slot in pattern.unchanged:
            for node in op.outputs.get(slot, ()):
                for source in [n for n in op.reads() if n.name == node.name][:1]:
                    for reader in node.consumers:
                        match.graph.replace_input(reader, node, source)


def _make(match: Match, result: Mapping[str, Value], name: str) -> None:
    """Add the new ops before the root; what stands for an output of the root is written to its variable.

    name: what other names are made from.
    """
    graph, root = match.graph, match.root
    targets = {(id(v.op), v.slot): root.outputs[s][0] for s, v in result.items() if isinstance(v, NewVar)}
    params: dict[int, VarNode] = {}
    outputs: dict[tuple[int, str], VarNode] = {}

    def node_of(value: Value) -> VarNode:
        if isinstance(value, VarNode):
            return value
        if isinstance(value, NewParam):
            if id(value) not in params:
                params[id(value)] = graph.new_parameter(value.value, value.like)
            return params[id(value)]
        return outputs[id(value.op), value.slot]

    for new in match.new_ops:
        unknown = new.wanted.difference(protos := graph.manager.op_info(new.type).proto.outputs)
        if unknown:
            slot = min(unknown)
            raise DefinitionError(
                f"new op {new.type} has output {slot}{did_you_mean(slot, protos)}; the op has {', '.join(protos)}"
            )
        inputs = {slot: [node_of(v) for v in values] for slot, values in new.inputs.items()}
        outs = {}
        for slot, proto in protos.items():
            target = targets.get((id(new), slot))
            # An output that the op always has gets a variable even where nobody reads it, as Paddle's programs have it.
            if target is not None or slot in new.wanted or not (proto.dispensable or proto.extra):
                outs[slot] = [target or graph.new_var(name)]
                outputs[id(new), slot] = outs[slot][0]
        graph.add_op(new.type, inputs, outs, new.attrs, before=root)
