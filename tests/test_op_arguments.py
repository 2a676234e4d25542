"""How Python spells the arguments of ops, in functions and layers alike; modes."""

from __future__ import annotations

import ast
import inspect
import pkgutil
import re
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import functional as F
from oprack import to_tensor
from oprack.errors import InvalidArgumentError, NotFoundError
from oprack.interpreter import modes
from oprack.layers.generate import layer_of_op
from oprack.op import param_name
from oprack.packs.manager import default_manager

F_TYPES = {param_name(t): t for t in default_manager().op_types()}
A = np.arange(12, dtype=np.float32).reshape(3, 4) - 5


def test_a_slot_that_an_attribute_shares_its_name_with() -> None:
    x, shape = to_tensor(A), to_tensor(np.array([4, 3], np.int32))
    assert F.reshape2(x, shape=[4, 3]).shape == F.reshape2(x, shape_input=shape).shape == F.reshape2(x, shape).shape
    assert list(inspect.signature(F.reshape2).parameters)[:4] == ["x", "shape_input", "shape_tensor", "shape"]


def test_modes_ask_for_interpreters_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent:
        def __init__(self, rules: Any) -> None:
            pass

        def apply(self, expr: Any, args: Any) -> Any:
            return "not run"

    current = modes.current_mode()
    monkeypatch.setattr(modes, "_INTERPRETERS", {"eager": Silent})
    bare = modes.Mode(False, False, (), False, False)
    assert bare.interpreter.apply(None, ()) == "not run" and bare.interpreter is bare.interpreter
    with pytest.raises(NotFoundError, match="no interpreter 'lazy' is registered"):
        modes.Mode(False, True, (), False, False).interpreter  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        current.nothing  # noqa: B018


def test_every_function_is_a_layer_with_the_same_inputs() -> None:
    for name in {*dir(F)} & {*F_TYPES}:
        function, layer = inspect.signature(getattr(F, name)), inspect.signature(getattr(oprack.layers, name))
        assert layer.parameters or not function.parameters, name
    parameters = list(inspect.signature(oprack.layers.expand_v2).parameters)
    assert parameters[:3] == ["x", "shape_input", "expand_shapes_tensor"]
    with pytest.raises(AttributeError, match="has no 'no_such_op'"):
        oprack.layers.no_such_op  # noqa: B018


def test_layers_count_their_results_as_functions_do() -> None:
    """Attributes, the number of inputs or a known dim say how many results there are; else the caller does."""
    layers = oprack.layers
    with oprack.program_guard(oprack.Program(), oprack.Program()):
        x, rows = layers.data("x", [2, 5]), layers.data("rows", [None, 3])
        assert [v.shape for v in layers.unbind(x)] == [(5,), (5,)] and len(layers.unbind(x, axis=1)) == 5
        assert len(layers.unbind(rows, 4)) == len(layers.unbind(rows, num_outputs=4)) == 4
        assert len(layers.meshgrid([layers.data("a", [2]), layers.data("b", [3])])) == 2
        for call in (layers.unbind, F.unbind):
            with pytest.raises(InvalidArgumentError, match="op unbind: pass num_outputs, the number of tensors"):
                call(rows)
        with pytest.raises(InvalidArgumentError, match=r"axis is 2; expected a dim of shape \[2, 5\], from -2 to 1"):
            layers.unbind(x, axis=2)


@pytest.mark.parametrize("name", sorted({*dir(F)} & {*F_TYPES}))
def test_help_reads_as_written_by_hand(name: str) -> None:
    """Each parameter has its line under Args, results are under Returns; the stub has the same parameters."""
    for function in (getattr(F, name), layer_of_op(F_TYPES[name])):
        doc, signature = inspect.getdoc(function), inspect.signature(function)
        assert doc is not None
        head, _, raises = doc.partition("\n\nRaises:\n")
        head, _, returns = head.partition("\n\nReturns:\n")
        head, _, arguments = head.partition("\n\nArgs:\n")
        assert head and raises.startswith("    ") and returns.startswith("    ")
        entries = [line for line in arguments.splitlines() if re.match(r"    \S", line)]
        assert [e.strip().partition(":")[0] for e in entries] == list(signature.parameters)
        assert returns.rstrip()[-1] in ".!?$"
        (stub,) = ast.parse(function.op_signature.stub()).body
        assert isinstance(stub, ast.FunctionDef)
        assert [a.arg for a in (*stub.args.args, *stub.args.kwonlyargs)] == list(signature.parameters)
        assert inspect.cleandoc(ast.get_docstring(stub) or "") == doc.strip().replace('"""', "'''")


def test_no_module_of_functional_hides_an_op() -> None:
    ops = set(default_manager().op_types())
    for package in (oprack.functional, oprack.layers):
        names = {module.name for module in pkgutil.iter_modules(package.__path__)}
        assert not names & ops
