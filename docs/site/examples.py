"""A call of an op as an example: its smallest recorded case with what Paddle computed, or a record of its pack."""

from __future__ import annotations

import ast
import json
import math
import pprint
import re
import sys
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
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
WRITTEN = Path(__file__).with_name("op_examples.md")
SHOWN = 32  # elements of an array that are written out
WIDTH = 88  # columns
TRIED = 16  # cases of an op, the smallest first


@dataclass(frozen=True)
class Example:
    """A call and what it gives.

    Attributes:
        code: Source; the last line is the call, bound to `result`.
        outputs: Names of the slots with what the op gives, or None where that is random.
        recorded: Whether Paddle gave the outputs.
        shapes: dtype and shape of each output, as "float32 [2, 3]", where there are no outputs.
    """

    code: str
    outputs: dict[str, Any] | None
    recorded: bool
    shapes: dict[str, str] = field(default_factory=dict)

    @property
    def cost(self) -> tuple[bool, bool, bool, int, int]:
        """Sorts examples: those with numbers as a result first, then those that one reads at a glance."""
        longest = max(map(len, self.code.splitlines()))
        single = self.outputs is not None and all(np.size(value) < 2 for value in self.outputs.values())
        odd = "np.inf" in self.code or "np.nan" in self.code
        return self.outputs is None, odd, single, max(longest, WIDTH), len(self.code)


@dataclass(frozen=True)
class _Call:
    """What a case says of one op: values by slot, and attributes; outputs are None where they are random."""

    inputs: Mapping[str, list[Any]]
    attrs: Mapping[str, Any]
    outputs: Mapping[str, list[Any]]
    random: bool = False
    recorded: bool = False


@cache
def written() -> dict[str, tuple[str, str]]:
    """The examples that people wrote, in op_examples.md: source and what it prints, by op."""
    text = WRITTEN.read_text("utf-8")
    found = re.findall(r"^## (\w+)\n\n```python\n(.*?)```\n\n```text\n(.*?)```", text, re.DOTALL | re.MULTILINE)
    return {op: (headed(code.rstrip()), printed.rstrip()) for op, code, printed in found}


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
    best = min(found, key=lambda made: made.cost, default=None)
    return best if best is None or best.outputs else replace(best, shapes=_shapes(best.code))


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
    if not case.inputs.keys() <= spelled.keys() or not (case.recorded or _sayable(signature, case.attrs)):
        return None
    lines, given, positional = [], [], True
    for slot, name in spelled.items():
        positional = positional and slot in case.inputs
        if slot in case.inputs:
            written = _argument(signature, name, case.inputs[slot])
            if not written:
                return None
            lines.append(written)
            given.append(name if positional else f"{name}={name}")
    given += _attrs(signature, case.attrs)
    if any(p.name == "num_outputs" for p in signature.parameters):
        lists = {s: len(case.outputs.get(s, ())) for s, slot in signature.proto.outputs.items() if slot.duplicable}
        several = [values for slot, values in case.inputs.items() if signature.proto.inputs[slot].duplicable]
        if lists and max([*lists.values(), *map(len, several)]) > 1:
            counts = json.dumps(lists) if len(lists) > 1 else str(max(lists.values()))
            given.append(_broken("num_outputs=", counts))
    lines.append(_call(op_type, given))
    code = "\n".join(lines)
    random = "random." in code
    outputs = None if random or case.random else _outputs(case.outputs)
    return Example(headed(code), outputs, case.recorded)


def _sayable(signature: OpSignature, attrs: Mapping[str, Any]) -> bool:
    """Whether a call can give these attributes: extra ones it can't. Paddle's cases have many that say nothing."""
    declared = signature.proto.attrs
    return attrs.keys() <= {a.name for a in signature.attrs.values()} | {
        n for n in attrs if attrs[n] == declared[n].default
    }


def headed(code: str) -> str:
    """Source with the imports that it needs before it, and the generator that it draws from."""
    random = "random." in code and "random =" not in code
    head = [
        *(["import numpy as np"] if "np." in code or random else []),
        *(["import oprack"] if "oprack." in code else []),
        *(["from oprack import functional as F"] if "F." in code else []),
        "",
        *(["random = np.random.default_rng(0)"] if random else []),
    ]
    return "\n".join([*head, code])


def _call(op_type: str, given: list[str]) -> str:
    call = f"result = F.{op_type}({', '.join(given)})"
    return call if len(call) <= WIDTH else f"result = F.{op_type}(\n    " + ",\n    ".join(given) + ",\n)"


