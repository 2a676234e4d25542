"""OpCall: an op with its inputs and attributes, taken from recorded cases; the seeds that the fuzzer mutates."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from oprack.desc import OpDesc
from oprack.errors import OprackError
from oprack.packs.manager import PackManager, default_manager
from oprack.program import Program
from oprack.tensor import LoDTensor, LoDTensorArray, SparseValue
from oprack.testing.any_kind import as_value, elements
from oprack.testing.cases import FileCase, Stage, load_cases
from oprack.testing.fuzz.examples.values import fresh
from oprack.testing.fuzz.runs.paths import _Executor, filled_scope
from oprack.testing.op_case import OpCase
from oprack.types import EMPTY_VAR, AttrType

_LARGEST = 1 << 14
_BLOCKS = (AttrType.BLOCK, AttrType.BLOCKS)


@dataclass
class OpCall:
    """A call of an op.

    Attributes:
        type: The op.
        inputs: Names of variables by input slot, as in an OpDesc.
        outputs: Names of variables by output slot.
        attrs: Attributes that are set.
        attr_types: Their types.
        values: Values of the input variables.
        case: Name of the case that it was taken from; "" where there is none.
    """

    type: str
    inputs: dict[str, list[str]]
    outputs: dict[str, list[str]]
    attrs: dict[str, Any]
    attr_types: dict[str, AttrType]
    values: dict[str, Any] = field(repr=False)
    case: str = ""

    def desc(self) -> OpDesc:
        return OpDesc(self.type, self.inputs, self.outputs, self.attrs, self.attr_types)


def seeds(
    op_type: str,
    folders: Iterable[Path] = (),
    records: Iterable[OpCase] = (),
    most: int = 24,
    seed: int = 0,
    manager: PackManager | None = None,
) -> list[OpCall]:
    """Collect calls of an op, from which the fuzzer starts.

    They are those of `recorded`, or, if there are none, guessed from its OpProto.

    Args:
        op_type: The op.
        folders: Folders of recorded cases.
        records: OpCase records.
        most: The most calls to take from one file.
        seed: Seed of the random choice.
        manager: The packs; default: those of the process.

    Returns:
        The calls; [] for an op that runs blocks.
    """
    manager = manager or default_manager()
    calls = recorded(op_type, folders, records, most, seed, manager)
    if calls or _runs_blocks(op_type, manager):
        return calls
    return _of_proto(op_type, manager, random.Random(f"{seed}/{op_type}"))


def recorded(
    op_type: str,
    folders: Iterable[Path] = (),
    records: Iterable[OpCase] = (),
    most: int = 24,
    seed: int = 0,
    manager: PackManager | None = None,
) -> list[OpCall]:
    """Collect calls of an op from recorded cases of the op or of its forward op, and from OpCase records.

    Args:
        op_type: The op.
        folders: Folders of recorded cases.
        records: OpCase records.
        most: The most calls to take from one file.
        seed: Seed of the random choice.
        manager: The packs; default: those of the process.

    Returns:
        The calls; [] for an op that runs blocks.
    """
    manager = manager or default_manager()
    if _runs_blocks(op_type, manager):
        return []
    calls = [call for record in records if record.op == op_type for call in [_of_record(record, manager)] if call]
    files = [f for folder in folders for stem, f in _case_files(folder) if _serves(stem, op_type)]
    rng = random.Random(f"{seed}/{op_type}")
    for file in files:
        cases = list(load_cases(file))
        rng.shuffle(cases)
        count = 0
        for call in _of_cases(cases, op_type, manager):
            calls.append(call)
            count += 1
            if count >= most:
                break
    return calls


@cache
def _case_files(folder: Path) -> list[tuple[str, Path]]:
    """Names and paths of the files of cases; a search asks for them once for each op."""
    return [(f.stem, f) for f in sorted(folder.rglob("*.npz"))]


def _runs_blocks(op_type: str, manager: PackManager) -> bool:
    return any(a.type in _BLOCKS for a in manager.op_info(op_type).proto.attrs.values())


def _serves(stem: str, op_type: str) -> bool:
    """Whether the cases of op `stem` may have a program with `op_type`, the op or a gradient of it."""
    return op_type == stem or op_type.startswith((f"{stem}_grad", f"{stem}_double"))


def _of_cases(cases: Sequence[FileCase], op_type: str, manager: PackManager) -> Iterator[OpCall]:
    stages: list[Stage] = ["gradient", "gradient2"] if "grad" in op_type else ["forward"]
    for case in cases:
        for stage in stages:
            if case.has(stage) and op_type in case.op_types(stage):
                with contextlib.suppress(OprackError):
                    for call in calls_of(case.program(stage), case.inputs(stage), op_type, manager):
                        yield replace(call, case=case.id)


def calls_of(program: Program, inputs: Mapping[str, Any], op_type: str, manager: PackManager) -> Iterator[OpCall]:
    """Calls of one op type in block 0, with the values that its inputs have when the program runs."""
    ops = [op for op in program.global_block().ops if op.type == op_type]
    names = dict.fromkeys(n for op in ops for n in op.input_arg_names() if n != EMPTY_VAR)
    values = _values_of(list(names), program, inputs, manager)
    for op in ops:
        op_values = {n: values[n] for n in op.input_arg_names() if values.get(n) is not None}
        # a table of ranks, such as loops have, can be neither fed nor changed
        known = all(isinstance(v, LoDTensor | LoDTensorArray | SparseValue) for v in op_values.values())
        if known and sum(map(_size, op_values.values())) <= _LARGEST:
            yield _call(op, op_values)


def _call(op: OpDesc, values: dict[str, Any]) -> OpCall:
    """Convert an op to a call; inputs without a value become absent."""
    inputs = {s: [n for n in names if n in values] for s, names in op.inputs.items()}
    outputs = {s: list(names) for s, names in op.outputs.items() if names}
    present = {s: names for s, names in inputs.items() if names}
    return OpCall(op.type, present, outputs, dict(op.attrs), dict(op.attr_types), values)


def _values_of(
    names: Sequence[str], program: Program, inputs: Mapping[str, Any], manager: PackManager
) -> dict[str, Any]:
    """The values of the inputs, and of the other names as a run of the program computes them."""
    missing = [n for n in names if n not in inputs]
    if not missing:
        return dict(inputs)
    executor = _Executor(prepared=False, manager=manager, excluded_libraries=list(manager.extensions.libraries()))
    feed = {n: v for n, v in inputs.items() if isinstance(v, LoDTensor)}
    scope = filled_scope({n: v for n, v in inputs.items() if n not in feed})
    computed = executor.run(program, feed, missing, scope, return_numpy=False)
    return {**inputs, **dict(zip(missing, computed, strict=True))}


def _size(value: Any) -> int:
    if isinstance(value, LoDTensorArray):
        return sum(_size(t) for t in value if t is not None)
    return int(elements(value).size)


def _of_record(record: OpCase, manager: PackManager) -> OpCall | None:
    proto = manager.op_info(record.op).proto
    values: dict[str, Any] = {}
    inputs = {}
    for slot, slot_value in record.inputs.items():
        items = _items(slot_value)
        inputs[slot] = [f"{slot}_{i}" for i in range(len(items))]
        values |= dict(zip(inputs[slot], map(as_value, items), strict=True))
    if any(v is None or _size(v) > _LARGEST for v in values.values()):
        return None
    outputs = {}
    for slot, p in proto.outputs.items():
        if slot in record.outputs or not (p.dispensable or p.duplicable):
            names = [f"{slot}_{i}" for i in range(len(_items(record.outputs.get(slot))))]
            # An output whose slot has the name of an input slot needs another variable.
            outputs[slot] = [n if n not in values else f"{n}.out" for n in names]
    types = {k: proto.attrs[k].type for k in record.attrs if k in proto.attrs}
    return OpCall(record.op, inputs, outputs, dict(record.attrs), types, values, record.id)


def _items(value: Any) -> list[Any]:
    """The values that a record has for a slot, as a list; an array of tensors is a single value."""
    return value if isinstance(value, list) and not isinstance(value, LoDTensorArray) else [value]


def _of_proto(op_type: str, manager: PackManager, rng: random.Random) -> list[OpCall]:
    """Guess calls with inputs of one shape and default attributes; the op's shape rule rejects those that don't fit."""
    proto = manager.op_info(op_type).proto
    if any(a.required for a in proto.attrs.values()):
        return []
    calls = []
    for shape in ((2, 3), (2, 3, 4, 4), (3,), (1,), (2, 3, 4)):
        for dtype in ("float32", "float64", "int64"):
            inputs = {s: [s.lower()] for s, p in proto.inputs.items() if not p.dispensable}
            all_dispensable = all(p.dispensable for p in proto.outputs.values())
            outputs = {
                s: [f"{s.lower()}.out"] for s, p in proto.outputs.items() if all_dispensable or not p.dispensable
            }
            numbers = np.random.default_rng(rng.randrange(1 << 30))
            values = {n: LoDTensor(fresh(numbers, shape, dtype)) for names in inputs.values() for n in names}
            calls.append(OpCall(op_type, inputs, outputs, {}, {}, values))
    return calls
