"""Docstrings of the names that users type, whoever brings them: each says what all its arguments are."""

from __future__ import annotations

import importlib
import importlib.util
import types
from typing import Any

import pytest
from docstrings import lacking_for_users
from oprack import default_manager

CORE = (
    "oprack oprack.array_api oprack.autograd oprack.device oprack.functional oprack.inference oprack.io oprack.ir "
    "oprack.kernel oprack.op oprack.packs oprack.parallel oprack.runtime oprack.tensor oprack.testing"
).split()
FILLED = sorted({f"oprack.{key.partition('.')[0]}" for _, key, _ in default_manager().targets("layer")})


def _public(room: str) -> dict[str, Any]:
    """The functions and classes of oprack and its packs that a module offers."""
    module = importlib.import_module(room)
    found = {name: getattr(module, name, None) for name in dir(module) if not name.startswith("_")}
    return {
        name: value
        for name, value in found.items()
        if isinstance(value, type | types.FunctionType) and (value.__module__ or "").startswith("oprack")
    }


ROOMS = sorted({*CORE, *FILLED, "oprack.nn.functional", "oprack.nn.initializer"})


@pytest.mark.parametrize("room", [room for room in ROOMS if importlib.util.find_spec(room)])
def test_public_names_say_what_their_arguments_are(room: str) -> None:
    wrong = {name: lacks for name, value in _public(room).items() if (lacks := lacking_for_users(value))}
    assert not wrong, "\n".join(f"{room}.{name}: {', '.join(lacks)}" for name, lacks in sorted(wrong.items()))


def test_what_is_looked_for_is_found() -> None:
    def scaled(x: float, *, factor: float = 2.0) -> float:
        """Multiplies.

        Args:
            x: A number.
        """
        return x * factor

    class Scaled:
        """Multiplies, by a factor."""

        def __init__(self, x: float, factor: float) -> None:
            self.value = x * factor

    class Twice(Scaled):
        """What help() shows of a class is its own docstring."""

    assert lacking_for_users(scaled) == ["Args: factor", "Returns or Yields"]
    assert lacking_for_users(Scaled) == lacking_for_users(Twice) == ["Args: x", "Args: factor"]
    assert "oprack.nn" in ROOMS and {"Linear", "Sequential"} <= set(_public("oprack.nn"))
