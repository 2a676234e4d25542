"""A call of an op as an example: its smallest recorded case with what Paddle computed, or a record of its pack."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from oprack.errors import OprackError
from oprack.op.signature import OpSignature
from oprack.tensor import LoDTensor, SparseTensor
from oprack.testing.case_folder import collect_cases
from oprack.testing.cases import FileCase, load_cases
from oprack.testing.op_case import OpCase

CASES = Path(__file__).parents[2] / "tests" / "data" / "cases"
PACKS = Path(__file__).parents[2] / "op_packages"
SHOWN = 32  # elements of an array that are written out
TRIED = 16  # cases of an op, the smallest first


@dataclass(frozen=True)
class Example:
    """A call and what it gives.

    Attributes:
        code: Source; the last line is the call, bound to `result`.
        outputs: Names of the slots with what the op gives, or None where that is random.
        recorded: Whether Paddle gave the outputs.
    """

    code: str
    outputs: dict[str, Any] | None
    recorded: bool


@dataclass(frozen=True)
class _Call:
    """What a case says of one op: values by slot, and attributes; outputs are None where they are random."""

    inputs: Mapping[str, list[Any]]
    attrs: Mapping[str, Any]
    outputs: Mapping[str, list[Any]]
    random: bool = False
    recorded: bool = False


@cache
def _index() -> dict[str, list[dict[str, Any]]]:
    found = defaultdict(list)
    for line in (CASES / "index.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        if not row["rows"] and row["kind"] in ("optest", "generated", "operator", "dygraph"):
            found[row["op_type"]].append(row)
    # A single number says little of what an op does to a tensor.
    return {op: sorted(rows, key=lambda r: (r["elements"] < 6, r["elements"]))[:TRIED] for op, rows in found.items()}


@cache
def _records() -> dict[str, list[OpCase]]:
    found = defaultdict(list)
    for folder in sorted(PACKS.glob("*/tests/cases")):
        for case in collect_cases(folder):
            found[case.op].append(case)
    return found


@cache
def example(op_type: str) -> Example | None:
    """The example of an op: a recorded case, or else a record of its pack, which a test compares with its formula.

    Args:
        op_type: The op.

    Returns:
        The example; None when no case of it is small and plain enough.
    """
    rows = {row["id"]: row["file"] for row in _index().get(op_type, ())}
    cases = {case.id: case for file in dict.fromkeys(rows.values()) for case in _cases(file)}
    calls = [_of_file(cases[name]) for name in rows] + [_of_record(case) for case in _records().get(op_type, ())]
    found = [made for call in calls if call and (made := _written(op_type, call))]
    return next((made for made in found if made.outputs), found[0] if found else None)


@cache
def _cases(file: str) -> list[FileCase]:
    return list(load_cases(CASES / file))


def _of_file(case: FileCase) -> _Call | None:
    try:
        ops = case.program().global_block().ops
    except OprackError:
        return None
    if len(ops) != 1 or case.persistable:
        return None
    values = {e.name: e.value for e in case.expected("forward")}
    inputs = {slot: [case.feeds.get(n) for n in names] for slot, names in ops[0].inputs.items() if names}
    outputs = {slot: [values.get(n) for n in names] for slot, names in ops[0].outputs.items()}
    return _Call(inputs, ops[0].attrs, outputs, case.stochastic, recorded=True)


def _of_record(case: OpCase) -> _Call:
    return _Call(_listed(case.inputs), case.attrs, _listed(case.outputs))


def _listed(slots: Mapping[str, Any]) -> dict[str, list[Any]]:
    # a tensor array is one value, and a list as Python sees it
    several = {slot for slot, values in slots.items() if type(values) is list}
    return {slot: [*map(_tensor, v)] if slot in several else [_tensor(v)] for slot, v in slots.items()}


def _tensor(value: Any) -> Any:
    return LoDTensor(np.asarray(value)) if isinstance(value, np.ndarray | np.generic | int | float) else value


def _written(op_type: str, case: _Call) -> Example | None:
    from oprack import functional

    try:
        signature = getattr(functional, op_type).op_signature
    except AttributeError:
        return None
    spelled = {slot.name: name for name, slot in signature.slots.items()}
    if not case.inputs.keys() <= spelled.keys():
        return None
    inputs = [_argument(signature, slot, case.inputs[slot]) for slot in spelled if slot in case.inputs]
    if "" in inputs:
        return None
    given = [*inputs, *_attrs(signature, case.attrs)]
    if any(p.name == "num_outputs" for p in signature.parameters):
        lists = {s: len(case.outputs.get(s, ())) for s, slot in signature.proto.outputs.items() if slot.duplicable}
        if max(lists.values(), default=0) > 1:
            given.append(f"num_outputs={lists if len(lists) > 1 else max(lists.values())}")
    call = f"result = F.{op_type}({', '.join(given)})"
    if len(call) > 110:
        call = f"result = F.{op_type}(\n    " + ",\n    ".join(given) + ",\n)"
    random = "random." in call
    head = [
        *(["import numpy as np"] if "np." in call or random else []),
        *(["import oprack"] if "oprack." in call else []),
        "from oprack import functional as F",
    ]
    head += ["", "random = np.random.default_rng(0)"] if random else [""]
    outputs = None if random or case.random else _outputs(case.outputs)
    return Example("\n".join([*head, call]), outputs, case.recorded)


def _argument(signature: OpSignature, slot: str, given: list[Any]) -> str:
    """`x=...` for one slot; "" when its values can't be written."""
    values = [_value(value) for value in given]
    if None in values:
        return ""
    (name,) = [n for n, s in signature.slots.items() if s.name == slot]
    duplicable = signature.proto.inputs[slot].duplicable
    return f"{name}=[{', '.join(map(str, values))}]" if duplicable else f"{name}={values[0]}"


