"""Programs of Paddle 2.6.2 and 1.8.5 come out of a round trip as they went in, byte by byte."""

from __future__ import annotations

from pathlib import Path

import pytest
from oprack.program import Program

DATA = Path(__file__).parent / "data"
PROGRAMS = sorted((DATA / "programs").glob("*/*.pdmodel"))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_program_files(path: Path) -> None:
    data = path.read_bytes()
    program = Program.parse(data)
    assert program.serialize() == data
    assert program.clone().serialize() == data
