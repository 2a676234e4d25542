"""The pass: stretches of ops that can be written as ONNX become one op each, which ONNX Runtime runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from oprack.desc import OpDesc, ProgramDesc, VarDesc
from oprack.errors import OprackError, UnimplementedError
from oprack.ir import Graph
from oprack.ir.nodes import OpNode, VarNode
from oprack.program import Program
from oprack.python.interruption import let_interruptions_pass
from oprack.python.logs import get_logger
from oprack.types import EMPTY_VAR, VarType, dtype_enum
from oprack_onnx.export.graph import Graph as Written
from oprack_onnx.export.model import export_model, write_op
from oprack_onnx.model import LARGE

from oprack_onnxruntime.library import Session

_LOG = get_logger(__name__)

LEAST = 3
"""Ops that an engine stands for at least: a call of a session takes as long as a few small ones."""

_DTYPES = frozenset({VarType.FP32, VarType.INT64, VarType.INT32, VarType.UINT8, VarType.BOOL})
"""Of all values on the way: for others ONNX Runtime lacks kernels of many ops."""
_DRAW = ("Random", "Multinomial", "Bernoulli")
"""How nodes are called that draw other numbers than oprack's generators."""


def make_engines(graph: Graph) -> int:
    """Put an engine in the place of each of the largest stretches of ops that can be written as ONNX.

    Args:
        graph: The graph.

    Returns:
        How many engines there are.
    """
    if graph.block.idx or graph.scope is None:  # the rounds of a loop are short, and read what is around it
        return 0
    trial = _Trial(graph)
    engines = sum(_replace(graph, trial, ops) for ops in trial.stretches() if len(ops) >= LEAST)
    if engines:
        graph.sort()
    return engines


class _Trial:
    """All ops of a graph written as ONNX one by one, each value under a name of its own.

    Args:
        graph: The graph.

    Attributes:
        descs: Op -> its desc with these names, of ops that an engine may stand for.
        unchanged: Ops -> what they write back as they read it, such as the mean of a batch_norm.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.program = ProgramDesc()
        self.written = Written(self.program.blocks[0])
        self.names: dict[VarNode, str] = {}
        self.parameters: dict[VarNode, np.ndarray] = {}
        self.descs: dict[OpNode, OpDesc] = {}
        self.unchanged: dict[OpNode, set[VarNode]] = {}
        self._offsets: set[str] = set()
        for op in graph.ops:
            for node in op.reads():
                if node.producer is None:
                    self._enter(node, [op])
            if not self._write(op):
                for node in op.writes():
                    self._enter(node)

    def name(self, node: VarNode) -> str:
        """The name of a value, which is declared by what holds in every run."""
        if node not in self.names:
            name = self.names[node] = f"v{len(self.names)}"
            self.program.blocks[0].vars[name] = VarDesc(
                name, node.fact.type, node.fact.dtype, node.shape, persistable=node in self.parameters
            )
        return self.names[node]

    def _enter(self, node: VarNode, unchanged: Sequence[OpNode] = ()) -> None:
        """Let ops read what no op that was written gives; what is no dense tensor stays without a value."""
        if node in self.names or not _is_dense(node):
            return
        array = self.graph.constant_array(node, unchanged)
        if array is not None:
            self.parameters[node] = array
        name, written = self.name(node), self.written
        value = written.values[name] = written.fresh(name)
        written.types[value] = written.dtypes[name] = VarType(node.fact.dtype or VarType.FP32)
        if array is not None and array.size < LARGE:
            written.initializers[value] = array
        if array is None:  # whoever reads these offsets depends on LoD
            written.lods[name] = [f"{name}.lod"]
            self._offsets.add(f"{name}.lod")

    def _write(self, op: OpNode) -> bool:
        """Write an op, if an engine may stand for it."""
        if op.opaque or op.runs_itself or op.malformed or op.hidden_reads or op.hidden_writes:
            return False
        if any(self.graph.is_overwritten(n, [op]) for n in (*op.reads(), *op.writes())):
            return False
        if not all(n in self.names for n in op.reads()):
            return False
        desc = op.desc.with_variables(*(self._named(slots) for slots in (op.inputs, op.outputs)))
        begin = len(self.written.nodes)
        try:
            call = write_op(desc, self.written)
        except Exception:  # attributes of a model may be anything; running the op says what is wrong
            let_interruptions_pass()
            return self._take_back(op, begin)
        nodes = self.written.nodes[begin:]
        if call.told or any(n.op_type.startswith(_DRAW) or not self._offsets.isdisjoint(n.input) for n in nodes):
            return self._take_back(op, begin)
        same = {
            n for n in op.writes() if any(r.name == n.name and self._value(r) == self._value(n) for r in op.reads())
        }
        if any(n in same and n.consumers for n in op.writes()) or not all(map(self._has_its_type, op.writes())):
            return self._take_back(op, begin)
        self.descs[op], self.unchanged[op] = desc, same
        return True

    def _take_back(self, op: OpNode, begin: int) -> bool:
        del self.written.nodes[begin:]
        for node in op.writes():
            if name := self.names.pop(node, None):
                self.program.blocks[0].vars.pop(name)
        return False

    def _named(self, slots: dict[str, list[VarNode]]) -> dict[str, list[str]]:
        return {s: [EMPTY_VAR if n.name == EMPTY_VAR else self.name(n) for n in nodes] for s, nodes in slots.items()}

    def _value(self, node: VarNode) -> str | None:
        return self.written.values.get(self.name(node))

    def _has_its_type(self, node: VarNode) -> bool:
        """Whether an output is what the op's rules say; one that nobody reads need not be there."""
        value = self._value(node)
        if value is None:
            return not node.consumers and not self.graph.is_kept(node)
        return _is_dense(node) and self.written.types.get(value, node.fact.dtype) == node.fact.dtype

    def lod_of(self, node: VarNode) -> list[str]:
        """The offsets that a value has, by the name of what brought them."""
        return self.written.lod(self.name(node))

    def stretches(self) -> Iterator[list[OpNode]]:
        """Ops that may become one engine: what lies on a way between two of them is of the same stretch."""
        # each change between ops of both sorts is a step up, so that no way leads out of a step and back to it
        steps: dict[OpNode, int] = {}
        for op in self.graph.ops:
            before = [n.producer for n in op.reads() if n.producer in steps]
            steps[op] = max((steps[b] + self._change(b, op) for b in before), default=0)
        # what nobody needs so early joins those that do
        found: dict[int, list[OpNode]] = {}
        for op in reversed(self.graph.ops):
            if op in self.descs:
                after = [reader for n in op.writes() for reader in n.consumers if reader is not op]
                steps[op] = min((steps[a] - self._change(op, a) for a in after), default=steps[op])
                found.setdefault(steps[op], []).insert(0, op)
        yield from found.values()

    def _change(self, one: OpNode, other: OpNode) -> bool:
        return (one in self.descs) != (other in self.descs)


