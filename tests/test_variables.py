"""Every environment variable that the code reads is in the table that the documents and `oprack doctor` print."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest
from oprack import PackManager
from oprack.cli.main import main
from oprack.errors import DefinitionError
from oprack.packs.register import Register
from oprack.packs.variables import CORE, unread, variables

ROOT = Path(__file__).parents[1]
SOURCES = [f for room in ("core", "op_packages/*", "plugins/*") for f in ROOT.glob(f"{room}/src/**/*.py")]


def _names(file: Path) -> set[str]:
    """What a module's strings name, but for docstrings, comments and names that only begin so."""
    tree = ast.parse(file.read_text("utf-8"))
    texts = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    return {name for text in texts for name in re.findall(r"\bOPRACK_[A-Z_]*[A-Z]\b", text)}


def test_the_table_has_what_the_code_reads() -> None:
    named = set().union(*(_names(file) for file in SOURCES if "OPRACK_" in file.read_text("utf-8")))
    manager = PackManager(environ={})
    assert named - {"OPRACK_MY_SWITCH"} == {v.name for v in variables(manager.targets("variable"))}


def test_doctor_says_what_is_set_and_what_nothing_reads(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPRACK_LOOP_LIMIT", "1000")
    monkeypatch.setenv("OPRACK_BLOK", "nn")
    assert main(["doctor", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    values = {v["name"]: v["value"] for v in facts["variables"]}
    assert values["OPRACK_LOOP_LIMIT"] == "1000" and values["OPRACK_IR_DEBUG"] is None
    assert any("OPRACK_BLOK is set, but nothing reads it (did you mean OPRACK_BLOCK" in note for note in facts["notes"])
    assert main(["doctor"]) == 0
    assert "environment: OPRACK_LOOP_LIMIT=1000" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["OPRACK_BLOCK", "MY_SWITCH", ""])
def test_a_pack_names_its_own_variables_only(name: str) -> None:
    with pytest.raises(DefinitionError, match="variable"):
        Register("mine", "oprack-mine").variable(name, default="1", meaning="0: off.")


def test_a_pack_names_a_variable_once() -> None:
    register = Register("mine", "oprack-mine")
    register.variable("OPRACK_MINE", default="1", meaning="0: off.")
    with pytest.raises(DefinitionError, match="twice"):
        register.variable("OPRACK_MINE", default="1", meaning="0: off.")


def test_variables_of_others_are_left_alone() -> None:
    assert list(unread({"PATH": "", "OPRACK_PACKS": ""}, CORE)) == []
