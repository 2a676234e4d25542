"""The conformance suite over the pack selected_rows."""

from __future__ import annotations

from pathlib import Path

from oprack.testing import Conformance


class TestSelectedRows(Conformance):
    pack = "selected_rows"
    case_files = Path(__file__).parents[3] / "tests/data/cases"