def _is_dense(node: VarNode) -> bool:
    fact = node.fact
    return fact.type == VarType.LOD_TENSOR and fact.dtype in _DTYPES and fact.shape is not None


def _replace(graph: Graph, trial: _Trial, ops: Sequence[OpNode]) -> bool:
    """Put an engine in the place of some ops; False where they stay as they are."""
    own, blocks = set(ops), trial.program.blocks[0].vars
    unchanged = {n for op in ops for n in trial.unchanged[op]}
    reads = dict.fromkeys(n for op in ops for n in op.reads() if n.producer not in own)
    inputs = [n for n in reads if n not in trial.parameters]
    large = [n for n in reads if n in trial.parameters and trial.parameters[n].size >= LARGE]
    small = {trial.name(n): trial.parameters[n] for n in reads if n in trial.parameters and n not in large}
    outputs = [n for op in ops for n in op.writes() if n not in unchanged and _leaves(graph, n, own)]
    if not inputs or not outputs:
        return False
    program = ProgramDesc()
    program.blocks[0].ops = [trial.descs[op] for op in ops]
    program.blocks[0].vars = {n: blocks[n] for op in ops for n in _names(trial.descs[op])}
    feeds, fetches = ([trial.name(n) for n in nodes] for nodes in ([*inputs, *large], outputs))
    try:
        model, lacking = export_model(Program(program), feeds, fetches, small)
        if lacking:  # it can be written beside other ops alone
            raise UnimplementedError("; ".join(lacking))
        data = np.frombuffer(model.SerializeToString(), np.uint8).copy()
        Session(data, [trial.parameters[n] for n in large], threads=0)
    except OprackError as error:
        _LOG.info("%d ops stay as they are: %s", len(ops), error)
        return False
    lods = [trial.lod_of(n) for n in inputs]
    attrs = {
        "dtypes": [int(dtype_enum(n.dtype)) for n in outputs],
        "shapes": [d for n in outputs for d in (len(n.shape or ()), *(n.shape or ()))],
        "lods": [lods.index(lod) if (lod := trial.lod_of(n)) in lods else -1 for n in outputs],
    }
    slots = {"Xs": inputs, "Params": large, "Model": [graph.new_parameter(data, "onnxruntime_engine")]}
    graph.add_op("onnxruntime_engine", slots, {"Ys": outputs}, attrs, before=ops[-1])
    for op in reversed(ops):
        graph.remove_op(op)
    return True


def _leaves(graph: Graph, node: VarNode, own: set[OpNode]) -> bool:
    """Whether something else than these ops reads a value."""
    return graph.is_kept(node) or not own.issuperset(node.consumers)


def _names(op: OpDesc) -> Iterable[str]:
    return (n for n in (*op.input_arg_names(), *op.output_arg_names()) if n != EMPTY_VAR)
