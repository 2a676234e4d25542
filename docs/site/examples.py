"""A call of an op as an example: the smallest recorded case of it, with what Paddle computed for it."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from oprack.errors import OprackError
from oprack.op.signature import OpSignature
from oprack.tensor import LoDTensor
from oprack.testing.cases import FileCase, load_cases

CASES = Path(__file__).parents[2] / "tests" / "data" / "cases"
SHOWN = 32  # elements of an array that are written out
TRIED = 16  # cases of an op, the smallest first


@dataclass(frozen=True)
class Example:
    """A call and what it gives.

    Attributes:
        code: Source; the last line is the call, bound to `result`.
        outputs: Names of the slots with what Paddle computed, or None where inputs are random.
    """

    code: str
    outputs: dict[str, Any] | None


@cache
def _index() -> dict[str, list[dict[str, Any]]]:
    found = defaultdict(list)
    for line in (CASES / "index.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        if not row["rows"] and not row["stochastic"] and row["kind"] in ("optest", "generated", "operator", "dygraph"):
            found[row["op_type"]].append(row)
    # A single number says little of what an op does to a tensor.
    return {op: sorted(rows, key=lambda r: (r["elements"] < 6, r["elements"]))[:TRIED] for op, rows in found.items()}


def example(op_type: str) -> Example | None:
    """The example of an op; None when no recorded case of it is small and plain enough.

    Args:
        op_type: The op.
    """
    rows = {row["id"]: row["file"] for row in _index().get(op_type, ())}
    cases = {case.id: case for file in dict.fromkeys(rows.values()) for case in _cases(file)}
    calls = [call for name in rows if (call := _call(op_type, cases[name]))]
    return next((call for call in calls if call.outputs), calls[0] if calls else None)


@cache
def _cases(file: str) -> list[FileCase]:
    return list(load_cases(CASES / file))


def _call(op_type: str, case: FileCase) -> Example | None:
    from oprack import functional

    try:
        signature = getattr(functional, op_type).op_signature
        ops = case.program().global_block().ops
    except (AttributeError, OprackError):
        return None
    if len(ops) != 1 or case.persistable:
        return None
    spelled = {slot.name: name for name, slot in signature.slots.items()}
    filled = {slot: names for slot, names in ops[0].inputs.items() if names}
    if not filled.keys() <= spelled.keys():
        return None
    inputs = [_argument(signature, slot, filled[slot], case.feeds) for slot in spelled if slot in filled]
    if "" in inputs:
        return None
    given = [*inputs, *_attrs(signature, ops[0])]
    if any(p.name == "num_outputs" for p in signature.parameters):
        lists = {s: len(ops[0].outputs.get(s, ())) for s, slot in signature.proto.outputs.items() if slot.duplicable}
        if max(lists.values(), default=0) > 1:
            given.append(f"num_outputs={lists if len(lists) > 1 else max(lists.values())}")
    call = f"result = F.{op_type}({', '.join(given)})"
    if len(call) > 110:
        call = f"result = F.{op_type}(\n    " + ",\n    ".join(given) + ",\n)"
    random = "random." in call
    head = [
        "import numpy as np",
        *(["import oprack"] if "oprack." in call else []),
        "from oprack import functional as F",
    ]
    head += ["", "random = np.random.default_rng(0)"] if random else [""]
    return Example("\n".join([*head, call]), None if random else _outputs(ops[0], case))


def _argument(signature: OpSignature, slot: str, names: list[str], feeds: dict[str, Any]) -> str:
    """`x=...` for one slot; "" when its values can't be written."""
    values = [_value(feeds.get(name)) for name in names]
    if None in values:
        return ""
    (name,) = [n for n, s in signature.slots.items() if s.name == slot]
    duplicable = signature.proto.inputs[slot].duplicable
    return f"{name}=[{', '.join(map(str, values))}]" if duplicable else f"{name}={values[0]}"


def _value(value: Any) -> str | None:
    if not isinstance(value, LoDTensor):
        return None
    array = np.asarray(value)
    if array.dtype.name not in np.sctypeDict or array.dtype.kind not in "biuf":
        return None
    if array.size > SHOWN:
        if array.dtype.name not in ("float32", "float64") or array.size > 1 << 16:
            return None
        text = f'random.random({list(array.shape)}, dtype="{array.dtype.name}")'
    elif not array.size or not np.isfinite(array.astype("float64")).all():
        return None
    else:
        text = f"np.array({_numbers(array)}, np.{'bool_' if array.dtype.kind == 'b' else array.dtype.name})"
    return f"oprack.to_tensor({text}, lod={[list(map(int, level)) for level in value.lod]})" if value.lod else text


def _numbers(array: np.ndarray) -> str:
    """The nested list, each number as short as its dtype allows."""
    if array.ndim:
        return f"[{', '.join(_numbers(np.asarray(part)) for part in array)}]"
    return str(array.item()) if array.dtype.kind != "f" else np.format_float_positional(array[()], trim="0")


def _attrs(signature: OpSignature, op: Any) -> list[str]:
    given = []
    for name, attr in signature.attrs.items():
        value = op.attrs.get(attr.name, attr.default)
        if value != attr.default and not (isinstance(value, float) and _near(value, attr.default)):
            given.append(f"{name}={_attr(value)}")
    return given


def _attr(value: Any) -> str:
    if not isinstance(value, float):
        return repr(value)
    return repr(float(f"{value:.7g}")) if math.isfinite(value) else f'float("{value}")'


def _near(value: float, default: Any) -> bool:
    return isinstance(default, int | float) and math.isclose(value, default, rel_tol=1e-6)


def _outputs(op: Any, case: FileCase) -> dict[str, Any] | None:
    """What the case expects, by slot, where all of it is small."""
    values = {e.name: e.value for e in case.expected("forward")}
    found = {}
    for slot, names in op.outputs.items():
        known = [values[n] for n in names if n in values]
        if len(known) == len(names) == 1 and isinstance(known[0], LoDTensor) and known[0].array.size <= SHOWN:
            found[slot] = known[0].array
    return found or None
