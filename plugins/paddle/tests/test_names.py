"""Every name of Paddle 2.6.2 is served, or has a reason; what is written by hand has Paddle's parameters."""

from __future__ import annotations

import importlib
import inspect
from types import FunctionType

import oprack_paddle as paddle
import pytest
from oprack_paddle.adapter import parameters, signatures
from oprack_paddle.namespace import missing, table


def served(name: str) -> bool:
    found = paddle
    try:
        for part in name.split("."):
            found = getattr(found, part)
    except AttributeError:
        return False
    return True


def test_all_names_are_served_or_have_a_reason():
    names = set(signatures())
    assert missing().keys() <= names
    absent = {name for name in names if not served(name)}
    assert absent == set(missing())
    assert len(names) - len(absent) >= 1480


def test_a_missing_name_says_why():
    with pytest.raises(AttributeError, match="parameter servers"):
        paddle.distributed.QueueDataset  # noqa: B018


def test_an_unknown_name_says_what_is_near():
    with pytest.raises(AttributeError, match="relu6"):
        paddle.nn.functional.relu66  # noqa: B018


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
