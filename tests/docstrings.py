"""Rules of docstrings: what the docstring of a function or class lacks, by its source and its signature."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import textwrap
import types
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any

SECTIONS = re.compile(r"^(Args|Attributes|Returns|Yields|Raises):$", re.MULTILINE)


def definition(function: types.FunctionType) -> ast.FunctionDef:
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(node, ast.FunctionDef)
    return node


def _own(node: ast.FunctionDef) -> Iterator[ast.AST]:
    """Nodes of a function's body, without those of functions inside."""
    todo: list[ast.AST] = list(node.body)
    while todo:
        found = todo.pop()
        if not isinstance(found, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            yield found
            todo += ast.iter_child_nodes(found)


def _returns(node: ast.FunctionDef) -> bool:
    for found in _own(node):
        # a with block that is handed nothing has a bare yield
        if isinstance(found, ast.YieldFrom) or (isinstance(found, ast.Yield) and found.value is not None):
            return True
        if isinstance(found, ast.Return) and found.value is not None:
            if not (isinstance(found.value, ast.Constant) and found.value.value is None):
                return True
    return False


def raises(node: ast.FunctionDef) -> bool:
    return any(isinstance(found, ast.Raise) and found.exc is not None for found in _own(node))


def _parameters(node: ast.FunctionDef) -> list[str]:
    a = node.args
    every = [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))]
    return [p.arg for p in every if p.arg not in ("self", "cls") and not p.arg.startswith("_")]


def sections(doc: str) -> dict[str, str]:
    parts = SECTIONS.split(inspect.cleandoc(doc))
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def lacking(node: ast.FunctionDef, doc: str, *, constructor: bool = False) -> list[str]:
    """What a docstring does not say, in words."""
    known = sections(doc)
    found = [] if doc.strip() else ["a docstring"]
    found += unnamed(_parameters(node), known.get("Args", ""))
    if _returns(node) and not constructor and not known.keys() & {"Returns", "Yields"}:
        found.append("Returns or Yields")
    if raises(node) and "Raises" not in known:
        found.append("Raises")
    return found


def unnamed(parameters: Iterable[str], entries: str) -> list[str]:
    """Those of some parameters that a section does not name, in words."""
    found = re.findall(r"^    \**(\w+(?:, \w+)*):", entries, re.MULTILINE)
    named = {name for entry in found for name in entry.split(", ")}
    return [f"Args: {name}" for name in parameters if name not in named]


def lacking_for_users(value: Any) -> list[str]:
    """What the docstring of a function or class, as `help` shows it, does not say of a call with several arguments."""
    is_class = isinstance(value, type)
    if is_class and (issubclass(value, BaseException | Enum | list | dict) or getattr(value, "_is_protocol", False)):
        return []
    parameters = _typed(value)
    if len(parameters) < 2:
        return []
    doc = inspect.cleandoc(value.__dict__.get("__doc__") or "") if is_class else value.__doc__ or ""
    if is_class and isinstance(value.__dict__.get("__init__"), types.FunctionType):
        doc += f"\n\n{inspect.getdoc(value.__init__) or ''}"
    known = sections(doc)
    fields = known.get("Attributes", "") if is_class and (dataclasses.is_dataclass(value) or _is_tuple(value)) else ""
    found = unnamed(parameters, known.get("Args", "") + fields)
    function = None if is_class else inspect.unwrap(value)
    if isinstance(function, types.FunctionType) and not hasattr(value, "op_signature"):
        node = definition(function)
        if _returns(node) and not known.keys() & {"Returns", "Yields"}:
            found.append("Returns or Yields")
        if raises(node) and "Raises" not in known:
            found.append("Raises")
    return found


def _typed(value: Any) -> list[str]:
    """The parameters that a user of a function or class types."""
    if isinstance(value, type) and "__signature__" not in value.__dict__ and not _is_tuple(value):
        value = value.__init__  # __new__ hands on what it gets
    if value is object.__init__:
        return []
    return [name for name in inspect.signature(value).parameters if name not in ("self", "cls") and name[0] != "_"]


def _is_tuple(cls: type) -> bool:
    """Whether a class is a NamedTuple."""
    return issubclass(cls, tuple) and hasattr(cls, "_fields")
