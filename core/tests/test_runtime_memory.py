"""Who may see which memory: buffers in place, views, values of the caller, values at another place."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from oprack.device import CPUDeviceContext, DeviceContextPool, transform_tensor
from oprack.errors import DefinitionError, InputOverwrittenError
from oprack.kernel import kernel
from oprack.op import GradOpDef, Input, OpDef, Output
from oprack.packs.extensions import Extensions
from oprack.packs.manager import PackManager
from oprack.program import Program
from oprack.runtime import Checks, Executor, OperatorBase
from oprack.tensor import CPUPlace, LoDTensor, LoDTensorArray, Scope, SelectedRows
from oprack.tensor.place import Place
from oprack.types import VarType

Build = Callable[..., Program]
X = np.array([[1.0, -2.0], [3.0, 4.0]], np.float32)


class Blend(OpDef, type="blend"):
    """Out = 2 X + Y, in place."""

    X = Input("Any tensor.")
    Y = Input("As X.")
    Out = Output("As X.")
    inplace = {"X": "Out"}

    def infer_shape(ctx: Any) -> None:
        ctx.set_dim("Out", ctx.dim("X"))


@kernel("blend")
def blend(X: Any, Y: Any, *, out: Any = None) -> Any:
    out = np.multiply(X, 2, out=out)
    out += Y
    return out


@pytest.fixture
def with_blend(rack: PackManager) -> None:
    rack.register_op(Blend)
    rack.register_kernel(blend)


# In place -------------------------------------------------------------------------------------------------------------
def test_no_buffer_for_an_op_that_reads_the_variable_in_another_slot_as_well(build: Build, with_blend: None) -> None:
    ops = [("double", {"X": "x"}, {"Out": "y"}), ("blend", {"X": "y", "Y": "y"}, {"Out": "y"})]
    (y,) = Executor().run(build({"x": X}, ops), {"x": X}, ["y"], Scope())
    assert (y == 6 * X).all()


def test_what_the_caller_puts_into_a_scope_is_not_overwritten(build: Build, with_blend: None) -> None:
    program = build({"w": X, "x": X}, [("blend", {"X": "w", "Y": "x"}, {"Out": "w"})])
    program.global_block().vars["w"].persistable = True
    mine, scope = X.copy(), Scope()
    for value in (mine, LoDTensor(mine)):
        scope.var("w").set(value)
        Executor().run(program, {"x": X}, [], scope)
        assert (mine == X).all() and (scope.find_var("w").get().array == 3 * X).all()
    buffer = scope.find_var("w").get().array
    Executor().run(program, {"x": X}, [], scope)
    assert scope.find_var("w").get().array is buffer, "from then on the buffer is the scope's own"


def test_parameters_that_were_replaced_are_let_go_of(build: Build) -> None:
    ids = np.array([1, 0])
    program = build({"ids": ids, "w": X}, [("pick", {"Ids": "ids", "W": "w"}, {"Out": "w"})])
    program.global_block().vars["w"].persistable = True
    executor, scope, seen = Executor(), Scope(), []
    scope.var("w").set(X.copy())
    for _ in range(6):
        seen.append(weakref.ref(scope.find_var("w").get().array))
        executor.run(program, {"ids": ids}, [], scope)
    gc.collect()
    assert [ref() is not None for ref in seen[:-1]] == [False] * 5


def test_read_only_memory_is_no_buffer(build: Build, with_blend: None) -> None:
    program = build({"w": X, "x": X}, [("blend", {"X": "w", "Y": "x"}, {"Out": "w"})])
    program.global_block().vars["w"].persistable = True
    frozen = X.copy()
    frozen.flags.writeable = False
    scope = Scope()
    scope.var("w").value = LoDTensor(frozen)
    Executor().run(program, {"x": X}, [], scope)
    assert (scope.find_var("w").get().array == 3 * X).all()


def test_the_check_finds_a_changed_lod_and_changed_rows(rack: PackManager, build: Build) -> None:
    @kernel("double", priority=1)
    def rude(X: LoDTensor) -> Any:
        X.lod[0][1] = 2
        return X.array * 2

    rack.register_kernel(rude)
    x = LoDTensor(X, [[0, 1, 2]])
    program = build({"x": x}, [("double", {"X": "x"}, {"Out": "y"})])
    with pytest.raises(InputOverwrittenError, match=r"rude .* wrote to input X \(variable 'x'\)"):
        Executor(checks=Checks(overwritten_input=True)).run(program, {"x": x}, ["y"], Scope(), return_numpy=False)


def test_the_check_finds_an_output_on_an_inputs_memory(rack: PackManager, build: Build) -> None:
    @kernel("double", priority=1)
    def lazy(X: Any) -> Any:
        return X[::-1]

    rack.register_kernel(lazy)
    program = build({"x": X}, [("double", {"X": "x"}, {"Out": "y"})])
    with pytest.raises(
        InputOverwrittenError, match=r"lazy .* output Out \(variable 'y'\) lies on the memory of input X"
    ):
        Executor(checks=Checks(overwritten_input=True)).run(program, {"x": X}, ["y"], Scope())


# Outputs --------------------------------------------------------------------------------------------------------------
def test_numpy_and_python_numbers_become_tensors(rack: PackManager, build: Build) -> None:
    returned: list[Any] = []

    class Number(OpDef, type="number"):
        """Out = one number of any dtype."""

        X = Input("Any tensor.")
        Out = Output("A number.")

        def infer_shape(ctx: Any) -> None:
            ctx.set_dim("Out", ())

        def infer_var_type(ctx: Any) -> None:
            """The kernel decides."""

    rack.register_op(Number)

    @kernel("number")
    def scalar(X: Any) -> Any:
        return returned[-1]

    rack.register_kernel(scalar)
    for value in (np.float32(1.5), 1.5, True, np.int64(3)):
        returned.append(value)
        (y,) = Executor().run(build({"x": X}, [("number", {"X": "x"}, {"Out": "y"})]), {"x": X}, ["y"], Scope())
        assert type(y) is np.ndarray and y.shape == () and y == value


@pytest.mark.parametrize("wrong", [np.array([None]), np.ones(2, "M8[s]"), np.array(["a"])])
def test_a_dtype_that_programs_do_not_have_is_told_where_it_comes_from(
    rack: PackManager, build: Build, wrong: Any
) -> None:
    @kernel("double", priority=1)
    def strange(X: Any) -> Any:
        return wrong

    rack.register_kernel(strange)
    program = build({"x": X}, [("double", {"X": "x"}, {"Out": "y"})])
    with pytest.raises(
        DefinitionError, match=r"strange .* returned dtype .* for output Out; expected one of bfloat16, bool"
    ):
        Executor().run(program, {"x": X}, ["y"], Scope())


class Parts(OpDef, type="parts"):
    """Out[i] = X + i."""

    X = Input("Any tensor.")
    Out = Output("As X.", duplicable=True)

    def infer_shape(ctx: Any) -> None:
        ctx.set_dims("Out", [ctx.dim("X")] * ctx.output_count("Out"))


def test_the_number_of_outputs_is_checked_and_empty_ones_are_skipped(rack: PackManager) -> None:
    counts = [3]

    @kernel("parts")
    def parts(X: Any) -> Any:
        return [X + i for i in range(counts[-1])]

    rack.register_op(Parts)
    rack.register_kernel(parts)
    program = Program()
    block = program.global_block()
    for name in ("x", "a", "c"):
        block.create_var(name)
    block.append_op("parts", {"X": "x"}, {"Out": ["a", "@EMPTY@", "c"]})
    for prepared in (False, True):
        scope = Scope()
        a, c = Executor(prepared=prepared).run(program, {"x": X}, ["a", "c"], scope)
        assert (a == X).all() and (c == X + 2).all() and "@EMPTY@" not in scope.all_var_names()
    for count in (2, 4):
        counts.append(count)
        with pytest.raises(DefinitionError, match=rf"returned {count} values for output Out; .* 3 variables"):
            Executor().run(program, {"x": X}, ["a"], Scope())


# Values that are no tensors -------------------------------------------------------------------------------------------
def test_a_fed_array_of_tensors_is_not_changed_by_the_program(rack: PackManager) -> None:
    class Grow(OpDef, type="grow"):
        """Adds X to the array."""

        X = Input("x")
        Items = Input("LoDTensorArray.")
        Out = Output("The same array.")

        def expected_kernel_type(ctx: Any) -> Any:
            return ctx.kernel_type(dtype=ctx.dtype("X"))

        def infer_shape(ctx: Any) -> None: ...

    @kernel("grow")
    def grow(X: Any, Items: LoDTensorArray) -> Any:
        Items.append(LoDTensor(X))
        return Items

    rack.register_op(Grow)
    rack.register_kernel(grow)
    program = Program()
    block = program.global_block()
    for name in ("x", "items"):
        block.create_var(name)
    block.vars["items"].type = VarType.LOD_TENSOR_ARRAY
    block.append_op("grow", {"X": "x", "Items": "items"}, {"Out": "items"})
    for mine in (LoDTensorArray([LoDTensor(X)]), [LoDTensor(X)], [X]):
        (items,) = Executor().run(program, {"x": X, "items": mine}, ["items"], Scope())
        assert len(items) == 2 and len(mine) == 1
        assert (items[0] == X).all() and items[0] is not X


class CopyingDevice(CPUDeviceContext):
    """A place of its own memory."""

    def from_host(self, array: np.ndarray) -> np.ndarray:
        return array.copy()

    def to_host(self, array: np.ndarray) -> np.ndarray:
        return array.copy()


class FakePlace(Place):
    kind = "fake"


def test_rows_move_between_places(rack: PackManager, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Place] = []

    @kernel("double", place="fake", priority=1)
    def double_rows(X: SelectedRows, *, factor: float) -> Any:
        seen.append(X.place)
        return SelectedRows(X.rows, X.value * np.float32(factor), X.height)

    monkeypatch.setattr(Extensions, "place_factory", lambda _, kind: CopyingDevice)
    rack.register_kernel(double_rows)
    program = Program()
    for name in ("x", "y"):
        program.global_block().create_var(name, type=VarType.SELECTED_ROWS)
    program.global_block().append_op("double", {"X": "x"}, {"Out": "y"})
    mine = SelectedRows([1], X[:1].copy(), 5)
    (y,) = Executor(FakePlace()).run(program, {"x": mine}, ["y"], Scope())
    assert seen == [FakePlace()] and y.place == CPUPlace() and (y.value == 2 * X[:1]).all() and y.rows.tolist() == [1]
    assert mine.place == CPUPlace()


# Data transform -------------------------------------------------------------------------------------------------------
def test_a_transform_that_shares_memory_marks_both_sides() -> None:
    pool = DeviceContextPool(lambda kind: CPUDeviceContext)
    plain = LoDTensor(X.copy())
    there = transform_tensor(plain, FakePlace(), pool)  # a place on the same memory
    assert there.place == FakePlace() and there.array is plain.array and there.shared and plain.shared
    copied = transform_tensor(LoDTensor(X.copy()), CPUPlace(), pool, dtype="float64")
    assert not copied.shared
    assert transform_tensor(copied, CPUPlace(), pool) is copied


# Views ----------------------------------------------------------------------------------------------------------------
class FlatGrad(GradOpDef, type="flat_grad"):
    """X@GRAD = Out@GRAD in the shape of X."""

    X = Input("Only its shape is read.")
    Out_grad = Input("Gradient of Out.")
    Spare = Output("A second view.")
    X_grad = Output("Gradient of X.")

    def infer_shape(ctx: Any) -> None:
        ctx.set_dim("X@GRAD", ctx.dim("X"))


@kernel("flat_grad", view=True)
def flat_grad(Out_grad: Any, X: Any) -> Any:
    return {"X_grad": Out_grad.reshape(X.shape), "Spare": Out_grad[:1]}


class Pause(OpDef, type="pause"):
    """Runs itself, so that what comes after it is another segment of a plan."""

    X = Input("Anything.")

    def infer_shape(ctx: Any) -> None: ...


class PauseOp(OperatorBase):
    def run_impl(self, scope: Scope, run: Any) -> None:
        """Nothing to do."""


@pytest.fixture
def with_views(rack: PackManager) -> None:
    rack.register_op(FlatGrad)
    rack.register_kernel(flat_grad)
    rack.register_op(Pause)
    rack.register_operator("pause", PauseOp)


def run_twice(program: Program, feed: dict[str, Any], names: list[str], prepared: bool) -> list[Any]:
    """The second run, which finds what the first one prepared."""
    exe = Executor(prepared=prepared)
    exe.run(program, feed, names, Scope())
    return exe.run(program, feed, names, Scope())


@pytest.mark.parametrize("prepared", [False, True])
@pytest.mark.parametrize("pause", [False, True])
def test_a_view_is_of_the_kernels_first_parameter(build: Build, with_views: None, pause: bool, prepared: bool) -> None:
    """flat_grad's first input is X, and its kernel's first parameter Out@GRAD."""
    g = X.reshape(-1)
    ops: list[Any] = [
        ("double", {"X": "x"}, {"Out": "a"}),
        ("double", {"X": "g"}, {"Out": "h"}),
        ("flat_grad", {"X": "a", "Out@GRAD": "h"}, {"X@GRAD": "v", "Spare": "s"}),
        *([("pause", {"X": "v"}, {})] if pause else []),
        ("double", {"X": "h"}, {"Out": "h"}),
        ("double", {"X": "a"}, {"Out": "a"}),
    ]
    a, h, v, s = run_twice(build({"x": X, "g": g}, ops), {"x": X, "g": g}, ["a", "h", "v", "s"], prepared)
    assert (a == 4 * X).all() and (h == 4 * g).all() and (v == 2 * X).all() and (s == 2 * g[:1]).all()


@pytest.mark.parametrize("prepared", [False, True])
@pytest.mark.parametrize("source", ["x", "y"])
def test_a_view_that_outlives_a_segment(build: Build, with_views: None, source: str, prepared: bool) -> None:
    """The source comes from a segment before (x, doubled in place first) or from the same one (y)."""
    ops: list[Any] = [
        ("double", {"X": "f"}, {"Out": "x"}),
        ("pause", {"X": "x"}, {}),
        ("double", {"X": "x"}, {"Out": "y"}),
        ("flat", {"X": source}, {"Out": "v"}),
        ("pause", {"X": "v"}, {}),
        ("double", {"X": source}, {"Out": source}),
        ("double", {"X": "v"}, {"Out": "w"}),
    ]
    got, v, w = run_twice(build({"f": X}, ops), {"f": X}, [source, "v", "w"], prepared)
    factor = 2 if source == "x" else 4
    assert (v == factor * X.reshape(-1)).all() and (w == 2 * factor * X.reshape(-1)).all()
    assert (got == 2 * factor * X).all()
