"""What is timed: models with their inputs, the same for every engine; NumPy only, since peers import it, too."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
DOWNLOADS = ROOT / ".downloads"
MODELS = DOWNLOADS / "bench_models"
TRAINING = MODELS / "training"
NETS = MODELS / "nets"
PPOCR = DOWNLOADS / "ppocr"
LAC = DOWNLOADS / "lac" / "lac_model" / "model"
PICTURE = ROOT / "examples" / "ocr_demo.png"
ONNX_OCR = {"det": "ch_PP-OCRv4_det_infer", "rec": "ch_PP-OCRv4_rec_infer", "cls": "ch_ppocr_mobile_v2.0_cls_infer"}
CHAIN_LENGTHS = (10, 100, 1000, 10_000)
STREAM = 20  # inputs of as many sizes
SEQUENCES = (1, 4, 16, 64, 256, 1024, 4096)


Inputs = tuple[list[np.ndarray], dict[int, list[list[int]]]]


@dataclass(frozen=True)
class Workload:
    """One thing to time.

    kind: "inference"; "training" (model is a folder of make_training.py, and a run is one step, whose loss comes out);
    or "pipeline" (pictures to text, around the three models of PP-OCRv4). model: a Paddle model, as a directory or as
    the path without .pdmodel. onnx: the same model as ONNX, where there is one. feeds: the inputs in the order of the
    model's; lods: offsets of those that have LoD, by position. stream: what the runs after the first one take in turn,
    where that is something else. chain: the number of ops of a chain of tiny ones. kept: a folder in which engines keep
    what they made of the model, for the next process.
    """

    name: str
    model: Path
    feeds: list[np.ndarray] = field(default_factory=list)
    lods: dict[int, list[list[int]]] = field(default_factory=dict)
    onnx: Path | None = None
    kind: str = "inference"
    chain: int = 0
    stream: tuple[Inputs, ...] = ()
    kept: Path | None = None

    def inputs(self) -> Iterator[Inputs]:
        """Feeds and LoDs of one run after the other, without end."""
        first = (self.feeds, self.lods)
        return itertools.chain([first], itertools.cycle(self.stream or [first]))


def _ocr(part: str, *shape: int) -> Workload:
    """Random pixels: the arithmetic of these networks does not depend on them."""
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    onnx = MODELS / "ppocr" / f"{ONNX_OCR[part]}.onnx"
    return Workload(f"ocr_{part} {'x'.join(map(str, shape))}", PPOCR / part / "inference", [x], onnx=onnx)


def _pipeline() -> Workload:
    return Workload("ocr pipeline", PPOCR, onnx=MODELS / "ppocr", kind="pipeline")


def _sentences(batch: int, seed: int) -> Inputs:
    """Sentence lengths of 5 to 60 characters."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(5, 61, batch)
    words = rng.integers(1, 20000, (int(lengths.sum()), 1)).astype(np.int64)
    return [words], {0: [[0, *np.cumsum(lengths).tolist()]]}


def _lac(batch: int) -> Workload:
    feeds, lods = _sentences(batch, batch)
    return Workload(f"lac batch {batch}", LAC, feeds, lods)


def _sizes_det(rng: np.random.Generator) -> tuple[int, ...]:
    return (1, 3, *(int(32 * n) for n in rng.integers(10, 31, 2)))


def _sizes_rec(rng: np.random.Generator) -> tuple[int, ...]:
    return (int(rng.integers(1, 9)), 3, 48, int(8 * rng.integers(20, 81)))


def _new_sizes(part: str, sizes: Callable[[np.random.Generator], tuple[int, ...]]) -> Workload:
    """Pictures each of another size."""
    rng = np.random.default_rng(4)
    shapes = list(dict.fromkeys(sizes(rng) for _ in range(2 * STREAM)))[:STREAM]
    stream = tuple(([rng.standard_normal(shape).astype(np.float32)], {}) for shape in shapes)
    whole = _ocr(part, 1, 3, 48, 64) if part == "rec" else _ocr(part, 1, 3, 64, 64)
    return replace(whole, name=f"new sizes ocr_{part}", stream=stream)


def _new_sizes_lac() -> Workload:
    batches = np.random.default_rng(5).integers(1, 65, STREAM)
    stream = tuple(_sentences(int(n), 100 + i) for i, n in enumerate(batches))
    return replace(_lac(1), name="new sizes lac", stream=stream)


def _net(name: str, batch: int) -> Workload:
    """A net of make_nets.py."""
    inputs = json.loads((NETS / f"{name}.json").read_text())
    rng = np.random.default_rng(6)
    feeds = [
        rng.integers(1, given["below"], (batch, *given["shape"]))
        if given["dtype"] == "int64"
        else rng.standard_normal((batch, *given["shape"])).astype(given["dtype"])
        for given in inputs
    ]
    return Workload(f"net {name} batch {batch}", NETS / name, feeds, onnx=NETS / f"{name}.onnx")


