"""Record the lines that rapidocr-paddle reads in the demo picture when Paddle itself runs the models.

    python tests/oracle/record_demo.py

Needs rapidocr-paddle 1.4.5 and opencv-python-headless beside Paddle 2.6.2.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from rapidocr_paddle import RapidOCR

sys.path.insert(0, str(Path(__file__).parents[1]))
import model_cases as mc


def main() -> None:
    """Write data/models_expected/ocr_demo.json."""
    lines, _ = RapidOCR()(str(mc.PICTURE))
    found = [{"text": text, "score": round(float(score), 4)} for _, text, score in lines]
    (mc.EXPECTED / "ocr_demo.json").write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
