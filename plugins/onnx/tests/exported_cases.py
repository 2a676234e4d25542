"""Cases of one op, recorded from Paddle, written as models of ONNX and run by ONNX Runtime."""

from __future__ import annotations

import tomllib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from oprack.io.inference_model import InferenceModel
from oprack.tensor import LoDTensor, LoDTensorArray, Scope
from oprack.testing.cases import FileCase, compare, load_cases
from oprack_onnx.export.program import export_loaded

ROOT = Path(__file__).parents[3]
CASES = ROOT / "tests" / "data" / "cases"
PACKS = (
    "control_flow",
    "detection",
    "fft",
    "fused",
    "graph",
    "linalg",
    "math",
    "nn",
    "quantization",
    "sequence",
    "tensor",
)
"""The packs whose ops a saved net may have."""


@dataclass(frozen=True)
class Outcome:
    """What became of a case.

    Attributes:
        op: The type of its op.
        case: Its name.
        kind: "agrees", "foreign" (a node of oprack's own), "refused" by the writer or by ONNX Runtime, or "differs".
        reason: Why it does not agree.
    """

    op: str
    case: str
    kind: str
    reason: str = ""


DIFFERS = {
    "more.multiclass_nms.0000": "half of its boxes have dents, or sides that cross",
    "more.multiclass_nms2.0000": "half of its boxes have dents, or sides that cross",
    "more.multiclass_nms3.0000": "half of its boxes have dents, or sides that cross",
    "grid_sampler.0031": "ONNX Runtime takes the other one of two pixels that are as near",
    "reduce_prod.0015": "products that leave 32 bits",
    "reduce_prod.0032": "products that leave 32 bits",
    "relu.0023": "ONNX Runtime makes 0 of NaN",
    "rnn.0030": "ONNX Runtime's last states of two directions and several lengths",
    "rnn.0031": "ONNX Runtime's last states of two directions and several lengths",
    "rnn.0079": "ONNX Runtime's last states of two directions and several lengths",
    "rnn.0062": "ONNX Runtime's last states of two directions and several lengths",
    "rnn.0078": "ONNX Runtime's last states of two directions and several lengths",
    "softshrink.0003": "its bound is a float32, of a case in float64",
    "swish.0026": "Paddle forgets its beta",
}
"""Cases that ONNX Runtime answers otherwise, and why."""

OF_TRAINING = {
    "bpr_loss",
    "center_loss",
    "coalesce_tensor",
    "detection_map",
    "dgc_clip_by_norm",
    "edit_distance",
    "filter_by_instag",
    "fused_adam",
    "generate_proposal_labels",
    "hierarchical_sigmoid",
    "linear_chain_crf",
    "mine_hard_examples",
    "nce",
    "retinanet_target_assign",
    "rpn_target_assign",
    "target_assign",
    "tdm_sampler",
    "teacher_student_sigmoid_loss",
    "warpctc",
    "warprnnt",
    "yolov3_loss",
}
"""Ops of these packs that only nets in training have."""


def op_types() -> dict[str, str]:
    """The ops that a saved net may have, with their packs: neither gradients nor what only training has."""
    found = {}
    for pack in PACKS:
        manifest = ROOT / "op_packages" / pack / "src" / f"oprack_{pack}" / "ops.toml"
        found |= {
            op: pack
            for op in tomllib.loads(manifest.read_text("utf-8"))["ops"]
            if "_grad" not in op and op not in OF_TRAINING
        }
    return found


def cases_of(op: str) -> Iterator[FileCase]:
    """The cases of an op that are of tensors, in dtypes that ONNX Runtime's CPU kernels have."""
    for folder in ("", "more", "fused", "rest", "legacy_1_8_5"):
        file = CASES / folder / f"{op}.npz"
        if file.exists():
            yield from (case for case in load_cases(file) if _plain(case))


def _plain(case: FileCase) -> bool:
    values = list(case.feeds.values())
    if not case.has("forward") or not all(isinstance(v, (LoDTensor, LoDTensorArray)) for v in values):
        return False
    arrays = [v.array for v in values if isinstance(v, LoDTensor)]
    return all(a.dtype.isbuiltin == 1 and a.dtype.kind in "fiub" for a in arrays)


def fed(case: FileCase) -> tuple[InferenceModel, Scope, dict[str, Any], list[Any]]:
    """A case as a model with its parameters, the arrays of its inputs, and what it should give."""
    program, scope = case.program(), Scope()
    wanted = [e for e in case.expected("forward") if not e.info.get("intermediate")]
    feeds: dict[str, Any] = {}
    block = program.desc.blocks[0]
    for name, value in case.feeds.items():
        if name in case.persistable:
            scope.var(name).set(value)
            block.vars[name].persistable = True
            continue
        if isinstance(value, LoDTensorArray):
            feeds[name] = [np.asarray(v.array) for v in value]
            continue
        feeds[name] = np.asarray(value.array)
        if name in block.vars:
            block.vars[name].lod_level = len(value.lod)
        feeds |= {f"{name}.lod{i}": np.asarray(level, np.int64) for i, level in enumerate(value.lod)}
    model = InferenceModel(program, list(case.feeds.keys() - case.persistable), [e.name for e in wanted])
    return model, scope, feeds, wanted


def outcome(op: str, case: FileCase) -> Outcome:
    """Write a case, run it by ONNX Runtime, and compare with what Paddle gave."""
    import onnxruntime

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model, scope, feeds, wanted = fed(case)
            made, lacking = export_loaded(model, scope)
        except Exception as error:
            return Outcome(op, case.id, "refused", f"{type(error).__name__}: {error}")
        if lacking:
            return Outcome(op, case.id, "foreign", "; ".join(lacking))
        options = onnxruntime.SessionOptions()
        options.log_severity_level, options.intra_op_num_threads = 4, 1
        try:
            session = onnxruntime.InferenceSession(made.SerializeToString(), options, ["CPUExecutionProvider"])
            inputs = {i.name for i in session.get_inputs()}
            answers = session.run(None, {n: v for n, v in feeds.items() if n in inputs})
        except Exception as error:
            kind = "no kernel" if "NOT_IMPLEMENTED" in str(error) else "refused"
            return Outcome(op, case.id, kind, f"ONNX Runtime: {error}")
    found = dict(zip([o.name for o in made.graph.output], answers, strict=True))
    for want in wanted:
        reason = _difference(case, want, found)
        if reason:
            return Outcome(op, case.id, "differs", f"{want.name} {reason}")
    return Outcome(op, case.id, "agrees")


def _difference(case: FileCase, want: Any, found: dict[str, Any]) -> str:
    got = found.get(want.name, found.get(f"{want.name}.out"))
    if isinstance(want.value, LoDTensorArray):
        made: Any = LoDTensorArray(LoDTensor(a, w.lod, check=False) for a, w in zip(got, want.value, strict=False))
        return compare(want, made) if len(got) == len(want.value) else f"has {len(got)} elements"
    if not isinstance(want.value, LoDTensor):
        return f"is a {type(want.value).__name__}"
    if case.stochastic:
        same = got.shape == want.value.array.shape and got.dtype == want.value.array.dtype
        return "" if same else f"has shape {got.shape} and dtype {got.dtype}"
    levels = [[int(v) for v in found[n]] for i in range(9) if (n := f"{want.name}.lod{i}") in found]
    # Offsets that a run gives without being asked are no difference; those that are missing are
    lod = levels or (want.value.lod if want.info.get("auto_declared") else [])
    return compare(want, LoDTensor(got, lod, check=False))
