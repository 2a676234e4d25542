"""Docstrings of the core's public names: functions and classes say what they take, return and raise."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import types
from typing import Any

import pytest
from docstrings import definition, lacking, raises, sections

ROOMS = (
    "oprack oprack.autodiff oprack.autograd oprack.capture.jit oprack.capture.to_program "
    "oprack.device oprack.functional.creation oprack.functional.generated oprack.inference oprack.initializer "
    "oprack.interpreter oprack.io oprack.ir oprack.kernel oprack.layers oprack.nn oprack.op oprack.op.signature "
    "oprack.packs oprack.packs.register oprack.program oprack.runtime oprack.tensor oprack.testing oprack.types"
).split()


def _names(module: types.ModuleType) -> list[str]:
    """`__all__`, the names that the core brings to a module of packs, or the public functions and classes."""
    listed = getattr(module, "__all__", None) or getattr(module, "_HOMES", None)
    if listed is not None:
        return list(listed)
    found = [n for n, v in vars(module).items() if getattr(v, "__module__", "") == module.__name__ and callable(v)]
    return [n for n in found if not n.startswith("_")]


def _public() -> dict[str, Any]:
    """ "module:name" -> function or class, each once, without ops and what packs bring."""
    found: dict[str, Any] = {}
    for room in ROOMS:
        module = importlib.import_module(room)
        for name in _names(module):
            value = getattr(module, name)
            home = getattr(value, "__module__", None) or ""
            if isinstance(value, type | types.FunctionType) and home.partition(".")[0] == "oprack":
                found.setdefault(f"{home}:{value.__qualname__}", value)
    return found


PUBLIC = _public()


@pytest.mark.parametrize("name", sorted(n for n, v in PUBLIC.items() if isinstance(v, types.FunctionType)))
def test_functions(name: str) -> None:
    function = inspect.unwrap(PUBLIC[name])
    assert not lacking(definition(function), PUBLIC[name].__doc__ or "")


@pytest.mark.parametrize("name", sorted(n for n, v in PUBLIC.items() if isinstance(v, type)))
def test_classes(name: str) -> None:
    """The docstring of a class has the arguments of its constructor; each public member has a docstring."""
    cls = PUBLIC[name]
    assert cls.__doc__, f"{name} has no docstring"
    made = cls.__dict__.get("__init__")
    if isinstance(made, types.FunctionType) and not (dataclasses.is_dataclass(cls) or getattr(cls, "_is_protocol", 0)):
        assert not lacking(definition(made), f"{inspect.cleandoc(cls.__doc__)}\n\n{inspect.getdoc(made) or ''}",
                           constructor=True)  # fmt: skip
    for member, value in vars(cls).items():
        value = getattr(value, "__func__", value)
        function = value.fget if isinstance(value, property) else value
        if member.startswith("_") or not isinstance(function, types.FunctionType):
            continue
        assert function.__doc__, f"{name}.{member} has no docstring"
        if not isinstance(value, property) and inspect.unwrap(function) is function and function.__name__ == member:
            node = definition(function)
            assert not raises(node) or "Raises" in sections(function.__doc__), f"{name}.{member} lacks Raises"


def test_what_is_looked_for_is_found() -> None:
    """The rules of this file, on functions that lack something."""
    source = '''
def f(a, *b, c=1, _d=2, **e):
    """Does it.

    Args:
        a: One.
        b, c: Two.
    """
    def inner():
        raise KeyError
    if a:
        raise ValueError
    return a
'''
    (node,) = ast.parse(source).body
    assert isinstance(node, ast.FunctionDef)
    assert lacking(node, ast.get_docstring(node) or "") == ["Args: e", "Returns or Yields", "Raises"]
    assert lacking(node, "", constructor=True) == ["a docstring", "Args: a", "Args: c", "Args: b", "Args: e", "Raises"]
    assert len(PUBLIC) > 200 and {"oprack.program:Program", "oprack.layers.inputs:data"} <= set(PUBLIC)
