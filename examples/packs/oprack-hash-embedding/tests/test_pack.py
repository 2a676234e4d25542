"""The pack satisfies what oprack demands of every pack."""

from __future__ import annotations

from pathlib import Path

from oprack.testing import Conformance, collect_cases


class TestPack(Conformance):
    pack = "hash_embedding"
    cases = collect_cases(Path(__file__).parent / "cases")
