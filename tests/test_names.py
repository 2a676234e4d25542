"""Names that people type: each works or says what to write, and what it says runs; the page of them is up to date."""

from __future__ import annotations

import runpy
import tomllib
from pathlib import Path
from typing import Any

import oprack
import pytest
from oprack.packs.advice import instead, keywords_instead, spellings

ROOT = Path(__file__).parents[1]
PAGE = runpy.run_path(str(ROOT / "docs" / "site" / "names_page.py"))
DATA: dict[str, Any] = tomllib.loads((ROOT / "tests" / "data" / "names.toml").read_text(encoding="utf-8"))
PROPOSED = [(f"{space}.{name}", line) for space, lines in spellings()["write"].items() for name, line in lines.items()]


def _lines(kind: str) -> list[str]:
    return [line for group in DATA["group"] for line in group.get(kind, ())]


def outcome(line: str) -> str:
    found: str = PAGE["outcome"](line, DATA["setup"])
    return found


@pytest.mark.parametrize("line", _lines("works"))
def test_it_works(line: str) -> None:
    assert outcome(line) == ""


@pytest.mark.parametrize("line", _lines("says"))
def test_it_says_what_to_write(line: str) -> None:
    found = outcome(line)
    assert found
    assert "; write " in found or "by keyword: " in found or "oprack." in found or "x." in found, found


@pytest.mark.parametrize("line", _lines("refused"))
def test_what_is_wrong_is_refused(line: str) -> None:
    assert outcome(line)


@pytest.mark.parametrize(("name", "line"), PROPOSED)
def test_what_is_proposed_runs(name: str, line: str) -> None:
    assert outcome(line) == ""


def test_no_answer_hides_what_is_there() -> None:
    """An entry for a name that works is never read."""
    names: dict[str, Any] = {}
    exec(DATA["setup"], names)
    owners = {
        "functional": oprack.functional,
        "initializer": oprack.initializer,
        "jit": oprack.jit,
        "lr": oprack.optimizer.lr,
        "metrics": oprack.metrics,
        "module": names["net"],
        "nn": oprack.nn,
        "oprack": oprack,
        "optimizer": oprack.optimizer,
        "optimizer object": names["adam"],
        "scheduler": names["schedule"],
        "tensor": names["x"],
    }
    table = spellings()
    for kind in ("write", "absent"):
        for space, lines in table[kind].items():
            assert [n for n in lines if hasattr(owners[space], n)] == [], space


def test_keywords_are_answered_by_those_of_the_call() -> None:
    assert keywords_instead(["axis", "keepdim"], {"dim": 1}) == "; write axis=1"
    assert keywords_instead(["x"], {"dim": 1}) == keywords_instead(["axis"], {"colour": 1}) == ""
    assert instead("tensor", "no_such_name") == ""


def test_completion_sees_functions_and_methods() -> None:
    assert {"zeros", "concat", "relu", "float32"} <= set(dir(oprack))
    assert {"topk", "relu", "sum"} <= set(dir(oprack.to_tensor([1.0])))
    assert {"mse_loss", "relu"} <= set(dir(oprack.nn.functional)) & set(dir(oprack.functional))
    assert {"weight", "bias", "forward"} <= set(dir(oprack.nn.Linear(2, 2)))
    assert not [n for n in dir(oprack.nn.functional) if n.endswith("_grad")]


def test_the_page_is_up_to_date() -> None:
    assert PAGE["PAGE"].read_text(encoding="utf-8") == PAGE["page"](), "run python docs/site/names_page.py"
