"""A program of three ops with its parameters, and how scopes are compared."""

from __future__ import annotations

import numpy as np
from oprack.program import Program
from oprack.tensor import Scope


def values(scope: Scope) -> dict[str, np.ndarray]:
    return {name: scope.find_var(name).get().array for name in scope.local_var_names()}


def assert_same_values(one: Scope, other: Scope) -> None:
    a, b = values(one), values(other)
    assert a.keys() == b.keys()
    for name in a:
        assert a[name].dtype == b[name].dtype
        np.testing.assert_array_equal(a[name], b[name])


def small_program() -> Program:
    program = Program()
    block = program.global_block()
    block.create_var("x", dtype="float32", shape=[-1, 2])
    block.create_var("w", dtype="float32", shape=[2, 1], persistable=True)
    block.create_var("b", dtype="float64", shape=[1], persistable=True)
    block.create_var("h", dtype="float32", shape=[-1, 1])
    block.create_var("y", dtype="float32", shape=[-1, 1])
    block.create_var("unused", dtype="float32", shape=[-1, 1])
    block.append_op("mul", {"X": "x", "Y": "w"}, {"Out": "h"})
    block.append_op("relu", {"X": "h"}, {"Out": "y"})
    block.append_op("elementwise_add", {"X": "h", "Y": "b"}, {"Out": "unused"})
    return program


def small_scope() -> Scope:
    scope = Scope()
    scope.var("w").set(np.array([[0.5], [-1.0]], "float32"))
    scope.var("b").set(np.array([2.5]))
    return scope
