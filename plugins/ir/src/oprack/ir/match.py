"""Match: the ops that a pattern matches, and the ops that are to take their place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np
from oprack.errors import DefinitionError, did_you_mean
from oprack.ir.nodes import OpNode, VarNode
from oprack.ir.pattern import Found, MaybePattern, OpPattern, Pattern
from oprack.op.attrs import COMMON_ATTRS
from oprack.python.records import dataclass

if TYPE_CHECKING:
    from oprack.ir.graph import Graph


@dataclass(eq=False)
class NewParam:
    """A parameter that is created when the match is rewritten.

    Args:
        value: The array.
        like: The variable from whose name its own is derived.
    """

    value: np.ndarray[Any, Any]
    like: str


@dataclass(eq=False)
class NewVar:
    """An output of a new op.

    Args:
        op: The op.
        slot: The output slot.
    """

    op: NewOp
    slot: str


@dataclass(eq=False)
class NewOp:
    """An op that is created when the match is rewritten."""

    type: str
    inputs: dict[str, list[VarNode | NewVar | NewParam]]
    attrs: dict[str, Any]
    wanted: set[str] = field(default_factory=set)

    def out(self, slot: str) -> NewVar:
        """An output slot, which the op then has."""
        self.wanted.add(slot)
        return NewVar(self, slot)


Value = VarNode | NewVar | NewParam
"""What a new op may read."""
_VALUES = (VarNode, NewVar, NewParam)
_HOW = frozenset({"mkldnn_data_type"})
"""Attributes by which a program says how an op is computed, rather than what; Paddle's names."""


