"""What every source file keeps to, whichever distribution it is of."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MOST_LINES = 500
"""A file that grows beyond this holds more than one concept: split it by concept, and import the names from there."""

SOURCES = [ROOT / "core/src", *ROOT.glob("op_packages/*/src"), *ROOT.glob("plugins/*/src")]


@pytest.mark.parametrize("folder", SOURCES, ids=lambda folder: folder.parent.name)
def test_no_file_has_too_many_lines(folder):
    files = [file for file in folder.rglob("*.py") if not file.name.endswith("_pb2.py")]
    assert files
    counts = {file.relative_to(ROOT): len(file.read_text("utf-8").splitlines()) for file in files}
    assert not {str(file): count for file, count in counts.items() if count > MOST_LINES}
