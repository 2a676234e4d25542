"""What bfloat16 and int8 cost on 50 rendered pictures: F1 of detected lines, and text that reads as in float32.

    python tests/benchmarks/accuracy.py [--pictures 50] [--calibration 8] [--method mse] [--error 0.02] [--out FOLDER]

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


def quantised(part: str, given: Sequence[Picture], folder: Path, threads: int, **limit: Any) -> tuple[Path, Any]:
    """A model in int8, or in the precisions that a limit on the error picks, in a folder; and what became of it."""
    from oprack import Scope, quantization
    from oprack.io import load_inference_model, save_inference_model

    scope = Scope()
    model = load_inference_model(pipeline.paddle_files(part), scope)
    feeds = [{model.feed_names[0]: x} for x in inputs_of(part, given, threads)]
    make = quantization.choose_precisions if "error" in limit else quantization.quantize_post_training
    done = make(model.program, scope, feeds, model.fetch_names, **limit)
    path = folder / "-".join([part, *map(str, limit.values())])
    save_inference_model(path, done.program, model.feed_names, model.fetch_names, scope)
    return path, done


def inputs_of(part: str, given: Sequence[Picture], threads: int) -> list[np.ndarray]:
    """What the package gives a model of these pictures."""
    seen: list[np.ndarray] = []

    def load(name: str) -> pipeline.Model:
        model = model_of(pipeline.paddle_files(name), "float32", threads)

        def kept(x: np.ndarray) -> list[np.ndarray]:
            seen.append(x)
            return model(x)

        return kept if name == part else model

    read_all(load, given, threads)
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
    parser.add_argument("--error", type=float, default=0.02, help="the limit that picks precisions")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, help="folder for accuracy.json")
    options = parser.parse_args()
    given, threads = pictures(options.pictures), options.threads
    others = pictures(options.calibration, seed=1)
    with tempfile.TemporaryDirectory() as folder:
        det, done = quantised("det", others, Path(folder), threads, method=options.method)
        chosen = {part: quantised(part, others, Path(folder), threads, error=options.error) for part in ("det", "rec")}
        ways = {
            "float32": {},
            **{
                f"{name} with an error of at most {options.error:g}": {
                    part: (chosen[part][0], "+".join(chosen[part][1].precisions))
                }
                for part, name in (("det", "detection"), ("rec", "recognition"))
            },
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
    layers = done.layers
    print(f"{sum(not layer.left for layer in layers)} of {len(layers)} layers of detection in int8", file=sys.stderr)
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"ways": rows, "layers": [vars(layer) for layer in layers]}, indent=1)
        (options.out / "accuracy.json").write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