def _argument(signature: OpSignature, name: str, given: list[Any]) -> str:
    """`x = ...` for one slot; "" when its values can't be written."""
    head = f"{name} = "
    if not signature.proto.inputs[signature.slots[name].name].duplicable:
        (value,) = given
        text = _value(value, len(head))
        return f"{head}{text}" if text else ""
    values = [_value(value, 4) for value in given]
    if None in values:
        return ""
    line = f"{head}[{', '.join(map(str, values))}]"
    if len(line) <= WIDTH and "\n" not in line:
        return line
    return f"{head}[\n    " + ",\n    ".join(map(str, values)) + ",\n]"


def _value(value: Any, column: int = 0) -> str | None:
    """The source of a value, whose first line begins in a column."""
    if isinstance(value, SparseTensor):
        parts = [_value(LoDTensor(a), 4) for a in (*value.pattern, value.values)]
        plain = None not in parts and not any("random" in str(part) for part in parts)
        inside = ",\n    ".join(map(str, [*parts, list(value.shape)]))
        return f"oprack.{type(value).__name__}(\n    {inside},\n)" if plain else None
    if not isinstance(value, LoDTensor):
        return None
    array = np.asarray(value)
    if array.dtype.name not in np.sctypeDict or array.dtype.kind not in "biufc" or not array.size:
        return None
    before = "oprack.to_tensor(" if value.lod else ""
    text = _drawn(array) if array.size > SHOWN else _literal(array, column + len(before))
    if not text or not value.lod:
        return text
    lod = f"lod={[list(map(int, x)) for x in value.lod]})"
    last = column + len(before) + len(text) if "\n" not in text else len(text.rpartition("\n")[2])
    return (
        f"{before}{text}, {lod}" if last + len(lod) < WIDTH else f"{before}{text},\n{' ' * (column + len(before))}{lod}"
    )


def _literal(array: np.ndarray, column: int) -> str:
    """`np.array(...)` with a line for each row."""
    dtype = "bool_" if array.dtype.kind == "b" else array.dtype.name
    head = f"np.{dtype}(" if array.dtype.kind != "c" and array.ndim else "np.array("
    tail = ")" if head != "np.array(" else f", np.{dtype})"
    if not array.ndim:
        return f"{head}{_number(array)}{tail}"
    text = np.array2string(
        array,
        separator=", ",
        formatter={"all": _number},
        threshold=sys.maxsize,
        max_line_width=WIDTH - len(tail),
        prefix=" " * (column + len(head)),
    )
    return head + re.sub(r"\n\n+", "\n", text) + tail


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


def _number(value: Any) -> str:
    """A number, as short as its dtype allows."""
    array = np.asarray(value)
    if array.dtype.kind == "f":
        text = np.format_float_positional(array[()], trim="0")
        if np.isfinite(array):
            return text if len(text) < 16 else repr(array.item())
        return f"np.{text}".replace("np.-", "-np.")
    return str(array.item())


def _attrs(signature: OpSignature, attrs: Mapping[str, Any]) -> list[str]:
    given = []
    for name, attr in signature.attrs.items():
        value = attrs.get(attr.name, attr.default)
        if value != attr.default and not (isinstance(value, float) and _near(value, attr.default)):
            given.append(_broken(f"{name}=", _attr(value)))
    return given


def _broken(head: str, text: str) -> str:
    """An argument; a list or dict that is too long for a line goes over several."""
    if len(head) + len(text) + 5 <= WIDTH or text[0] not in "[{":
        return head + text
    indent = " " * (4 + len(head))
    broken = pprint.pformat(ast.literal_eval(text), width=WIDTH - len(indent), compact=True, sort_dicts=False)
    return head + broken.replace("\n", f"\n{indent}")


def _attr(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value)
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


def _shapes(code: str) -> dict[str, str]:
    """dtype and shape of what an example gives, by name: numbers that were drawn need not be shown."""
    names: dict[str, Any] = {}
    exec(code, names)
    result = names["result"]
    parts = result._asdict() if hasattr(result, "_asdict") else {"result": result}
    found = {}
    for name, value in parts.items():
        several = value if isinstance(value, list | tuple) else [value]
        for i, one in enumerate(several):
            if hasattr(one, "numpy"):
                found[name if several[1:] == [] else f"{name}[{i}]"] = f"{one.dtype} {list(one.shape)}"
    return found