class Match:
    """The `m` of a fusion row.

    Args:
        graph: The graph.
        root: The op that the whole pattern ends in.
        found: What each part of the pattern matched.
    """

    def __init__(self, graph: Graph, root: OpNode, found: Found) -> None:
        self.graph, self.root, self.found = graph, root, found
        self.new_ops: list[NewOp] = []
        self._values: dict[str, Any] = {}

    def __getitem__(self, name: str) -> VarNode:
        """The variable that a name stands for."""
        node = self.found.vars.get(name)
        if node is None:
            raise DefinitionError(f"the pattern bound no variable {name!r}; it has {', '.join(self.found.vars)}")
        return node

    def has(self, what: str | Pattern) -> bool:
        """Whether an optional parameter is present, or an optional op matched.

        Args:
            what: The name of the parameter, or the pattern of the op.

        Returns:
            Whether it is there.
        """
        if isinstance(what, MaybePattern):
            what = what.pattern
        return what in self.found.ops if isinstance(what, OpPattern) else self.found.vars.get(str(what)) is not None

    def op_of(self, pattern: Pattern) -> OpNode:
        """The op that a pattern matched.

        Raises:
            DefinitionError: The pattern found no such op.
        """
        if isinstance(pattern, MaybePattern):
            pattern = pattern.pattern
        if not isinstance(pattern, OpPattern) or pattern not in self.found.ops:
            raise DefinitionError("the pattern found no such op; ask has(pattern) first")
        return self.found.ops[pattern]

    def attr(self, op: OpNode | Pattern, name: str) -> Any:
        """An attribute of an op, its default counted.

        Args:
            op: The op, or its pattern.
            name: The attribute.

        Returns:
            Its value.
        """
        node = self.op_of(op) if isinstance(op, Pattern) else op
        proto = self.graph.manager.op_info(node.type).proto.attrs
        return node.attr(name, proto[name].default if name in proto else None)

    def attrs(self, op: OpNode | Pattern) -> dict[str, Any]:
        """The attributes that an op's desc gives, of those that the op declares."""
        node = self.op_of(op) if isinstance(op, Pattern) else op
        declared = self.graph.manager.op_info(node.type).proto.attrs
        return {name: value for name, value in node.desc.attrs.items() if name in declared}

    def value(self, name: str) -> np.ndarray[Any, Any] | Any:
        """The value of a parameter, by its name in the pattern; None when the slot is absent.

        Args:
            name: The name in the pattern.

        Returns:
            The array. To a type checker it may be anything, as the result of re.Match.group: which parameters are
            optional, the pattern says.
        """
        if name not in self._values:
            node, found, graph = self.found.vars.get(name), self.found, self.graph
            self._values[name] = None if node is None else graph.constant_array(node, found.returning(graph, node))
        return self._values[name]

    def new_param(self, value: Any, like: str) -> NewParam:
        """A new parameter.

        Args:
            value: The array.
            like: The parameter of the pattern whose dtype it takes, and whose name its own begins with.

        Returns:
            A symbol for it.

        Raises:
            DefinitionError: When `like` is no parameter of the pattern.
        """
        model = self.value(like)
        if model is None:
            raise DefinitionError(f"new_param(like={like!r}): the pattern bound no parameter of that name")
        return NewParam(np.ascontiguousarray(value, dtype=model.dtype), self[like].name)

    def op(
        self,
        type: str,
        *,
        attrs: Mapping[str, Any] | None = None,
        out: str | None = None,
        **slots: Value | Sequence[Value] | None,
    ) -> NewVar:
        """A new op.

        Args:
            type: The op type.
            attrs: Attributes that differ from the defaults.
            out: The output that is returned; default: the op's first.
            slots: Inputs; a slot that is None is left out.

        Returns:
            A symbol for the output.

        Raises:
            DefinitionError: An input is something else than m[...], or what m.op or m.new_param returned; or the op has
                no such output.
        """
        for slot, value in slots.items():
            _require_variables(type, slot, value)
        outputs = self.graph.manager.op_info(type).proto.outputs
        if out is not None and out not in outputs:
            raise DefinitionError(
                f"m.op({type!r}, out={out!r}): the op has no such output{did_you_mean(out, outputs)}; it has "
                f"{', '.join(outputs)}"
            )
        inputs = {
            slot: list(value) if isinstance(value, Sequence) else [value]
            for slot, value in slots.items()
            if value is not None
        }
        # notes that any op may carry, such as where it was created, are those of the op that the match ends at
        notes = {name: self.root.desc.attrs[name] for name in COMMON_ATTRS if name in self.root.desc.attrs}
        new = NewOp(type, inputs, {**self._how(type), **(attrs or {}), **notes})
        self.new_ops.append(new)
        return new.out(out or next(iter(outputs)))

    def _how(self, type: str) -> dict[str, Any]:
        """How a new op is computed: as matched ops of its type, or that go by the same attribute, agree on."""
        found: dict[str, set[Any]] = {}
        for op in self.found.ops.values():
            for name in op.desc.attrs.keys() & _HOW:
                if op.type == type or (self._goes_by(op.type, name) and self._goes_by(type, name)):
                    found.setdefault(name, set()).add(op.desc.attrs[name])
        protos = self.graph.manager.op_info(type).proto.attrs
        return {name: one.pop() if len(one) == 1 else protos[name].default for name, one in found.items()}

    def _goes_by(self, type: str, name: str) -> bool:
        """Whether ops of a type go by an attribute; Paddle's extra ones are kept in files, and mean nothing here."""
        attr = self.graph.manager.op_info(type).proto.attrs.get(name)
        return attr is not None and not attr.extra

    def captured(self) -> list[VarNode]:
        """Variables that names of the pattern stand for."""
        return [n for n in self.found.vars.values() if n is not None]


def _require_variables(op_type: str, slot: str, value: Any) -> None:
    if value is None or isinstance(value, _VALUES):
        return
    if not isinstance(value, Sequence) or isinstance(value, str) or not all(isinstance(v, _VALUES) for v in value):
        raise DefinitionError(
            f"m.op({op_type!r}, {slot}={value!r}): expected m[...], what m.op(...) or m.new_param(...) returned, "
            "a list of these, or None"
        )
