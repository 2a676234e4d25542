"""Runs ONNX's own backend tests against oprack_onnx.backend, and writes docs/onnx_tests.md.

    python plugins/onnx/tools/score.py [--sample]

A test that fails without a reason in REASONS is an error. --sample also writes plugins/onnx/tests/data/node_tests.npz:
of each set of ops, attributes and opset one test, which the tests of the plugin run. The tests are ONNX's, Copyright
(c) ONNX Project Contributors, Apache-2.0.
"""

from __future__ import annotations

import collections
import json
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, numpy_helper
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.loader import DATA_DIR, load_model_tests
from onnx.backend.test.runner import Runner
from oprack_onnx import backend

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "onnx_tests.md"
SAMPLE = ROOT / "plugins" / "onnx" / "tests" / "data" / "node_tests.npz"
LARGEST = 4000

REASONS = [
    (r"elem_type: 8\b|are text|is text|tensors of text", "text: oprack has no tensors of strings"),
    (r"FLOAT8|elem_type: (17|18|19|20|24)\b", "8-bit floats: oprack has no tensors of them"),
    (r"FLOAT4|U?INT4|U?INT2|elem_type: (21|22|23|25|26)\b", "4-bit and 2-bit numbers: oprack has no tensors of them"),
    (r"^test_image_decoder", "ImageDecoder: decoding JPEG, PNG and others is left to libraries of pictures"),
    (r"^test_bernoulli|^test_training_dropout", "random numbers: the test has those of NumPy's legacy generator"),
    (r"negative_shift", "BitShift by a negative number, for which the shifts of Fluid give what C does"),
    (r"^test_loop16_seq_none", "the test compares tensors of rank 0 in a list by len(), which fails for any backend"),
    (r"^test_if_opt", "an optional sequence: only optional tensors are there"),
    (r"^test_scan_sum", "Scan of opset 8, which goes over batches"),
    (r"^test_unsqueeze_unsorted_axes", "axes that only a run knows, and that do not rise"),
    (r"preview.training.Gradient", "Gradient: gradients of a model are made by oprack's autodiff, not by a node"),
]
"""What a test's name or error says -> why it does not pass."""


def array(value: Any) -> Any:
    """A value of a test: arrays of the tensors in it."""
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else value


def node_tests() -> Iterator[tuple[TestCase, ModelProto, list[tuple[list[Any], list[Any]]]]]:
    """The node tests: case, model, and sets of inputs and outputs."""
    for case in load_model_tests(kind="node"):
        sets = [([array(i) for i in ins], [array(o) for o in outs]) for ins, outs in case.data_sets]
        yield case, case.model, sets


def file_tests(kind: str) -> Iterator[tuple[TestCase, ModelProto, list[tuple[list[Any], list[Any]]]]]:
    """Tests in files."""
    loader = Runner.__new__(Runner)
    for case in load_model_tests(kind=kind):
        folder = Path(case.model_dir)
        model = onnx.load(folder / "model.onnx")
        sets = []
        for data in sorted(folder.glob("test_data_set*")):
            found: list[list[Any]] = []
            for name, infos in (("input", model.graph.input), ("output", model.graph.output)):
                values: list[Any] = []
                for i in range(len(list(data.glob(f"{name}_*.pb")))):
                    loader._load_proto(str(data / f"{name}_{i}.pb"), values, infos[i].type)
                found.append(values)
            sets.append((found[0], found[1]))
        yield case, model, sets


def light_tests() -> Iterator[tuple[TestCase, ModelProto, list[tuple[list[Any], list[Any]]]]]:
    """The light models, with ONNX's recorded answers."""
    for file in sorted(Path(DATA_DIR, "light").glob("*.onnx")):
        model = onnx.load(file)
        held = {t.name for t in model.graph.initializer}
        feeds = [Runner.generate_dummy_data(i) for i in model.graph.input if i.name not in held]
        answer = TensorProto.FromString(file.with_name(f"{file.stem}_output_0.pb").read_bytes())
        case = TestCase(file.stem, file.stem, None, None, None, None, "light", 1e-3, 1e-7)
        yield case, model, [(feeds, [numpy_helper.to_array(answer)])]


