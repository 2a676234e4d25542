"""The onnx_ops pack against the conformance suite, and against ONNX's own node tests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from oprack import LoDTensor
from oprack.packs import op_info
from oprack.tensor import LoDTensorArray
from oprack.testing import Conformance, OpCase, collect_cases

HERE = Path(__file__).parent
SEQUENCES = {"input_sequence", "output_sequence"}
"""Slots whose values are arrays of tensors."""


def recorded(file: Path) -> Iterator[OpCase]:
    """The cases that plugins/onnx/tools/record_cases.py wrote."""
    with np.load(file) as found:
        index = json.loads(bytes(found["index"]).decode())
        for row in index:
            slots = {sort: _values(row["op"], row[sort], found, sort) for sort in ("inputs", "outputs")}
            yield OpCase(row["op"], slots["inputs"], row["attrs"], slots["outputs"], name=row["name"], rtol=row["rtol"])


def _values(op: str, slots: dict[str, list[str]], arrays: Any, sort: str) -> dict[str, Any]:
    proto = getattr(op_info(op).proto, sort)
    values: dict[str, Any] = {}
    for slot, keys in slots.items():
        if slot in SEQUENCES:
            values[slot] = LoDTensorArray([LoDTensor(arrays[k]) for k in keys])
        else:
            values[slot] = [arrays[k] for k in keys] if proto[slot].duplicable else arrays[keys[0]]
    return values


class TestOnnxOps(Conformance):
    pack = "onnx_ops"
    cases = [*collect_cases(HERE / "cases"), *recorded(HERE / "data" / "node_tests.npz")]
