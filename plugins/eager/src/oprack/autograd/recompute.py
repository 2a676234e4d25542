"""recompute: a part of a network whose inner results are let go of, and computed again when gradients need them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from oprack.autograd.unchanged import check_inputs, overwritten
from oprack.eager_tensor import Edge, Node, Tensor
from oprack.eager_tensor.devices import RANDOM
from oprack.errors import PreconditionNotMetError
from oprack.interpreter.base import Wrapped
from oprack.interpreter.current import CURRENT
from oprack.interpreter.modes import Mode, current_mode
from oprack.interpreter.op_expr import OpExpr
from oprack.interpreter.symbol import current_capture
from oprack.python.containers import with_members


@dataclass
class _Record:
    """What a function does that recompute calls.

    Attributes:
        nodes: Of its calls.
        kept: In a second call: tensors from outside that ops have written in place, such as running means, with their
            values before; by identity.
    """

    nodes: list[Node]
    kept: dict[int, tuple[Tensor, Any]] | None


_RECORD: ContextVar[_Record | None] = ContextVar("oprack_recompute", default=None)
_LET_GO = (
    "is inside a function of recompute, whose inner results are there only while gradients of its own results are "
    "computed; return the tensor from the function to start from it"
)


class _Recorded(Wrapped):
    """Notes the node of each call, and what a second one writes in place that the first one has written already."""

    def apply(self, expr: OpExpr, args: Sequence[Any]) -> Any:
        record = _RECORD.get()
        if expr.in_place and record is not None and record.kept is not None:
            slots = [slot for slot, count in expr.inputs for _ in range(count)]
            for slot, x in zip(slots, args, strict=True):
                if slot in expr.in_place and isinstance(x, Tensor) and x._node is None:
                    record.kept.setdefault(id(x), (x, x._value.copy()))
        result = self.inner.apply(expr, args)
        _note(result)
        return result


def _note(result: Any) -> None:
    record = _RECORD.get()
    if record is None:
        return
    for y in result if isinstance(result, tuple | list) else (result,):
        node = getattr(y, "_node", None)
        node = node.node if type(node) is Edge else node
        if type(node) is Node and not any(node is n for n in record.nodes[-1:]):
            record.nodes.append(node)


@dataclass
class _Segment:
    """A call of recompute: what runs again, and what is brought back then.

    Attributes:
        function: The function, which is called with `args` and `options`.
        versions: Tensors among the arguments, with the versions that they had.
        mode: That of the call.
        random: State of the random numbers before it.
        nodes: What it recorded, without what their gradients read.
        read: The versions of what these were computed from.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    options: dict[str, Any]
    versions: list[tuple[Tensor, int]]
    mode: Mode
    random: dict[str, Any]
    nodes: list[Node]
    read: list[dict[int, int]]

    def run(self, kept: dict[int, tuple[Tensor, Any]] | None) -> tuple[Any, list[Node]]:
        """Call the function; returns its result and the nodes of its calls. kept: see _Record."""
        nodes: list[Node] = []
        wrappers = self.mode.wrappers
        recording = self.mode.but(grad=True, wrappers=wrappers if _Recorded in wrappers else (*wrappers, _Recorded))
        mode, record = CURRENT.set(recording), _RECORD.set(_Record(nodes, kept))
        try:
            return self.function(*self.args, **self.options), nodes
        finally:
            _RECORD.reset(record)
            CURRENT.reset(mode)

    def let_go(self, nodes: Sequence[Node]) -> None:
        """Let go of what the gradients of these calls read."""
        self.nodes, self.read = list(nodes), [node.versions for node in nodes]
        for node in nodes:
            if isinstance(node.saved, _Segment):  # a call inside this one, whose own calls are known to it alone
                node.inner = node.saved  # type: ignore[attr-defined]
                node.saved.args, node.saved.options, node.saved.versions = (), {}, []
            node.saved = None
            node.let_go = _LET_GO  # type: ignore[attr-defined]

    def bring_back(self) -> None:
        """Compute what the gradients read, unless it is there."""
        if all(node.saved is not None for node in self.nodes):
            return
        check_inputs("recompute", self.versions)
        now = RANDOM.state()
        RANDOM.load_state(self.random)
        kept: dict[int, tuple[Tensor, Any]] = {}
        try:
            _, nodes = self.run(kept)
        finally:
            RANDOM.load_state(now)
            for tensor, value in kept.values():
                tensor._overwrite(value, None, "recompute")
        if [n.name for n in nodes] != [n.name for n in self.nodes]:
            raise PreconditionNotMetError(
                f"recompute: {self.function!r} recorded {_listed(self.nodes)} the first time and {_listed(nodes)} the "
                "second; expected the same calls, so let it depend on its arguments alone"
            )
        for node, again, read in zip(self.nodes, nodes, self.read, strict=True):
            if again.versions != read:
                raise overwritten(node.name, "input", "an op or a step of an optimizer after the call of recompute")
            node.saved = again.saved
            if isinstance(again.saved, _Segment):
                inner: _Segment = node.inner  # type: ignore[attr-defined]
                inner.args, inner.options, inner.versions = again.saved.args, again.saved.options, again.saved.versions
                node.saved = inner
            if again.lent:
                node.lent = again.lent


