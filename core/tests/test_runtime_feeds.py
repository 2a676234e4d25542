"""Feeding and fetching at the edges: hostile feed ops, what counts as an array, programs that change between runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from oprack.errors import (
    AttributeValueError,
    BlockCycleError,
    BlockDepthError,
    CorruptModelError,
    FeedError,
    FeedNameError,
    FeedShapeError,
    FetchNameError,
)
from oprack.packs.manager import PackManager
from oprack.program import Program
from oprack.runtime import Executor
from oprack.runtime.prepared import run_block
from oprack.tensor import LoDTensor, LoDTensorArray, Scope

Build = Callable[..., Program]
X = np.array([[1.0, -2.0], [3.0, 4.0]], np.float32)


@pytest.fixture
def program(build: Build) -> Program:
    return build({"x": X}, [("double", {"X": "x"}, {"Out": "y"})])


def add_feed(program: Program, name: str, col: Any) -> None:
    program.global_block().prepend_op("feed", {"X": "feed"}, {"Out": name}, {"col": col})


# feed and fetch ops ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("prepared", [False, True])
def test_columns_far_apart_take_no_memory(program: Program, prepared: bool) -> None:
    add_feed(program, "x", 2**31 - 1)
    program.global_block().append_op("fetch", {"X": "y"}, {"Out": "fetch"}, {"col": 2**31 - 1})
    (y,) = Executor(prepared=prepared).run(program, {"x": X}, scope=Scope())
    assert (y == 2 * X).all()


@pytest.mark.parametrize("col", [-1, 2**40, "first", [0]])
def test_columns_that_are_none(program: Program, col: Any) -> None:
    add_feed(program, "x", col)
    with pytest.raises((AttributeValueError, CorruptModelError), match=r"op feed.*col"):
        Executor().run(program, {"x": X}, ["y"], Scope())


def test_a_feed_op_without_a_variable(program: Program) -> None:
    program.global_block().prepend_op("feed", {"X": "feed"}, {}, {"col": 0})
    with pytest.raises(CorruptModelError, match=r"op feed names the variables \[\]"):
        Executor().run(program, {"x": X}, ["y"], Scope())


# What is fed ----------------------------------------------------------------------------------------------------------
def test_a_scalar_variable_whose_feeds_are_checked(program: Program) -> None:
    var = program.global_block().vars["x"]
    var.shape, var.need_check_feed = (), True
    with pytest.raises(
        FeedShapeError, match=r"feed 'x': got shape \[2, 2\] of rank 2; the program expects rank 0, shape \[\]"
    ):
        Executor().run(program, {"x": X}, ["y"], Scope())
    assert Executor().run(program, {"x": X[0, 0]}, ["y"], Scope())[0] == 2
    var.shape = (-1, 3)
    with pytest.raises(FeedShapeError, match=r"got shape \[2, 2\]; the program expects \[-1, 3\]"):
        Executor().run(program, {"x": X}, ["y"], Scope())


def test_a_feed_that_is_not_checked_may_have_another_rank_of_as_many_elements(program: Program) -> None:
    var = program.global_block().vars["x"]
    var.shape, var.need_check_feed = (4,), False
    (y,) = Executor().run(program, {"x": X}, ["y"], Scope())
    assert (y == 2 * X).all()
    for shape, checked in (((5,), False), ((-1,), False), ((4,), True)):
        var.shape, var.need_check_feed = shape, checked
        with pytest.raises(FeedShapeError, match=r"got shape \[2, 2\] of rank 2; the program expects rank 1"):
            Executor().run(program, {"x": X}, ["y"], Scope())


def test_subclasses_and_other_byte_orders_of_arrays(program: Program) -> None:
    with pytest.warns(PendingDeprecationWarning):
        matrix = np.matrix(X)
    for value in (matrix, np.ma.array(X), X.astype(">f4"), np.asfortranarray(X), X[:, ::-1][:, ::-1]):
        (y,) = Executor().run(program, {"x": value}, ["y"], Scope())
        assert type(y) is np.ndarray and y.dtype == np.float32 and y.dtype.isnative and (y == 2 * X).all()
    assert type(LoDTensor(matrix).array) is np.ndarray


def test_a_tensor_of_a_tensor_is_the_tensor() -> None:
    inner = LoDTensor(X, [[0, 2]])
    assert LoDTensor(inner).array is X and LoDTensor(inner).lod == []


def test_kinds_that_a_variable_does_not_hold(program: Program) -> None:
    with pytest.raises(FeedError, match="feed 'x': got a LoDTensorArray; the program expects a LOD_TENSOR"):
        Executor().run(program, {"x": LoDTensorArray([LoDTensor(X)])}, ["y"], Scope())


def test_feed_and_fetch_list_of_the_wrong_type(program: Program) -> None:
    with pytest.raises(FeedError, match=r"feed is a list; expected a mapping, such as \{'x': array\}"):
        Executor().run(program, [X], ["y"], Scope())  # type: ignore[arg-type]
    with pytest.raises(FetchNameError, match=r"fetch_list is the string 'y'; expected a list of names: \['y'\]"):
        Executor().run(program, {"x": X}, "y", Scope())
    with pytest.raises(FetchNameError, match="fetch_list has 3; expected names of variables"):
        Executor().run(program, {"x": X}, [3], Scope())
    (y,) = Executor().run(program, {"x": X}, [program.global_block().vars["y"]], Scope())
    assert (y == 2 * X).all()


# Programs that change -------------------------------------------------------------------------------------------------
def test_a_variable_that_becomes_persistable_is_kept_from_then_on(program: Program) -> None:
    exe, scope = Executor(), Scope()
    exe.run(program, {"x": X}, ["y"], scope)
    assert scope.local_var_names() == []
    program.global_block().vars["y"].persistable = True
    exe.run(program, {"x": X}, ["y"], scope)
    assert scope.local_var_names() == ["y"]
    program.global_block().vars["y"].persistable = False
    other = Scope()
    exe.run(program, {"x": X}, ["y"], other)
    assert other.local_var_names() == []


def test_an_attribute_out_of_range_says_which_op_of_the_program(program: Program, build: Build) -> None:
    program.global_block().ops[0].set_attr("factor", -1.0)
    program.global_block().ops[0].set_attr("op_callstack", ['  File "net.py", line 3, in f', "    double(x)"])
    with pytest.raises(AttributeValueError) as error:
        Executor().run(program, {"x": X}, ["y"], Scope())
    assert "op double: attribute 'factor' is -1.0; expected a value greater than 0. Factor." in str(error.value)
    assert 'op number 0 of block 0, created by File "net.py", line 3, in f: double(x)' in str(error.value)


# Sub-blocks -----------------------------------------------------------------------------------------------------------
def nested(depth: int, rack: PackManager) -> Program:
    """`depth` blocks, each run by an op of the one before; y = 2 x in the innermost."""
    from oprack.op import Attr, Input, OpDef, Output
    from oprack.runtime import OperatorBase
    from oprack.types import AttrType

    class Inner(OpDef, type="inner"):
        """Runs a block."""

        X = Input("x")
        Out = Output("y")
        sub_block = Attr(0, "The block.", type=AttrType.BLOCK)

        def infer_shape(ctx: Any) -> None: ...

    class InnerOp(OperatorBase):
        def run_impl(self, scope: Scope, run: Any) -> None:
            run_block(run, self.attrs["sub_block"], scope.new_scope())

    rack.register_op(Inner)
    rack.register_operator("inner", InnerOp)
    program = Program()
    for name in ("x", "y"):
        program.global_block().create_var(name)
    for i in range(depth):
        program.blocks[i].append_op("inner", {"X": "x"}, {"Out": "y"}).set_attr("sub_block", i + 1, AttrType.BLOCK)
        program.desc.append_block(program.blocks[i])
    program.blocks[depth].append_op("double", {"X": "x"}, {"Out": "y"})
    return program


@pytest.mark.parametrize("prepared", [False, True])
def test_blocks_may_be_nested(rack: PackManager, prepared: bool) -> None:
    (y,) = Executor(prepared=prepared).run(nested(30, rack), {"x": X}, ["y"], Scope())
    assert (y == 2 * X).all()


def test_blocks_nested_too_deep_are_refused_before_anything_runs(rack: PackManager) -> None:
    with pytest.raises(BlockDepthError, match=r"blocks are nested 5001 deep; expected at most 64"):
        Executor().run(nested(5000, rack), {"x": X}, ["y"], Scope())


def test_a_block_that_runs_itself_is_refused(rack: PackManager) -> None:
    program = nested(2, rack)
    program.blocks[1].ops[0].set_attr("sub_block", 1)
    with pytest.raises(BlockCycleError, match=r"sub-blocks of the blocks 1 run in a circle"):
        Executor().run(program, {"x": X}, ["y"], Scope())


def test_one_variable_in_two_columns(program: Program) -> None:
    block = program.global_block()
    add_feed(program, "x", 0)
    add_feed(program, "x", 1)
    for col in (1, 0):
        block.append_op("fetch", {"X": "y"}, {"Out": "fetch"}, {"col": col})
    for prepared in (False, True):
        a, b = Executor(prepared=prepared).run(program, {"x": X}, scope=Scope())
        assert (a == 2 * X).all() and (b == 2 * X).all()


@pytest.mark.parametrize("prepared", [False, True])
def test_a_variable_that_is_fetched_twice_has_memory_of_its_own_each_time(program: Program, prepared: bool) -> None:
    executor, scope = Executor(prepared=prepared), Scope()
    for _ in range(3):
        a, b, x = executor.run(program, {"x": X}, ["y", "y", "x"], scope)
        a[...] = x[...] = 7.0
        assert (b == 2 * X).all()


def test_a_wrong_name_lists_what_was_made_to_be_fed(program: Program) -> None:
    with pytest.raises(FeedNameError, match=r"'q' is no variable of the program. It has no feed ops."):
        Executor().run(program, {"q": X}, ["y"], Scope())
    program.global_block().vars["x"].need_check_feed = True  # as layers.data says
    with pytest.raises(FeedNameError, match=r"'q' is no variable of the program. The program's inputs are 'x'."):
        Executor().run(program, {"q": X}, ["y"], Scope())
