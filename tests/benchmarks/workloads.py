"""What is timed: models with their inputs, the same for every engine; NumPy only, since peers import it, too."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
DOWNLOADS = ROOT / ".downloads"
MODELS = DOWNLOADS / "bench_models"
TRAINING = MODELS / "training"
TINY_OPS = 1000


@dataclass(frozen=True)
class Workload:
    """One thing to time.

    model: a Paddle model, as a directory or as the path without .pdmodel. onnx: the same model as ONNX, where there is
    one. feeds: the inputs in the order of the model's; lods: offsets of those that have LoD, by position. training:
    model is a folder of make_training.py, and a run is one step, whose loss comes out.
    """

    name: str
    model: Path
    feeds: list[np.ndarray]
    lods: dict[int, list[list[int]]] = field(default_factory=dict)
    onnx: Path | None = None
    training: bool = False
    batch: int = 1


def _ocr(part: str, *shape: int) -> Workload:
    """Random pixels: the arithmetic of these networks does not depend on them."""
    rng = np.random.default_rng(0)
    onnx = {"det": "ch_PP-OCRv4_det_infer", "rec": "ch_PP-OCRv4_rec_infer", "cls": "ch_ppocr_mobile_v2.0_cls_infer"}
    return Workload(
        f"ocr_{part} {'x'.join(map(str, shape))}",
        DOWNLOADS / "ppocr" / part / "inference",
        [rng.standard_normal(shape).astype(np.float32)],
        onnx=MODELS / "ppocr" / f"{onnx[part]}.onnx",
        batch=shape[0],
    )


def _lac(batch: int) -> Workload:
    """Sentence lengths of 5 to 60 characters."""
    rng = np.random.default_rng(batch)
    lengths = rng.integers(5, 61, batch)
    words = rng.integers(1, 20000, (int(lengths.sum()), 1)).astype(np.int64)
    lod = [[0, *np.cumsum(lengths).tolist()]]
    return Workload(f"lac batch {batch}", DOWNLOADS / "lac" / "lac_model" / "model", [words], {0: lod}, batch=batch)


def _image(name: str, batch: int) -> Workload:
    x = np.random.default_rng(1).standard_normal((batch, 3, 224, 224)).astype(np.float32)
    return Workload(f"{name} batch {batch}", MODELS / name, [x], onnx=MODELS / f"{name}.onnx", batch=batch)


def _bert(batch: int, length: int) -> Workload:
    ids = np.random.default_rng(2).integers(1, 30000, (batch, length)).astype(np.int64)
    return Workload(
        f"bert_base {batch}x{length}", MODELS / "bert_base", [ids], onnx=MODELS / "bert_base.onnx", batch=batch
    )


def _tiny() -> Workload:
    x = np.random.default_rng(3).standard_normal((4, 8)).astype(np.float32)
    return Workload(f"{TINY_OPS} tiny ops", MODELS / "tiny_ops", [x], onnx=MODELS / "tiny_ops.onnx")


def _training(name: str) -> Workload:
    folder = TRAINING / name
    lods: dict[int, list[list[int]]] = {}
    feeds: list[np.ndarray] = []
    if (folder / "feeds.npz").exists():
        with np.load(folder / "feeds.npz", allow_pickle=False) as archive:
            names, feeds = archive.files, [archive[n] for n in archive.files]
        given = json.loads((folder / "meta.json").read_text())["lods"]
        lods = {i: given[n] for i, n in enumerate(names) if n in given}
    return Workload(f"train {name}", folder, feeds, lods, training=True)


def workloads() -> list[Workload]:
    """All whose models are there, in order of the report."""
    found = [
        _ocr("det", 1, 3, 736, 736),
        _ocr("rec", 6, 3, 48, 320),
        _ocr("cls", 6, 3, 48, 192),
        _lac(1),
        _lac(32),
        _lac(256),
        _image("resnet50", 1),
        _image("mobilenet_v2", 1),
        _bert(1, 128),
        _tiny(),
        *(_training(name) for name in ("lenet", "resnet18", "bert_small", "tagger", "sparse_embedding")),
    ]
    return [w for w in found if _is_there(w)]


def _is_there(workload: Workload) -> bool:
    if workload.training:
        return (workload.model / "meta.json").exists()
    return workload.model.is_dir() or workload.model.with_name(workload.model.name + ".pdmodel").exists()
