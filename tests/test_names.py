"""Names that people type: each works or says what to write, and what it says runs; the page of them is up to date."""

from __future__ import annotations

import importlib
import runpy
import tomllib
from pathlib import Path
from typing import Any

import oprack
import pytest
from oprack.names import paddle
from oprack.names.spellings import instead, keywords_instead, spellings

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
    assert "; write " in found or "by keyword: " in found or "oprack" in found.partition("; ")[2] or "x." in found, (
        found
    )


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
            owner = owners[space] if space in owners else getattr(oprack, space)
            assert [n for n in lines if hasattr(owner, n)] == [], space


def test_every_name_of_the_table_leads_somewhere() -> None:
    """A name that its own space brings would never be looked for in the table."""
    names: dict[str, Any] = {}
    exec(DATA["setup"], names)
    objects = {"module": names["net"], "optimizer object": names["adam"], "scheduler": names["schedule"]}
    for space, entries in spellings()["same"].items():
        for name in entries:
            if space == "tensor":
                assert callable(getattr(names["x"], name))
            elif space in objects:
                assert name not in dir(objects[space])
                assert name == "cuda" or getattr(objects[space], name) is not None
            else:
                path = f"oprack.{space}".removesuffix(".oprack")
                module = oprack.jit if space == "jit" else importlib.import_module(path)
                assert name not in vars(module).get("__all__", ()), (space, name)
                assert getattr(module, name) is not None, (space, name)


def test_no_name_is_in_two_tables() -> None:
    """Where Paddle's names lead, its own table says; spellings.toml has other libraries' names."""
    for space, entries in spellings()["same"].items():
        module = {"oprack": "", "functional": "nn.functional", "metrics": "metric"}.get(space, space)
        row = paddle.table()["modules"].get(module, {})
        assert not set(entries) & {*paddle.listed(module), *row.get("without_plugin", "").split()}, space


def test_modules_of_paddle_lead_to_what_they_are_here() -> None:
    assert oprack.static.Program is oprack.Program and oprack.static.nn.fc is oprack.layers.fc  # type: ignore[attr-defined]
    assert oprack.regularizer.L2Decay is oprack.optimizer.L2Decay  # type: ignore[attr-defined]
    assert dir(oprack.regularizer) == ["L1Decay", "L2Decay"]  # type: ignore[attr-defined]
    with pytest.raises(
        AttributeError, match=r"Paddle's is oprack_paddle\.static\.save, which the plugin oprack-paddle"
    ):
        oprack.static.save  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match="Paddle's is not served: programs hold ops alone"):
        oprack.static.py_func  # type: ignore[attr-defined]  # noqa: B018


def test_what_means_something_else_is_refused() -> None:
    with pytest.raises(TypeError, match=r"BatchNorm2d: momentum means something else .* write momentum=1 - yours"):
        oprack.nn.BatchNorm2d(3, momentum=0.1)  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="got 2 arguments by position, and from 2 on they mean something else"):
        oprack.nn.BatchNorm2d(3, 1e-5)  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match=r"PyTorch gives values and places; write axis=1 .* x.argmax\(axis=1\)"):
        oprack.to_tensor([[1.0]]).max(dim=1)
    with pytest.raises(TypeError, match="param_groups: betas can't be changed"):
        oprack.optimizer.SGD(parameters=[oprack.Parameter([1.0])]).param_groups[0]["betas"] = 1


def test_a_name_that_is_no_op_asks_for_no_pack() -> None:
    for name in ("Trainer", "NO_SUCH_CONSTANT", "optimiser", "no_such_thing"):
        with pytest.raises(AttributeError) as caught:
            getattr(oprack, name)
        assert "install" not in str(caught.value).replace("no installed pack", ""), str(caught.value)
    with pytest.raises(AttributeError, match=r"write oprack.nn.Linear"):
        oprack.Linear  # noqa: B018


def test_modules_of_other_libraries_can_be_imported() -> None:
    assert importlib.import_module("oprack.optim").SGD is oprack.optimizer.SGD
    assert importlib.import_module("oprack.utils.data").DataLoader is oprack.io.DataLoader
    assert importlib.import_module("oprack.static").InputSpec is oprack.InputSpec
    assert "Adam" in dir(importlib.import_module("oprack.optim"))
    with pytest.raises(ImportError):
        importlib.import_module("oprack.no_such_module")
    with pytest.raises(AttributeError, match=r"oprack.static has no 'programm_guard' .did you mean program_guard"):
        importlib.import_module("oprack.static").programm_guard  # noqa: B018


def test_the_learning_rate_of_a_group_is_the_optimizers() -> None:
    w = oprack.Parameter([1.0])
    sgd = oprack.optimizer.SGD([w], lr=0.5)
    for group in sgd.param_groups:
        group["lr"] *= 0.5
    assert sgd.get_lr() == sgd.param_groups[0]["lr"] == 0.25
    w.grad = oprack.to_tensor([1.0])
    sgd.step()
    assert w.numpy().tolist() == [0.75]


def test_initializers_fill_in_place() -> None:
    oprack.seed(3)
    w = oprack.Parameter([[0.0] * 50] * 40)
    bound = (6 / (40 + 50)) ** 0.5  # Glorot and Bengio 2010
    found = oprack.nn.init.xavier_uniform_(w)
    assert found is w and 0.9 * bound < abs(w.numpy()).max() <= bound
    assert oprack.nn.init.constant_(w, 2.0).numpy().min() == oprack.nn.init.ones_(w).numpy().max() + 1 == 2.0


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
