"""The op reference can be made, and names every installed op once."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from oprack import default_manager

SCRIPT = Path(__file__).parents[1] / "docs" / "op_reference.py"


def test_op_reference_names_every_op(tmp_path):
    done = subprocess.run([sys.executable, SCRIPT, "--out", tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pages = [path.read_text("utf-8") for path in tmp_path.glob("oprack*.md")]
    headings = [heading for page in pages for heading in re.findall(r"^## (\w+)$", page, re.MULTILINE)]
    assert sorted(headings) == sorted(default_manager().op_types())
    index = (tmp_path / "index.md").read_text("utf-8")
    for name, anchor in re.findall(r"\]\(([\w-]+\.md)#(\w+)\)", index):
        assert f"\n## {anchor}\n" in (tmp_path / name).read_text("utf-8")
