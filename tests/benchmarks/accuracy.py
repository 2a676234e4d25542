"""What bfloat16 and int8 cost on 50 rendered pictures: F1 of detected lines, and text that reads as in float32.

    python tests/benchmarks/accuracy.py [--pictures 50] [--calibration 8] [--method mse] [--out FOLDER]

Detection is quantised by other pictures of the same kind. F1: a box is right when it covers half of a line that was
drawn, by intersection over union. The text of a picture is the same when every line reads as in float32.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pipeline
from engines import _predictor, _session
from rendered import Picture, pictures

PARTS = ("det", "cls", "rec")


def model_of(path: Path, precision: str, threads: int) -> pipeline.Model:
    """A model of oprack as a function of one input. precision: "float32", "bfloat16", "int8" or "int8+bfloat16"."""
    from oprack import inference

    warnings.simplefilter("ignore", inference.NoEffectWarning)
    model = _session(_predictor(inference, path, threads, True, precision=precision))
    return lambda x: model([x], {})


def quantised_detection(count: int, method: str, folder: Path, threads: int) -> tuple[Path, list[Any]]:
    """The model of detection in int8, written to a folder, and the reports of its layers."""
    from oprack import Scope, quantization
    from oprack.io import load_inference_model, save_inference_model

    scope = Scope()
    model = load_inference_model(pipeline.paddle_files("det"), scope)
    feeds = [{model.feed_names[0]: x} for x in detection_inputs(pictures(count, seed=1), threads)]
    done = quantization.quantize_post_training(model.program, scope, feeds, model.fetch_names, method=method)
    save_inference_model(folder / "det", done.program, model.feed_names, model.fetch_names, scope)
    return folder / "det", done.layers


def detection_inputs(given: Sequence[Picture], threads: int) -> list[np.ndarray]:
    """What the package makes of pictures before its model of detection."""
    seen: list[np.ndarray] = []

    def keep(x: np.ndarray) -> list[np.ndarray]:
        seen.append(x)
        return [np.zeros((1, 1, *x.shape[2:]), np.float32)]

    read = pipeline.reader(lambda part: keep, threads, False)
    for picture in given:
        read.text_det(picture.image)
    return seen


def read_all(load: Callable[[str], pipeline.Model], given: Sequence[Picture], threads: int) -> list[Any]:
    """(boxes [lines, 4, 2], texts) of each picture."""
    read = pipeline.reader(load, threads, False)
    found = []
    for picture in given:
        lines, _ = read(picture.image)
        boxes, texts = zip(*((box, text) for box, text, _ in lines), strict=True) if lines else ((), ())
        found.append((np.array(boxes, np.float64).reshape(-1, 4, 2), list(texts)))
    return found


def f1(given: Sequence[Picture], found: Sequence[Any]) -> float:
    """Of all boxes: 2 right / (drawn + found)."""
    right = drawn = made = 0
    for picture, (boxes, _) in zip(given, found, strict=True):
        corners = np.concatenate([boxes.min(axis=1), boxes.max(axis=1)], axis=1) if len(boxes) else np.zeros((0, 4))
        free = list(range(len(corners)))
        for box in picture.boxes:
            overlaps = [_overlap(box, corners[i]) for i in free]
            if overlaps and max(overlaps) >= 0.5:
                free.pop(int(np.argmax(overlaps)))
                right += 1
        drawn, made = drawn + len(picture.boxes), made + len(corners)
    return 2 * right / max(1, drawn + made)


def _overlap(a: np.ndarray, b: np.ndarray) -> float:
    width, height = (min(a[i + 2], b[i + 2]) - max(a[i], b[i]) for i in (0, 1))
    both = max(0.0, width) * max(0.0, height)
    areas = sum((c[2] - c[0]) * (c[3] - c[1]) for c in (a, b))
    return float(both / (areas - both)) if both else 0.0


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=int, default=50)
    parser.add_argument("--calibration", type=int, default=8, help="pictures by which detection is quantised")
    parser.add_argument("--method", default="mse", help="as of `oprack quantize`")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, help="folder for accuracy.json")
    options = parser.parse_args()
    given, threads = pictures(options.pictures), options.threads
    with tempfile.TemporaryDirectory() as folder:
        det, layers = quantised_detection(options.calibration, options.method, Path(folder), threads)
        ways = {
            "float32": {},
            "detection in int8": {"det": (det, "int8")},
            "detection in int8, the rest of it in bfloat16": {"det": (det, "int8+bfloat16")},
            "detection in bfloat16": {"det": (pipeline.paddle_files("det"), "bfloat16")},
            "recognition in bfloat16": {"rec": (pipeline.paddle_files("rec"), "bfloat16")},
            "all in bfloat16": {part: (pipeline.paddle_files(part), "bfloat16") for part in PARTS},
        }
        rows, plain = [], None
        for name, parts in ways.items():

            def load(part: str, parts: dict[str, Any] = parts) -> pipeline.Model:
                path, precision = parts.get(part, (pipeline.paddle_files(part), "float32"))
                return model_of(path, precision, threads)

            found = read_all(load, given, threads)
            plain = plain or found
            same = sum(a[1] == b[1] for a, b in zip(plain, found, strict=True))
            rows.append({"way": name, "F1": round(f1(given, found), 4), "same text": same, "pictures": len(given)})
            print(json.dumps(rows[-1]), flush=True)
    left = [vars(layer) for layer in layers if layer.left]
    print(f"{len(layers) - len(left)} of {len(layers)} layers of detection in int8", file=sys.stderr)
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"ways": rows, "layers": [vars(layer) for layer in layers]}, indent=1)
        (options.out / "accuracy.json").write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
