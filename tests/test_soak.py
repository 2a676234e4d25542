"""Clones of one predictor in four threads, for a while: the same outputs as alone, and no growth of memory.

OPRACK_SOAK_SECONDS says for how long, 3 unless it is set; a release is soaked for a minute.
"""

from __future__ import annotations

import json
import os
import resource
import threading
import time
from pathlib import Path

import numpy as np
from oprack import inference

MODEL = Path(__file__).parent / "data" / "programs" / "lod_seqops"
SECONDS = float(os.environ.get("OPRACK_SOAK_SECONDS", "3"))
THREADS = 4


def _batches() -> list[tuple[np.ndarray, list[list[int]]]]:
    """Batches of other lengths, so that shapes change all the time; empty sequences among them."""
    info = json.loads((MODEL / "meta.json").read_text())["feed"][0]
    words = np.load(MODEL / info["file"])
    rng, batches = np.random.default_rng(0), []
    for _ in range(7):
        lengths = [0, *rng.integers(0, 6, 3).tolist(), 2]
        rows = int(sum(lengths))
        picked = words[rng.integers(0, len(words), rows)]
        batches.append((picked, [[0, *np.cumsum(lengths).tolist()]]))
    return batches


def _answer(predictor: inference.Predictor, batch: tuple[np.ndarray, list[list[int]]]) -> list[np.ndarray]:
    names = predictor.get_input_names()
    handle = predictor.get_input_handle(names[0])
    handle.copy_from_cpu(batch[0])
    handle.set_lod(batch[1])
    predictor.run()
    return [predictor.get_output_handle(n).copy_to_cpu() for n in predictor.get_output_names()]


def _resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1]) if Path("/proc/self/statm").exists() else 0
    return pages * resource.getpagesize() / 2**20


def test_clones_in_threads_agree_and_memory_does_not_grow() -> None:
    predictor = inference.create_predictor(inference.Config(str(MODEL)))
    batches = _batches()
    expected = [_answer(predictor, b) for b in batches]
    end, counts, errors = time.monotonic() + SECONDS, [0] * THREADS, []
    before: list[float] = []

    def work(k: int, mine: inference.Predictor) -> None:
        while time.monotonic() < end and not errors:
            i = (counts[k] * (k + 1)) % len(batches)
            try:
                for got, want in zip(_answer(mine, batches[i]), expected[i], strict=True):
                    np.testing.assert_array_equal(got, want)
            except Exception as error:
                errors.append(error)
            counts[k] += 1
            if counts[k] == 20 and k == 0:
                before.append(_resident_mib())  # every shape and plan was met by now

    threads = [threading.Thread(target=work, args=(k, predictor.clone())) for k in range(THREADS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(SECONDS + 60)
    assert not errors, errors[0]
    assert min(counts) > 20, f"too few runs to say anything: {counts}"
    assert _resident_mib() - before[0] < 16, f"memory grew from {before[0]:.0f} to {_resident_mib():.0f} MiB"