def _listed(nodes: Sequence[Node]) -> str:
    names = [n.name for n in nodes]
    return f"{len(names)} calls ({', '.join(names[:8])}{' ...' if len(names) > 8 else ''})"


class _Boundary:
    """The rule of the results: their gradients pass, once what the gradients before them read is there."""

    name = "recompute"

    def __init__(self, count: int) -> None:
        self.outputs = list(range(count))

    def run(
        self, node: Node, gradients: Sequence[Any], apply: Callable[..., Any], plain: bool, create_graph: bool
    ) -> Sequence[Any]:
        """See BackwardRule.run."""
        return self.quick(node, gradients, apply, plain)

    def quick(self, node: Node, gradients: Sequence[Any], apply: Callable[..., Any], plain: bool) -> Sequence[Any]:
        """As `run`."""
        node.saved.bring_back()
        return list(gradients)


def recompute(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call a function, and keep none of its inner results for backward, which computes them again (Chen et al., 2016).

    Memory of a deep network is then that of the arguments of its segments and of the inner results of one, for the time
    of about one more forward pass: `x = oprack.autograd.recompute(block, x)` for each block. The second call draws the
    same random numbers, under the same autocast, and what its ops write in place, such as running means, stays as the
    first one left it. Results are those of
    `function(*args, **options)`, and so are gradients, of any order. Where nothing is recorded, or a program is
    written, it is that call.

    Args:
        function: A module or a function of tensors, whose results depend on nothing that changes in between. Tensors
            from outside, such as parameters, get their gradients.
        args: Its arguments.
        options: Its keyword arguments.

    Returns:
        What the function returns: a tensor, or a tuple or list of tensors and other values.

    Raises:
        PreconditionNotMetError: In backward, where an argument or a parameter was changed since, or the function calls
            other ops.
    """
    mode = current_mode()
    if not mode.grad or mode.static or current_capture.get() is not None:
        return function(*args, **options)
    tensors = [a for a in (*args, *options.values()) if isinstance(a, Tensor)]
    versions = [(x, x._version) for x in tensors]
    segment = _Segment(function, args, options, versions, mode, RANDOM.state(), [], [])
    outer = _RECORD.get()
    found, nodes = segment.run(None if outer is None else outer.kept)
    results = list(found) if isinstance(found, tuple | list) else [found]
    inner = [i for i, y in enumerate(results) if isinstance(y, Tensor) and y._node is not None]
    if not nodes or not inner:
        return found
    segment.let_go(nodes)
    node = Node()
    node.rule, node.saved = _Boundary(len(inner)), segment
    node.next = tuple([results[i]._node for i in inner])
    node.shapes = tuple([results[i].shape for i in inner])
    for k, i in enumerate(inner):
        results[i] = copy.copy(results[i])
        results[i]._node = node if len(inner) == 1 else Edge(node, k)
    _note(results[inner[0]])  # of a call inside another one, the arguments are let go of as well
    return with_members(found, results) if isinstance(found, tuple | list) else results[0]
