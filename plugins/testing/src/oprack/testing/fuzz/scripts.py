"""A short Python script that shows a difference again, for people."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
from oprack.tensor import LoDTensor, LoDTensorArray, SelectedRows, SparseTensor
from oprack.testing.fuzz.examples.example import Example
from oprack.testing.fuzz.runs.outcome import Difference
from oprack.types import VarType

_LITERAL = 48


def script(example: Example, difference: Difference | None = None) -> str:
    """Source that builds the example and prints what differs on the path of the difference, or on all."""
    only = f"only=[{difference.path!r}]" if difference else ""
    lines = ["import base64, zlib", "import numpy as np, oprack", "from numpy import array, nan, inf"]
    lines += ["from oprack import LoDTensor as T", "from oprack.testing.fuzz import Checker, Example", ""]
    # not in the first two lines, where Python looks for an encoding
    lines += [f"# {line}" for line in str(difference or example.label).splitlines()[:3]]
    lines += _program(example)
    lines.append(f"params = {_values(example.params)}")
    lines.append("runs = [" + ", ".join(_values(run) for run in example.runs) + "]")
    named = [f"fetch={example.fetch!r}"]
    for name in ("layouts", "wrt", "targets", "forward_ops"):
        if getattr(example, name):
            named.append(f"{name}={getattr(example, name)!r}")
    lines.append(f"example = Example(p, params, runs, {', '.join(named)})")
    lines.append(f"print(*Checker({only}).check(example), sep='\\n')")
    return "\n".join(lines) + "\n"


def _program(example: Example) -> list[str]:
    if example.has_blocks:
        data = base64.b85encode(zlib.compress(example.program.serialize())).decode()
        shown = [f"# {line}" for line in str(example.program).splitlines()]
        return [*shown, f"p = oprack.Program.parse(zlib.decompress(base64.b85decode({data!r})))"]
    lines = ["p = oprack.Program(); b = p.global_block()"]
    block = example.program.global_block()
    for var in block.vars.values():
        fields = [] if var.type is VarType.LOD_TENSOR else [f"type={int(var.type)}"]
        fields += [f"dtype={var.dtype_name()!r}"] if var.dtype is not None else []
        fields += [f"shape={list(var.shape)}"] if var.shape is not None else []
        fields += [f"{n}={getattr(var, n)!r}" for n in ("lod_level", "persistable", "stop_gradient") if getattr(var, n)]
        lines.append(f"b.create_var({', '.join([repr(var.name), *fields])})")
    for op in block.ops:
        attrs = {k: v for k, v in op.attrs.items() if not k.startswith("op_") and k != "with_quant_attr"}
        lines.append(f"b.append_op({op.type!r}, {op.inputs!r}, {op.outputs!r}, {attrs!r})")
    return lines


def _values(values: dict[str, Any]) -> str:
    return "{" + ", ".join(f"{name!r}: {_value(v)}" for name, v in values.items()) + "}"


def _value(value: Any) -> str:
    if isinstance(value, LoDTensorArray):
        return f"oprack.LoDTensorArray([{', '.join('None' if t is None else _value(t) for t in value)}])"
    if isinstance(value, SelectedRows):
        return f"oprack.SelectedRows({list(map(int, value.rows))}, {_array(value.value)}, {value.height})"
    if isinstance(value, SparseTensor):
        parts = ", ".join(map(_array, (*value.pattern, value.values)))
        return f"oprack.{type(value).__name__}({parts}, {list(value.shape)})"
    assert isinstance(value, LoDTensor)
    lod = f", {value.lod}" if value.lod else ""
    return f"T({_array(value.array)}{lod})"


def _array(array: np.ndarray) -> str:
    dtype = array.dtype.name
    if dtype == "bfloat16":
        return f"{_array(array.astype(np.float32))}.astype(oprack.tensor.numpy_dtype('bfloat16'))"
    if array.size and (array == array.reshape(-1)[0]).all():
        return f"np.full({array.shape}, {array.reshape(-1)[0].item()!r}, {dtype!r})"
    if array.size <= _LITERAL:
        return f"array({array.tolist()!r}, {dtype!r}).reshape({array.shape})"
    data = base64.b85encode(zlib.compress(np.ascontiguousarray(array).tobytes())).decode()
    return f"np.frombuffer(zlib.decompress(base64.b85decode({data!r})), {dtype!r}).reshape({array.shape})"
