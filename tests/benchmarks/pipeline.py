"""From a picture to its text: the code of the distribution rapidocr-paddle around each engine's three models.

Scaling, cutting out, batching and decoding are the package's own for every engine; only its session, which runs a
model, is another. The package imports paddle for that session alone, so engines other than Paddle do without it.
"""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from workloads import ONNX_OCR, PICTURE, PPOCR, Workload

Model = Callable[[np.ndarray], list[np.ndarray]]
PARTS = {"det": "text_detect", "cls": "text_cls", "rec": "text_recognize"}


def paddle_files(part: str) -> Path:
    """Prefix of a model's files."""
    return PPOCR / part / "inference"


def onnx_file(workload: Workload, part: str) -> Path:
    """The same model as ONNX."""
    assert workload.onnx is not None
    return workload.onnx / f"{ONNX_OCR[part]}.onnx"


def reader(load: Callable[[str], Model], threads: int, paddle_is_there: bool) -> Any:
    """The package's RapidOCR over models of our own. load: part ("det", "cls", "rec") -> function of one input."""
    if not paddle_is_there:
        sys.modules["paddle"] = paddle = types.ModuleType("paddle")
        sys.modules["paddle.inference"] = paddle.inference = types.ModuleType("paddle.inference")
    import cv2
    import rapidocr_paddle

    cv2.setNumThreads(threads)
    for part, module in PARTS.items():
        patched = importlib.import_module(f"rapidocr_paddle.ch_ppocr_{part}.{module}")
        patched.PaddleInferSession = lambda config, mode=None, part=part: load(part)
    return rapidocr_paddle.RapidOCR()


def pipeline(load: Callable[[str], Model], threads: int, paddle_is_there: bool) -> Callable[[], list[np.ndarray]]:
    """A run that reads the picture. load: as of `reader`. Outputs of a run: boxes [lines, 4, 2], scores [lines], and
    the code points of all the text.
    """
    read = reader(load, threads, paddle_is_there)

    def run() -> list[np.ndarray]:
        lines, _ = read(str(PICTURE))
        boxes, texts, scores = zip(*(lines or []), strict=True)
        return [np.array(boxes), np.array(scores, np.float64), np.array([ord(c) for c in "".join(texts)])]

    return run
