"""Control flow: branches become conditional_block, loops become while."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from onnx import GraphProto
from oprack.desc import BlockDesc, OpDesc, VarDesc
from oprack.desc.reach import names_outside
from oprack.errors import CorruptModelError, UnimplementedError
from oprack.types import AttrType, VarType

from oprack_onnx.frames import Frame, graph_types
from oprack_onnx.values import Node, Value
from oprack_onnx.writer import Writer

Results = list["Value | None"]
ARRAY = VarType.LOD_TENSOR_ARRAY


class Reader(Protocol):
    """What writes the nodes of a graph."""

    writer: Writer
    lacking: dict[str, str]

    def initializers(self, graph: GraphProto, frame: Frame) -> None: ...

    def nodes(self, graph: GraphProto, frame: Frame) -> None: ...


class ControlFlow:
    """The forms of nodes that have graphs."""

    def __init__(self, reader: Reader) -> None:
        self.reader, self.writer = reader, reader.writer
        self.forms: dict[str, Callable[[Node, Frame], Results]] = {
            "If": self._branch,
            "Loop": self._loop,
            "Scan": self._scan,
        }

    # Blocks -----------------------------------------------------------------------------------------------------------
    def _open(self) -> tuple[BlockDesc, BlockDesc]:
        """A new block in which ops go; returns it and the one around it."""
        outer, program = self.writer.block, self.writer.program
        block = BlockDesc(program, len(program.blocks), outer.idx)
        program.blocks.append(block)
        self.writer.block = block
        return block, outer

    def _graph(self, graph: GraphProto, frame: Frame, inputs: Sequence[Value | None]) -> tuple[list[Value], int]:
        """Write a graph into the block at hand; returns its outputs, and how many ops lay in the block before."""
        inner = Frame({}, frame.types | graph_types(graph), frame)
        self.reader.initializers(graph, inner)
        for info, value in zip(graph.input, inputs, strict=False):
            inner.values[info.name] = value
        before = set(self.reader.lacking)
        self.reader.nodes(graph, inner)
        gone = set(self.reader.lacking) - before
        outputs = [inner.find(info.name, "an output of a graph") for info in graph.output]
        if any(v is None for v in outputs):
            raise UnimplementedError(
                f"its graph has ops that can't be written: {', '.join(sorted(gone)) or 'none known'}"
            )
        return [v for v in outputs if v is not None], len(outputs)

    def _variable(self, like: Value, base: str) -> Value:
        return self.writer.declare(base, like.dtype, like.shape, like.kind)

    def _scopes(self) -> str:
        name = self.writer.fresh("scopes")
        self.writer.block.vars[name] = VarDesc(name, VarType.STEP_SCOPES)
        return name

    # If ---------------------------------------------------------------------------------------------------------------
    def _branch(self, node: Node, frame: Frame) -> Results:
        """Two conditional blocks write the same variables: one where the condition is true, one where it is not."""
        w, condition = self.writer, node.input()
        graphs = [node.graphs["then_branch"], node.graphs["else_branch"]]
        if condition.constant is not None:
            found, _ = self._graph(graphs[0 if bool(condition.constant.reshape(-1)[0]) else 1], frame, [])
            return [w.run("assign", {"X": v}, shape=v.shape, kind=v.kind) for v in found]
        otherwise = w.run("logical_not", {"X": condition}, dtype=VarType.BOOL, shape=condition.shape)
        blocks, yields = [], []
        for graph in graphs:
            block, outer = self._open()
            try:
                found, _ = self._graph(graph, frame, [])
            finally:
                w.block = outer
            blocks.append(block)
            yields.append(found)
        if len(yields[0]) != len(yields[1]) or len(yields[0]) != len(node.outputs):
            raise CorruptModelError(
                f"its branches have {len(yields[0])} and {len(yields[1])} outputs; expected as many as it has"
            )
        results: list[Value] = []
        for i, (a, b) in enumerate(zip(*yields, strict=True)):
            shape = a.shape if a.shape == b.shape else None
            if shape is None and a.shape is not None and b.shape is not None and len(a.shape) == len(b.shape):
                shape = tuple(x if x == y else -1 for x, y in zip(a.shape, b.shape, strict=True))
            if a.dtype is not b.dtype or a.kind is not b.kind:
                raise CorruptModelError(f"output {i} is {a.dtype.name} of one branch and {b.dtype.name} of the other")
            results.append(w.declare(node.outputs[i] or "if", a.dtype, shape, a.kind))
        for chosen, block, found in zip((condition, otherwise), blocks, yields, strict=True):
            outer, w.block = w.block, block
            for value, target in zip(found, results, strict=True):
                w.copy(value, target)
            w.block = outer
            reads, writes = names_outside(block)
            attrs = {"sub_block": block.idx, "is_scalar_condition": True}
            inputs, outputs = {"Cond": [chosen.name], "Input": reads}, {"Out": writes, "Scope": [self._scopes()]}
            w.block.ops.append(OpDesc("conditional_block", inputs, outputs, attrs, {"sub_block": AttrType.BLOCK}))
        return list(results)

    # Loops ------------------------------------------------------------------------------------------------------------
    def _loop(self, node: Node, frame: Frame) -> Results:
        """while, with a counter; what each round gives is written to an array, and joined in the end."""
        body = node.graphs["body"]
        most, condition = node.get(0), node.get(1)
        states = [node.input(i) for i in range(2, len(node.inputs))]
        count = len(body.output) - 1 - len(states)

        def round_(
            number: Value, carried: list[Value], go_on: Value | None
        ) -> tuple[Value | None, list[Value], list[Value]]:
            known = go_on if go_on is not None else self.writer.constant(True, VarType.BOOL)
            found, _ = self._graph(body, frame, [number, known, *carried])
            return found[0], found[1 : 1 + len(states)], found[1 + len(states) :]

        carried, scanned = self._while(node, most, condition, states, count, round_)
        return [*carried, *(self._joined(array, 0, False, node, len(carried) + i) for i, array in enumerate(scanned))]

    def _scan(self, node: Node, frame: Frame) -> Results:
        """A loop over slices of the inputs."""
        w, body, inputs = self.writer, node.graphs["body"], list(node.inputs)
        if node.opset < 9:
            raise node.lacking("it is of opset 8, which scans batches; expected opset 9 or newer")
        scans = int(node.attrs["num_scan_inputs"])
        states = [v for v in inputs[: len(inputs) - scans] if v is not None]
        sources = [v for v in inputs[len(inputs) - scans :] if v is not None]
        axes = [int(a) for a in node.attrs.get("scan_input_axes") or [0] * scans]
        back = [int(d) for d in node.attrs.get("scan_input_directions") or [0] * scans]
        count = len(body.output) - len(states)
        out_axes = [int(a) for a in node.attrs.get("scan_output_axes") or [0] * count]
        out_back = [int(d) for d in node.attrs.get("scan_output_directions") or [0] * count]
        rank = len(sources[0].shape or ())
        front = axes[0] + rank if axes[0] < 0 else axes[0]
        dims = w.cast(w.run("shape", {"Input": sources[0]}, dtype=VarType.INT32), VarType.INT64)
        steps = w.run("onnx_gather", {"data": dims, "indices": w.constant(front)}, {"axis": 0}, out="output", shape=())
        last = w.binary("elementwise_sub", steps, w.constant(1))

        def round_(
            number: Value, carried: list[Value], go_on: Value | None
        ) -> tuple[Value | None, list[Value], list[Value]]:
            slices = []
            for value, axis, backwards in zip(sources, axes, back, strict=True):
                place = w.binary("elementwise_sub", last, number) if backwards else number
                at = {"data": value, "indices": place}
                shape = None
                if value.shape is not None:
                    shape = tuple(d for i, d in enumerate(value.shape) if i != axis % len(value.shape))
                slices.append(w.run("onnx_gather", at, {"axis": axis}, out="output", dtype=value.dtype, shape=shape))
            found, _ = self._graph(body, frame, [*carried, *slices])
            return None, found[: len(states)], found[len(states) :]

        carried, scanned = self._while(node, steps, None, states, count, round_)
        joined = []
        for i, array in enumerate(scanned):
            out = self._joined(array, out_axes[i], bool(out_back[i]), node, len(carried) + i)
            joined.append(out)
        return [*carried, *joined]

    def _while(
        self,
        node: Node,
        most: Value | None,
        condition: Value | None,
        states: list[Value],
        count: int,
        round_: Callable[[Value, list[Value], Value | None], tuple[Value | None, list[Value], list[Value]]],
    ) -> tuple[list[Value], list[Value]]:
        """A while op; returns what goes from round to round, and an array of each result of the rounds."""
        w = self.writer
        if count < 0:
            raise CorruptModelError(
                f"its body has fewer outputs than the {len(states)} values that go from round to round"
            )
        number = w.declare("loop.number", VarType.INT64, ())
        w.copy(w.constant(0), number)
        limit = None if most is None else (w.reshape(most, []) if most.rank and most.constant is not None else most)
        if limit is not None and limit.dtype is not VarType.INT64:
            limit = w.cast(limit, VarType.INT64)
        carried = []
        for i, state in enumerate(states):
            held = w.declare(
                (node.outputs[i] if i < len(node.outputs) else "") or "loop.state",
                state.dtype,
                _open(state),
                state.kind,
            )
            w.copy(state, held)
            carried.append(held)
        arrays = []
        for i in range(count):
            known = node.types[len(states) + i] if len(states) + i < len(node.types) else None
            dtype = known[0] if known is not None else VarType.FP32
            arrays.append(
                w.run("onnx_sequence_empty", {}, {"dtype": int(dtype)}, out="output", dtype=dtype, kind=ARRAY)
            )
        go_on = w.declare("loop.condition", VarType.BOOL, ())
        first = condition if condition is not None else w.constant(True, VarType.BOOL)
        self._go_on(go_on, first, number, limit)
        block, outer = self._open()
        try:
            again, new, given = round_(number, carried, go_on if condition is not None else None)
            for array, value in zip(arrays, given, strict=True):
                w.emit("write_to_array", {"X": value, "I": number}, {"Out": array})
            self._assign(new, carried)
            w.emit("increment", {"X": number}, {"Out": number}, {"step": 1.0})
            self._go_on(go_on, again if again is not None else w.constant(True, VarType.BOOL), number, limit)
        finally:
            w.block = outer
        reads, writes = names_outside(block)
        inputs = {"X": [n for n in reads if n != go_on.name], "Condition": [go_on.name]}
        outputs = {"Out": writes, "StepScopes": [self._scopes()]}
        attrs = {"sub_block": block.idx, "is_test": True}
        w.block.ops.append(OpDesc("while", inputs, outputs, attrs, {"sub_block": AttrType.BLOCK}))
        return carried, arrays

    def _go_on(self, target: Value, condition: Value, number: Value, limit: Value | None) -> None:
        w = self.writer
        flat = condition if condition.shape == () else w.reshape(condition, [1])
        if limit is not None:
            below = w.binary("less_than", number, limit, VarType.BOOL)
            flat = w.binary("logical_and", below, flat, VarType.BOOL)
        w.copy(flat, target)

    def _assign(self, values: Sequence[Value], targets: Sequence[Value]) -> None:
        """Copy values to variables, all at once: one that is another's target is read before it is written."""
        written = {target.name for target in targets}
        pairs = [(v, t) for v, t in zip(values, targets, strict=True) if v.name != t.name]
        for place, (value, target) in enumerate(pairs):
            if value.name in written:
                spare = self._variable(value, f"{target.name}.next")
                self.writer.copy(value, spare)
                pairs[place] = spare, target
        for value, target in pairs:
            self.writer.copy(value, target)

    def _joined(self, array: Value, axis: int, backwards: bool, node: Node, i: int) -> Value:
        w, shape = self.writer, node.out_shape(i)
        attrs = {"axis": axis, "new_axis": True}
        out = w.run(
            "onnx_concat_from_sequence",
            {"input_sequence": array},
            attrs,
            out="concat_result",
            dtype=array.dtype,
            shape=shape,
        )
        if backwards:
            rank = len(shape or ()) or axis + 1
            out = w.run("flip", {"X": out}, {"axis": [axis % rank]}, shape=shape)
        return out


def _open(value: Value) -> tuple[int, ...] | None:
    """The dims of what goes from round to round, whose sizes may change."""
    return None if value.shape is None else tuple(-1 for _ in value.shape)


__all__ = ["ControlFlow"]
