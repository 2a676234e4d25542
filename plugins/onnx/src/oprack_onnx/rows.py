"""A node written by a row of the table."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.errors import UnimplementedError
from oprack.types import VarType, dtype_name

from oprack_onnx.table import Row
from oprack_onnx.values import HALF, Node, Value
from oprack_onnx.writer import Writer, has_kernel, info_of


def write_row(node: Node, row: Row, writer: Writer) -> list[Value | None]:
    """Write a node as one op.

    Raises:
        UnimplementedError: The op lacks what the node says.
    """
    info = info_of(row.op)
    slots = row.inputs or (tuple(info.proto.inputs) if info is not None else ("X", "Y", "Z"))
    outs = row.outputs or (tuple(info.proto.outputs) if info is not None else ("Out",))
    inputs = _inputs(node, row, slots)
    attrs = _attributes(node, row)
    first = next((v for v in node.inputs if v is not None), None)
    wide = first is not None and first.dtype in HALF and not has_kernel(row.op, first.dtype)
    if wide:
        inputs = {s: writer.widened(given) or [] for s, given in inputs.items()}
    results: list[Value | None] = []
    bound: dict[str, Value | list[Value]] = {}
    for i, name in enumerate(node.outputs):
        slot = outs[min(i, len(outs) - 1)]
        if not slot.startswith("*") and i >= len(outs):
            raise node.lacking(f"it has {len(node.outputs)} outputs; {row.op} has {len(outs)}")
        if not name:
            results.append(None)
            continue
        value = _result(node, row, writer, i)
        if wide and value.dtype in HALF:
            value = writer.declare(value.name, VarType.FP32, value.shape, value.kind)
        results.append(value)
        if slot.startswith("*"):
            listed = bound.setdefault(slot[1:], [])
            assert isinstance(listed, list)
            listed.append(value)
        else:
            bound[slot] = value
    writer.emit(row.op, inputs, bound, attrs)
    if wide:
        results = [
            writer.cast(v, node.out_dtype(i) or first.dtype)
            if v is not None and v.dtype is VarType.FP32 and first
            else v
            for i, v in enumerate(results)
        ]
    return results


def _inputs(node: Node, row: Row, slots: Sequence[str]) -> dict[str, Value | list[Value]]:
    if row.listed:
        return {slots[0]: [v for v in node.inputs if v is not None]}
    found: dict[str, Value | list[Value]] = {}
    for i, value in enumerate(node.inputs):
        slot = slots[min(i, len(slots) - 1)]
        if value is None:
            continue
        if slot.startswith("*"):
            listed = found.setdefault(slot[1:], [])
            assert isinstance(listed, list)
            listed.append(value)
        elif i >= len(slots):
            raise node.lacking(f"it has {len(node.inputs)} inputs; {row.op} has {len(slots)}")
        else:
            found[slot] = value
    return found


_IGNORED = {"consumed_inputs", "kernel_shape"}
"""Attributes that say how memory is used, or what the shape of an input says as well, where the op has none for it."""


def _attributes(node: Node, row: Row) -> dict[str, object]:
    info = info_of(row.op)
    known = info.proto.attrs if info is not None else None
    found: dict[str, object] = dict(row.set)
    for name, value in node.attrs.items():
        if name in row.only:
            if value != row.only[name]:
                raise node.lacking(f"attribute {name!r} is {value!r}; {row.op} does the same for {row.only[name]!r}")
        else:
            attr = row.attrs.get(name, name)
            if known is not None and attr not in known:
                if name not in node.given or name in _IGNORED:
                    continue
                raise UnimplementedError(f"{node.where}: attribute {name!r} is {value!r:.80}; {row.op} has none for it")
            if known is not None and known[attr].type.name == "BOOLEAN" and isinstance(value, str):
                value = value not in ("none", "")
            found[attr] = value
    return found


def _result(node: Node, row: Row, writer: Writer, i: int) -> Value:
    """The variable of an output, by what inference knows of it, or the table."""
    known = node.types[i] if i < len(node.types) else None
    if known is not None:
        return writer.declare(node.outputs[i], *known)
    first = next((v for v in node.inputs if v is not None), None)
    dtype = first.dtype if first is not None else VarType.FP32
    if row.dtype.isdigit():
        dtype = node.input(int(row.dtype)).dtype
    elif row.dtype:
        dtype = next(v for v in VarType if v.name in _NAMES.get(row.dtype, ()))
    return writer.declare(node.outputs[i], dtype)


_NAMES = {"bool": ("BOOL",), "int32": ("INT32",), "int64": ("INT64",)}
assert all(dtype_name(n) for n in _NAMES)