def _zoo(name: str) -> Workload:
    """A net of tests/zoo at its largest case."""
    folder = ROOT / "tests" / "zoo"
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    from registry import ALL

    model = ROOT / "out" / "zoo" / name / "model"
    feeds = ALL[name].feeds(*ALL[name].cases()[-1])
    order = json.loads(model.with_name("meta.json").read_text())["feeds"]
    return Workload(f"zoo {name}", model, [feeds[n] for n in order])


def _image(name: str, batch: int) -> Workload:
    x = np.random.default_rng(1).standard_normal((batch, 3, 224, 224)).astype(np.float32)
    return Workload(f"{name} batch {batch}", MODELS / name, [x], onnx=MODELS / f"{name}.onnx")


def _bert(batch: int, length: int) -> Workload:
    ids = np.random.default_rng(2).integers(1, 30000, (batch, length)).astype(np.int64)
    return Workload(f"bert_base {batch}x{length}", MODELS / "bert_base", [ids], onnx=MODELS / "bert_base.onnx")


def _tiny(count: int) -> Workload:
    x = np.random.default_rng(3).standard_normal((4, 8)).astype(np.float32)
    model = MODELS / f"tiny_ops_{count}"
    return Workload(f"{count} tiny ops", model, [x], onnx=model.with_suffix(".onnx"), chain=count)


def _training(name: str) -> Workload:
    folder = TRAINING / name
    with np.load(folder / "feeds.npz", allow_pickle=False) as archive:
        names, feeds = archive.files, [archive[n] for n in archive.files]
    given = json.loads((folder / "meta.json").read_text())["lods"]
    lods = {i: given[n] for i, n in enumerate(names) if n in given}
    return Workload(f"train {name}", folder, feeds, lods, kind="training")


_MODELS: list[tuple[str, Path, Callable[[], Workload]]] = [
    ("ocr_det 1x3x736x736", PPOCR / "det", partial(_ocr, "det", 1, 3, 736, 736)),
    ("ocr_rec 6x3x48x320", PPOCR / "rec", partial(_ocr, "rec", 6, 3, 48, 320)),
    ("ocr_cls 6x3x48x192", PPOCR / "cls", partial(_ocr, "cls", 6, 3, 48, 192)),
    ("ocr pipeline", PPOCR / "det", _pipeline),
    *((f"lac batch {n}", LAC, partial(_lac, n)) for n in (1, 32, 256)),
    ("resnet50 batch 1", MODELS / "resnet50.pdmodel", partial(_image, "resnet50", 1)),
    ("mobilenet_v2 batch 1", MODELS / "mobilenet_v2.pdmodel", partial(_image, "mobilenet_v2", 1)),
    ("bert_base 1x128", MODELS / "bert_base.pdmodel", partial(_bert, 1, 128)),
    ("1000 tiny ops", MODELS / "tiny_ops_1000.pdmodel", partial(_tiny, 1000)),
    *(
        (f"train {name}", TRAINING / name / "meta.json", partial(_training, name))
        for name in ("lenet", "resnet18", "bert_small", "lstm", "tagger", "sparse_embedding")
    ),
]

_STREAMS: dict[str, tuple[Path, Callable[[], Workload]]] = {
    "new sizes ocr_det": (PPOCR / "det", partial(_new_sizes, "det", _sizes_det)),
    "new sizes ocr_rec": (PPOCR / "rec", partial(_new_sizes, "rec", _sizes_rec)),
    "new sizes lac": (LAC, _new_sizes_lac),
}


def names() -> list[str]:
    """All workloads whose models are there, in order of the report."""
    return [name for name, path, _ in _MODELS if path.exists()]


def streams() -> list[str]:
    """Workloads whose runs each get an input of another size."""
    return [name for name, (path, _) in _STREAMS.items() if path.exists()]


def nets() -> list[str]:
    """Nets of make_nets.py, each with one and with eight inputs at a time."""
    return [f"net {path.stem} batch {n}" for path in sorted(NETS.glob("*.json")) for n in (1, 8)]


def workload(name: str) -> Workload:
    """Build one workload: of `names()`, `streams()` or `nets()`, "N tiny ops", "lac batch N", "ocr_PART NxCxHxW", or
    "zoo NET" (of tests/zoo, as `make zoo` left it).
    """
    for known, _, build in _MODELS:
        if known == name:
            return build()
    if name in _STREAMS:
        return _STREAMS[name][1]()
    if name.startswith("net "):
        _, net, _, batch = name.split()
        return _net(net, int(batch))
    if name.startswith("zoo "):
        return _zoo(name.removeprefix("zoo "))
    if name.startswith("ocr_"):
        part, shape = name.removeprefix("ocr_").split()
        return _ocr(part, *map(int, shape.split("x")))
    if name.endswith(" tiny ops"):
        return _tiny(int(name.split()[0]))
    if name.startswith("lac batch "):
        return _lac(int(name.split()[-1]))
    raise KeyError(name)
