"""Ops created and run by themselves, programs run without their feed and fetch ops, and the contexts they share."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import numpy as np
import oprack
import pytest
from oprack.desc import OpDesc
from oprack.errors import (
    AttributeValueError,
    InvalidArgumentError,
    MissingPackError,
    NotFoundError,
    PreconditionNotMetError,
    UnknownOpError,
)
from oprack.io import load_inference_model, save_inference_model
from oprack.packs.manager import PackManager, use_manager
from oprack.program import Program
from oprack.runtime import Executor, NaiveExecutor
from oprack.tensor import CPUPlace, CUDAPlace, LoDTensor, Scope

Build = Callable[..., Program]
X = np.array([[1.0, -2.0], [3.0, 4.0]], np.float32)
W = np.array([[1, 2], [3, 4], [5, 6]], np.float32)


# create_op ------------------------------------------------------------------------------------------------------------
def test_an_op_runs_on_a_scope_at_a_place(rack: PackManager) -> None:
    scope = Scope()
    op = oprack.create_op("double", inputs={"X": ["x"]}, outputs={"Out": ["y"]}, attrs={"factor": 3.0})
    for k in (1, 2):
        scope.var("x").set(LoDTensor(k * X, [[0, 1, 2]]))
        op.run(scope, CPUPlace())
        y = scope.get_var("y").get()
        assert (y.array == 3 * k * X).all() and y.lod == [[0, 1, 2]]
    assert op.type == "double" and "double" in repr(op)


def test_defaults_are_filled_in_and_a_name_alone_will_do(rack: PackManager) -> None:
    scope = Scope()
    scope.var("x").set(X)
    oprack.create_op("double", {"X": "x"}, {"Out": "x"}).run(scope)
    assert (scope.get_var("x").get().array == 2 * X).all() and (X[0, 0] == 1)


def test_an_output_goes_to_the_ancestor_that_has_it(rack: PackManager) -> None:
    outer = Scope()
    outer.var("x").set(X)
    outer.var("y")
    inner = outer.new_scope()
    oprack.create_op("double", {"X": "x"}, {"Out": "y"}).run(inner)
    oprack.create_op("double", {"X": "x"}, {"Out": "z"}).run(inner)
    assert (outer.get_var("y").get().array == 2 * X).all() and outer.find_var("z") is None


def test_what_is_wrong_with_an_op_is_said_when_it_is_created(rack: PackManager) -> None:
    with pytest.raises(AttributeValueError, match="factor"):
        oprack.create_op("double", {"X": "x"}, {"Out": "y"}, {"factor": -1.0})
    with pytest.raises(InvalidArgumentError, match="op double: input 'Y' is no slot of it; expected X"):
        oprack.create_op("double", {"Y": "x"}, {"Out": "y"})
    with pytest.raises(InvalidArgumentError, match="op double: output 'Y' is no slot of it; expected Out"):
        oprack.create_op("double", {"X": "x"}, {"Y": "y"})
    with pytest.raises((UnknownOpError, MissingPackError), match="halve"):
        oprack.create_op("halve", {"X": "x"}, {"Out": "y"})


def test_what_is_wrong_with_values_is_said_when_it_runs(rack: PackManager) -> None:
    op = oprack.create_op("pick", {"Ids": "ids", "W": "w"}, {"Out": "rows"})
    scope = Scope()
    scope.var("ids").set(np.array([2, 0]))
    with pytest.raises(PreconditionNotMetError, match=r"(?s)'w'.* holds no value.*W = 'w': not set"):
        op.run(scope)
    scope.var("w").set(W)
    op.run(scope)
    assert (scope.get_var("rows").get().array == W[[2, 0]]).all()
    with pytest.raises(NotFoundError, match="no plugin serves places of kind 'cuda'"):
        op.run(scope, CUDAPlace(0))


# prepare --------------------------------------------------------------------------------------------------------------
@pytest.fixture
def loaded(build: Build, tmp_path: Path) -> tuple[Program, Scope]:
    """rows = w[ids], twice = 2 rows; loaded with feed and fetch ops, and w in a scope."""
    program = build(
        {"ids": np.array([0]), "w": W},
        [("pick", {"Ids": "ids", "W": "w"}, {"Out": "rows"}), ("double", {"X": "rows"}, {"Out": "twice"})],
    )
    w = program.global_block().vars["w"]
    w.shape, w.persistable = W.shape, True
    scope = Scope()
    scope.var("w").set(W)
    save_inference_model(tmp_path / "m", program, ["ids"], ["twice"], scope)
    found = Scope()
    return load_inference_model(
        tmp_path, found, model_filename="m.pdmodel", params_filename="m.pdiparams"
    ).program, found


@pytest.mark.parametrize("prepared", [False, True])
def test_a_loaded_model_runs_on_variables_of_the_scope(
    loaded: tuple[Program, Scope], prepared: bool, caplog: pytest.LogCaptureFixture
) -> None:
    program, scope = loaded
    assert [op.type for op in program.desc.blocks[0].ops] == ["feed", "pick", "double", "fetch"]
    exe = NaiveExecutor(prepared=prepared)
    with caplog.at_level(logging.DEBUG, "oprack"):
        ready = exe.prepare(program, scope, 0, with_feed_fetch=False)
        assert scope.find_local_var("ids") is not None and not scope.get_var("ids").is_initialized()
    skipped = [r.getMessage() for r in caplog.records if "skipped" in r.getMessage()]
    assert len(skipped) == 2 and "op feed of block 0 is skipped; variable ['ids']" in skipped[0]
    for ids in ([2, 1], [0], [2, 2]):
        scope.get_var("ids").set(np.array(ids))
        exe.run_prepared(ready, scope)
        assert (scope.get_var("twice").get().array == 2 * W[ids]).all()
        scope.get_var("ids").set(np.array(ids))
        exe.run_prepared(ready, scope, keep=["twice"])
        assert (scope.get_var("twice").get().array == 2 * W[ids]).all()
    for _ in range(2):  # and with its feed and fetch ops
        (twice,) = Executor(prepared=prepared).run(program, {"ids": np.array([1])}, scope=scope)
        assert (twice == 2 * W[[1]]).all()


def test_another_block_than_the_first_can_be_prepared(build: Build) -> None:
    program = build({"x": X}, [("double", {"X": "x"}, {"Out": "y"})])
    inner = program.desc.append_block(program.global_block())
    inner.create_var("z", dtype="float32", shape=[-1, 2])
    inner.append_op("double", {"X": "x"}, {"Out": "z"}, {"factor": 5.0})
    exe, scope = NaiveExecutor(loop_limit=0), Scope()
    ready = exe.prepare(program, scope, block_id=1)
    for _ in range(3):
        scope.var("x").set(X)
        exe.run_prepared(ready, scope)
        assert (scope.get_var("z").get().array == 5 * X).all() and scope.find_var("y") is None
    with pytest.raises(InvalidArgumentError, match="block 2: the program has blocks 0 to 1"):
        exe.prepare(program, block_id=2)


# Contexts -------------------------------------------------------------------------------------------------------------
def test_all_who_use_the_same_packs_share_the_context_of_a_place(rack: PackManager) -> None:
    first, second = Executor(), NaiveExecutor()
    context = first.pool.get(CPUPlace())
    assert context is second.pool.get(CPUPlace()) is first.clone().pool.get(CPUPlace())
    from oprack.eager_tensor import devices

    assert devices.context(CPUPlace()) is context
    other = PackManager(entry_points=[], environ={})
    with use_manager(other):
        assert Executor().pool is other.device_contexts is not first.pool


def test_an_op_desc_says_all(rack: PackManager) -> None:
    desc, scope = OpDesc("double", {"X": ["x"]}, {"Out": ["y"]}, {"factor": 3.0}), Scope()
    scope.var("x").value = LoDTensor(np.float32([1, 2]))
    oprack.create_op(desc).run(scope)
    np.testing.assert_array_equal(np.asarray(scope.find_var("y").value), [3.0, 6.0])
    with pytest.raises(InvalidArgumentError, match="expected nothing else"):
        oprack.create_op(desc, {"X": "x"})
