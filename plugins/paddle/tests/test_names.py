"""Every name of Paddle 2.6.2 is served, or has a reason; what is written by hand has Paddle's parameters."""

from __future__ import annotations

import importlib
import inspect
import runpy
import subprocess
import sys
from pathlib import Path
from types import FunctionType

import pytest
from oprack.names.paddle import missing, signatures, table
from oprack_paddle.adapter import parameters


def said(code: str) -> str:
    """What a process of its own prints: names of Paddle give methods to tensors, which other tests are not to see."""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert found.returncode == 0, found.stderr
    return found.stdout


ABSENT = """
import oprack_paddle as paddle
from oprack.names.paddle import signatures

def served(name):
    found = paddle
    try:
        for part in name.split("."):
            found = getattr(found, part)
    except AttributeError:
        return False
    return True

print(*[name for name in signatures() if not served(name)])
"""


def test_all_names_are_served_or_have_a_reason():
    absent = set(said(ABSENT).split())
    assert absent == set(missing())
    assert len(signatures()) - len(absent) >= 1480


@pytest.mark.parametrize(
    ("name", "words"),
    [("distributed.QueueDataset", "parameter servers, and their data feeds"), ("nn.functional.relu66", "relu6")],
)
def test_a_name_that_is_not_there_is_an_error_that_says_why(name, words):
    code = f"""
import oprack_paddle as paddle
try:
    paddle.{name}
except AttributeError as error:
    print(error)
"""
    assert words.replace(", and", " and") in said(code)


METHODS = """
import numpy as np, oprack, oprack_paddle as paddle
x = paddle.to_tensor(np.arange(6.0).reshape(2, 3))
assert paddle.Tensor is oprack.Tensor
assert x.T.shape == (3, 2) and x.reshape(3, 2).shape == (3, 2) and x.reshape([6]).shape == (6,)
assert x.sum(dim=1).tolist() == [3.0, 12.0] and x.sum(1, keepdim=True).shape == (2, 1)
assert x.sum(axis=0, dtype="float32", keepdim=True).dtype == "float32"
y = x.clip_(1.0, 4.0)
assert y is x and x.numpy().max() == 4.0
w = paddle.to_tensor([2.0, 3.0], stop_gradient=False)
v = w * 1.0
v.tanh_()
v.sum().backward()
print(np.abs(w.gradient() - (1 - np.tanh([2.0, 3.0]) ** 2)).max() < 1e-6)
"""


def test_methods_of_paddle_and_of_oprack_go_together():
    assert said(METHODS).strip() == "True"


def written() -> list[tuple[str, FunctionType]]:
    found = []
    for space, row in table()["modules"].items():
        for path in row.get("written", ()):
            home = importlib.import_module(f"oprack_paddle.{path}")
            for name, value in vars(home).items():
                full = f"{space}.{name}".lstrip(".")
                if isinstance(value, FunctionType) and value.__module__ == home.__name__ and signatures().get(full):
                    found.append((full, value))
    return found


@pytest.mark.parametrize(("name", "function"), written(), ids=lambda v: v if isinstance(v, str) else "")
def test_functions_have_the_parameters_of_paddle(name, function):
    ours = list(inspect.signature(function).parameters.values())
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in ours):
        return
    theirs = [n for n, _ in parameters(signatures()[name]) if not n.startswith("*")]
    assert [p.name for p in ours][: len(theirs)] == theirs


def test_the_page_is_made_from_the_table():
    page = runpy.run_path(str(Path(__file__).parents[3] / "docs" / "site" / "paddle_page.py"))
    assert page["PAGE"].read_text(encoding="utf-8") == page["page"](), "run python docs/site/paddle_page.py"
