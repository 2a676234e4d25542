"""`make demo` reads in its picture what Paddle reads there."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import model_cases as mc
import pytest

DEMO = Path(__file__).parents[1] / "examples" / "ocr_demo.py"


@pytest.mark.skipif(importlib.util.find_spec("rapidocr_paddle") is None, reason="rapidocr-paddle needs Python < 3.13")
def test_demo_reads_what_paddle_reads():
    done = subprocess.run([sys.executable, DEMO, "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = json.loads(done.stdout[done.stdout.index("[") :])
    expected = json.loads((mc.EXPECTED / "ocr_demo.json").read_text("utf-8"))
    assert [line["text"] for line in lines] == [line["text"] for line in expected]
    # Scores are means over a line's characters; a pixel of difference in a box moves them more than arithmetic does.
    assert [line["score"] for line in lines] == pytest.approx([line["score"] for line in expected], abs=0.002)