def _value(value: Any) -> str | None:
    if isinstance(value, SparseTensor):
        parts = [_value(LoDTensor(a)) for a in (*value.pattern, value.values)]
        plain = None not in parts and not any("random" in str(part) for part in parts)
        return f"oprack.{type(value).__name__}({', '.join(map(str, parts))}, {list(value.shape)})" if plain else None
    if not isinstance(value, LoDTensor):
        return None
    array = np.asarray(value)
    if array.dtype.name not in np.sctypeDict or array.dtype.kind not in "biufc" or not array.size:
        return None
    if array.size > SHOWN:
        text = _drawn(array)
    else:
        text = f"np.array({_numbers(array)}, np.{'bool_' if array.dtype.kind == 'b' else array.dtype.name})"
    return f"oprack.to_tensor({text}, lod={[list(map(int, x)) for x in value.lod]})" if value.lod and text else text


def _drawn(array: np.ndarray) -> str | None:
    """Numbers like those of a large array."""
    if array.size > 1 << 16 or array.dtype.kind not in "biuf":
        return None
    if array.dtype.name in ("float32", "float64"):
        return f'random.random({list(array.shape)}, dtype="{array.dtype.name}")'
    if array.dtype.kind == "f":
        return f"random.random({list(array.shape)}).astype(np.{array.dtype.name})"
    low, high = int(array.min()), int(array.max())
    name = "bool_" if array.dtype.kind == "b" else array.dtype.name
    return f"random.integers({low}, {high + 1}, {list(array.shape)}).astype(np.{name})"


def _numbers(array: np.ndarray) -> str:
    """The nested list, each number as short as its dtype allows."""
    if array.ndim:
        return f"[{', '.join(_numbers(np.asarray(part)) for part in array)}]"
    if array.dtype.kind == "f":
        text = np.format_float_positional(array[()], trim="0")
        return text if np.isfinite(array) else f"np.{text}".replace("np.-", "-np.")
    return str(array.item())


def _attrs(signature: OpSignature, attrs: Mapping[str, Any]) -> list[str]:
    given = []
    for name, attr in signature.attrs.items():
        value = attrs.get(attr.name, attr.default)
        if value != attr.default and not (isinstance(value, float) and _near(value, attr.default)):
            given.append(f"{name}={_attr(value)}")
    return given


def _attr(value: Any) -> str:
    if not isinstance(value, float):
        return repr(value)
    return repr(float(f"{value:.7g}")) if math.isfinite(value) else f'float("{value}")'


def _near(value: float, default: Any) -> bool:
    return isinstance(default, int | float) and math.isclose(value, default, rel_tol=1e-6)


def _outputs(given: Mapping[str, list[Any]]) -> dict[str, Any] | None:
    """What the case expects, by slot, where all of it is small."""
    found = {}
    for slot, values in given.items():
        if len(values) == 1 and isinstance(values[0], LoDTensor) and values[0].array.size <= SHOWN:
            found[slot] = values[0].array
        elif len(values) == 1 and isinstance(values[0], SparseTensor) and math.prod(values[0].shape) <= SHOWN:
            found[slot] = values[0].to_dense()
    return found or None
