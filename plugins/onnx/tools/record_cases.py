"""Records cases of oprack-onnx-ops from ONNX's own node tests: inputs, attributes, and ONNX's answers.

    python plugins/onnx/tools/record_cases.py

It writes op_packages/onnx_ops/tests/data/node_tests.npz: of each op up to MOST tests whose model is that op alone. The
tests are ONNX's, Copyright (c) ONNX Project Contributors, Apache-2.0.
"""

from __future__ import annotations

import collections
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, numpy_helper
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.loader import load_model_tests
from oprack.desc import OpDesc
from oprack.errors import OprackError
from oprack.io.inference_model import feed_and_fetch_names
from oprack.packs import op_info
from oprack_onnx.reader import translate

OUT = Path(__file__).parents[3] / "op_packages" / "onnx_ops" / "tests" / "data" / "node_tests.npz"
MOST, LARGEST = 6, 3000


def array(value: Any) -> Any:
    if isinstance(value, list):
        return [array(v) for v in value]
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.asarray(value)


def plain(array: np.ndarray) -> bool:
    # files of Fluid hold no uint16 and no uint32, and the fuzzer keeps its cases in such files
    held = array.dtype.kind in "biuf" and array.dtype.name not in ("uint16", "uint32")
    return held and array.size <= LARGEST and array.dtype.isbuiltin == 1


def case_of(test: TestCase) -> tuple[OpDesc, dict[str, Any]] | None:
    """The only op of a test's program, and the values of its variables."""
    try:
        read = translate(test.model)
    except OprackError:
        return None
    (block,) = read.program.desc.blocks[:1]
    ops = [op for op in block.ops if op.type not in ("feed", "fetch")]
    if len(ops) != 1 or not ops[0].type.startswith("onnx_"):
        return None
    feeds, fetches = feed_and_fetch_names(read.program)
    inputs, outputs = test.data_sets[0]
    values = dict(read.parameters or {}) | dict(zip(feeds, map(array, inputs), strict=False))
    return ops[0], values | {f"out {n}": array(v) for n, v in zip(fetches, outputs, strict=True)}


def main() -> None:
    """Record."""
    warnings.filterwarnings("ignore")
    counts: collections.Counter[str] = collections.Counter()
    arrays: dict[str, np.ndarray] = {}
    index: list[dict[str, Any]] = []
    for test in sorted(load_model_tests(kind="node"), key=lambda t: t.name):
        found = case_of(test)
        if found is None or counts[found[0].type] >= MOST or "dropout" in test.name:
            continue
        op, values = found
        slots: dict[str, dict[str, list[str]]] = {"inputs": {}, "outputs": {}}
        mine: dict[str, np.ndarray] = {}
        for sort, names, prefix in (("inputs", op.inputs, ""), ("outputs", op.outputs, "out ")):
            for slot, variables in names.items():
                known = [values.get(prefix + v) for v in variables]
                if any(v is None for v in known):
                    continue
                keys = []
                for i, value in enumerate(known):
                    items = value if isinstance(value, list) else [value]
                    for k, item in enumerate(items):
                        key = f"{test.name}/{sort}/{slot}/{i}" + (f"/{k}" if isinstance(value, list) else "")
                        mine[key] = np.asarray(item)
                        keys.append(key)
                slots[sort][slot] = keys
        if not slots["outputs"] or not all(plain(a) for a in mine.values()):
            continue
        proto = op_info(op.type).proto.attrs
        attrs = {n: v for n, v in op.attrs.items() if n in proto and not proto[n].generated}
        counts[op.type] += 1
        arrays |= mine
        index.append(
            {"op": op.type, "name": test.name.removeprefix("test_"), "attrs": attrs, **slots, "rtol": test.rtol}
        )
    arrays["index"] = np.frombuffer(json.dumps(index, sort_keys=True).encode(), np.uint8)
    OUT.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(OUT, **arrays)
    print(f"{len(index)} cases of {len(counts)} ops, {OUT.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
