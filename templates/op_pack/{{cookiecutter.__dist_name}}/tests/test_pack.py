"""The pack satisfies what oprack demands of every pack."""

from __future__ import annotations

from cases import CASES

from oprack.testing import Conformance


class TestPack(Conformance):
    pack = "{{ cookiecutter.pack_name }}"
    cases = CASES