def run(case: TestCase, model: ModelProto, sets: list[tuple[list[Any], list[Any]]]) -> str:
    """What went wrong; "" for nothing."""
    try:
        ready = backend.prepare(model)
        for inputs, outputs in sets:
            Runner.assert_similar_outputs(outputs, ready.run(inputs), case.rtol, case.atol)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def kept_in_sample(model: ModelProto, sets: list[tuple[list[Any], list[Any]]], seen: set[str]) -> bool:
    """Whether a test is the first of its ops, attributes and opset, and small arrays of plain dtypes are all it has."""
    values = [v for s in sets[:1] for side in s for v in side]
    plain = all(isinstance(v, np.ndarray) and v.dtype.isbuiltin == 1 and v.dtype != object for v in values)
    if not plain or sum(v.size for v in values) > LARGEST or len(model.graph.node) > 12:
        return False
    ops = sorted({f"{n.op_type}({','.join(sorted(a.name for a in n.attribute))})" for n in model.graph.node})
    key = f"{ops} {[(o.domain, o.version) for o in model.opset_import]}"
    return key not in seen and not seen.add(key)  # type: ignore[func-returns-value]


def main() -> None:
    """Score."""
    warnings.filterwarnings("ignore")
    kinds = {
        "node tests": node_tests(),
        "simple models": file_tests("simple"),
        "models converted from PyTorch": file_tests("pytorch-converted"),
        "operators of PyTorch": file_tests("pytorch-operator"),
        "light models": light_tests(),
    }
    scores, failures = {}, collections.defaultdict(list)
    unexplained, seen, sample = [], set(), []
    for kind, tests in kinds.items():
        passed = count = 0
        for case, model, sets in tests:
            count += 1
            error = run(case, model, sets)
            if not error:
                passed += 1
                if kind == "node tests" and kept_in_sample(model, sets, seen):
                    sample.append((case, model, sets[0]))
                continue
            reason = next((r for p, r in REASONS if re.search(p, case.name) or re.search(p, error)), None)
            if reason is None:
                unexplained.append(f"{case.name}: {error[:300]}")
            else:
                failures[reason].append(case.name)
        scores[kind] = passed, count
        print(f"{kind}: {passed} of {count}")
    print(*unexplained, sep="\n")
    if unexplained:
        sys.exit(f"{len(unexplained)} tests fail without a reason; give them one in REASONS, or mend them")
    PAGE.write_text(page(scores, failures), "utf-8")
    if "--sample" in sys.argv:
        write_sample(sample)


def page(scores: dict[str, tuple[int, int]], failures: dict[str, list[str]]) -> str:
    """The page."""
    rows = "\n".join(f"| {kind} | {passed} | {count} |" for kind, (passed, count) in scores.items())
    parts = []
    for reason, names in sorted(failures.items(), key=lambda item: -len(item[1])):
        listed = ", ".join(f"`{n.removeprefix('test_')}`" for n in sorted(names))
        parts.append(f"### {reason[0].upper()}{reason[1:]} ({len(names)})\n\n{listed}\n")
    return f"""# ONNX's own tests

Generated by `python plugins/onnx/tools/score.py`; do not edit. `oprack_onnx.backend` runs the tests that come with
onnx {onnx.__version__} (opset {onnx.defs.onnx_opset_version()}).

| tests | pass | of |
| --- | ---: | ---: |
{rows}

## What does not pass, and why

{chr(10).join(parts)}"""


def write_sample(sample: list[tuple[TestCase, ModelProto, tuple[list[Any], list[Any]]]]) -> None:
    """The tests that the plugin's own tests run."""
    arrays: dict[str, np.ndarray] = {}
    index = []
    for case, model, (inputs, outputs) in sample:
        arrays[f"{case.name}/model"] = np.frombuffer(model.SerializeToString(), np.uint8)
        for side, values in (("in", inputs), ("out", outputs)):
            arrays |= {f"{case.name}/{side}/{i}": np.asarray(v) for i, v in enumerate(values)}
        index.append([case.name, len(inputs), len(outputs), case.rtol, case.atol])
    arrays["index"] = np.frombuffer(json.dumps(index).encode(), np.uint8)
    SAMPLE.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(SAMPLE, **arrays)
    print(f"{len(index)} tests, {SAMPLE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
