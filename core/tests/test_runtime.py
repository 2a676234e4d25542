"""Running: the steps of an op, feeding and fetching, memory, caches, checks, profiler, random numbers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oprack.desc import ProgramDesc
from oprack.errors import (
    DefinitionError,
    FeedDtypeError,
    FeedLoDError,
    FeedNameError,
    FeedShapeError,
    FetchNameError,
    InputOverwrittenError,
    InvalidArgumentError,
    MissingPackError,
    NanInfError,
    OpError,
    PreconditionNotMetError,
)
from oprack.kernel import kernel
from oprack.op import Input, OpDef, Output
from oprack.packs.manager import PackManager
from oprack.program import Program
from oprack.runtime import Checks, Executor, Profiler, UnusedInputWarning
from oprack.runtime.run_context import RandomState
from oprack.tensor import LoDTensor, LoDTensorArray, Scope, SelectedRows

Build = Callable[..., Program]
X = np.array([[1.0, -2.0], [3.0, 4.0]], np.float32)


def double_twice(build: Build) -> Program:
    return build(
        {"x": X}, [("double", {"X": "x"}, {"Out": "y"}), ("double", {"X": "y"}, {"Out": "z"}, {"factor": 3.0})]
    )


@pytest.mark.parametrize("prepared", [False, True])
def test_runs_and_fetches_any_variable(build: Build, prepared: bool) -> None:
    exe = Executor(prepared=prepared)
    for _ in range(2):
        y, z = exe.run(double_twice(build), {"x": X}, ["y", "z"], Scope())
        assert (y == 2 * X).all() and (z == 6 * X).all() and z.dtype == np.float32


def test_lod_is_carried_by_the_shape_rule(build: Build) -> None:
    x = LoDTensor(X, [[0, 0, 2, 2]])
    program = build({"x": x}, [("double", {"X": "x"}, {"Out": "y"})])
    assert program.global_block().vars["y"].lod_level == 1
    (y,) = Executor().run(program, {"x": x}, ["y"], Scope(), return_numpy=False)
    assert y.lod == [[0, 0, 2, 2]]
    with pytest.raises(InvalidArgumentError, match=r"fetch 'y': it has LoD .* return_numpy=False"):
        Executor().run(program, {"x": x}, ["y"], Scope())


def test_an_absent_input_is_none_and_a_list_stays_a_list(build: Build) -> None:
    ids, w = np.array([1, 0, 1]), X
    program = build({"i": ids, "w": w}, [("pick", {"Ids": "i", "W": "w", "Scale": []}, {"Out": "y"}),
                                         ("join", {"X": ["y", "w"]}, {"Out": "z"})])  # fmt: skip
    y, z = Executor().run(program, {"i": ids, "w": w}, ["y", "z"], Scope())
    assert (y == w[ids]).all() and (z == np.concatenate([w[ids], w])).all()


def test_parameters_stay_in_the_scope_and_temporaries_do_not(build: Build) -> None:
    program = build({"x": X}, [("double", {"X": "x"}, {"Out": "y"}), ("double", {"X": "y"}, {"Out": "w"})])
    program.global_block().vars["w"].persistable = True
    scope = Scope()
    Executor().run(program, {"x": X}, [], scope)
    assert scope.local_var_names() == ["w"] and (scope.find_var("w").get().array == 4 * X).all()
    assert scope.kids() == []


# Memory -------------------------------------------------------------------------------------------------------------
def test_an_op_in_place_writes_into_its_own_buffer_only_when_nobody_else_sees_it(build: Build) -> None:
    x = X.copy()
    program = build({"x": x}, [("double", {"X": "x"}, {"Out": "x"})])
    (y,) = Executor().run(program, {"x": x}, ["x"], Scope())
    assert (y == 2 * X).all() and (x == X).all(), "what is fed belongs to the caller"


def test_a_view_is_not_overwritten_by_an_op_in_place(build: Build) -> None:
    program = build(
        {"x": X},
        [
            ("double", {"X": "x"}, {"Out": "y"}),
            ("flat", {"X": "y"}, {"Out": "v"}),
            ("double", {"X": "y"}, {"Out": "y"}),
            ("double", {"X": "v"}, {"Out": "v"}),
        ],
    )
    y, v = Executor().run(program, {"x": X}, ["y", "v"], Scope())
    assert (y == 4 * X).all() and (v == 4 * X.reshape(-1)).all()


def test_prepared_runs_drop_values_after_their_last_use(build: Build, rack: PackManager) -> None:
    alive: list[list[str]] = []

    class Watch:
        def before_op(self, op: Any, scope: Scope) -> None:
            alive.append([n for n in ("x", "y", "z") if scope.find_var(n).is_initialized()])

        def after_op(self, op: Any, scope: Scope) -> None: ...

    exe, program, scope = Executor(), double_twice(build), Scope()
    prepared = exe.prepare(program.desc)
    local = scope.new_scope()
    prepared.block(0).create_variables(local)
    local.var("x").set(X)
    exe.run_prepared(prepared, local, keep=["z"], observers=[Watch()])
    assert alive == [["x"], ["y"]]
    assert not local.find_var("y").is_initialized() and local.find_var("z").is_initialized()


# Caches -------------------------------------------------------------------------------------------------------------
def test_a_changed_program_is_prepared_again(build: Build) -> None:
    exe, program = Executor(), double_twice(build)
    assert exe.run(program, {"x": X}, ["z"], Scope())[0][0, 0] == 6
    op = program.global_block().ops[1]
    first = exe.prepare(program.desc)
    assert exe.prepare(program.desc) is first
    op.set_attr("factor", 5.0)
    assert exe.prepare(program.desc) is not first
    assert exe.run(program, {"x": X}, ["z"], Scope())[0][0, 0] == 10


def test_kernels_and_shapes_are_chosen_once_per_signature(build: Build, rack: PackManager) -> None:
    exe, program = Executor(checks=Checks(nan_inf=True)), double_twice(build)  # checks see the ops one by one
    for rows in (2, 5, 2):
        exe.run(program, {"x": np.ones((rows, 2), np.float32)}, ["z"], Scope())
    op = exe.prepare(program.desc).block(0).operators[0]
    assert len(op._chosen) == 1 and len(op._inferred) == 2  # two shapes, one dtype


def test_a_better_kernel_registered_later_takes_over(build: Build, rack: PackManager) -> None:
    exe, program = Executor(), double_twice(build)
    exe.run(program, {"x": X}, ["z"], Scope())

    @kernel("double", priority=1)
    def tenfold(X: Any, *, factor: float) -> Any:
        return X * np.float32(10)

    rack.register_kernel(tenfold)
    assert exe.run(program, {"x": X}, ["z"], Scope())[0][0, 0] == 100


# Bad feeds and fetches ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("feed", "error", "text"),
    [
        ({"q": X}, FeedNameError, "feed: 'q' is no variable of the program"),
        ({"x": X.astype("float64")}, FeedDtypeError, r"feed 'x': got float64\[2, 2\]; the program expects float32"),
        ({"x": X.astype(np.longdouble)}, FeedDtypeError, "is not a dtype"),
        ({"x": X[0]}, FeedShapeError, r"feed 'x': got shape \[2\] of rank 1; the program expects rank 2"),
        ({"x": LoDTensor(X, [[0, 2]])}, None, ""),
        ({"x": (X, [[0, 3]])}, FeedLoDError, "feed 'x': level 0 ends at 3; expected 2, the tensor's rows"),
        ({"x": (X, [[0, 2, 1, 2]])}, FeedLoDError, "decreases from 2 to 1 at position 2"),
        ({"x": (X, [[1, 2]])}, FeedLoDError, "expected offsets that start at 0"),
        ({"x": object()}, FeedShapeError, "object can't be made an array"),
        ({"x": [[1, 2], [3]]}, FeedShapeError, "can't be made an array"),
        ({}, PreconditionNotMetError, r"variable 'x'\) holds no value; feed it"),
    ],
)
def test_bad_feeds(build: Build, feed: dict[str, Any], error: type[Exception] | None, text: str) -> None:
    if error is None:
        Executor().run(double_twice(build), feed, ["z"], Scope(), return_numpy=False)
        return
    with pytest.raises(error, match=text):
        Executor().run(double_twice(build), feed, ["z"], Scope())


def test_lod_levels_are_checked(build: Build) -> None:
    program = build({"x": LoDTensor(X, [[0, 2]])}, [("double", {"X": "x"}, {"Out": "y"})])
    with pytest.raises(FeedLoDError, match="feed 'x': got 0 LoD levels; the program expects 1"):
        Executor().run(program, {"x": X}, ["y"], Scope())


def test_python_numbers_take_the_declared_dtype(build: Build) -> None:
    assert Executor().run(double_twice(build), {"x": [[1, 2]]}, ["y"], Scope())[0].dtype == np.float32


def test_an_unknown_fetch_suggests_a_name(build: Build) -> None:
    with pytest.raises(FetchNameError, match=r"fetch 'zz': .*did you mean z"):
        Executor().run(double_twice(build), {"x": X}, ["zz"], Scope())


def test_missing_ops_are_reported_at_once(rack: PackManager) -> None:
    program = Program()
    for op in ("no_such", "double", "nor_this"):
        program.global_block().append_op(op)
    with pytest.raises(MissingPackError, match=r"(?s)2 op type.*no_such.*nor_this|2 op type.*nor_this.*no_such"):
        Executor().run(program, {}, [])


# Failing ops --------------------------------------------------------------------------------------------------------
def test_an_error_names_op_variables_shapes_and_the_creating_line(build: Build) -> None:
    ids = np.array([0, 7])
    program = build({"i": ids, "w": X}, [("pick", {"Ids": "i", "W": "w"}, {"Out": "y"})])
    program.global_block().ops[0].set_attr("op_callstack", ['  File "train.py", line 12, in net', "    y = pick(i, w)"])
    with pytest.raises(OpError) as error:
        Executor().run(program, {"i": ids, "w": X}, ["y"], Scope())
    text = str(error.value)
    for part in (
        "op pick (pack this process) failed: IndexError",
        "input  Ids = 'i': int64[2]",
        "input  W = 'w': float32[2, 2]",
        "output Out = 'y': not set",
        'created by File "train.py", line 12, in net: y = pick(i, w)',
        "oprack op pick",
    ):
        assert part in text


def test_a_shape_rule_that_refuses_keeps_its_class(build: Build) -> None:
    program = build({"i": np.array([0]), "w": X}, [("pick", {"Ids": "i", "W": "w"}, {"Out": "y"})])
    program.global_block().vars["w"].shape = None
    with pytest.raises(InvalidArgumentError, match=r"op pick: W has shape \[2\] of rank 1; expected rank 2") as error:
        Executor().run(program, {"i": np.array([0]), "w": X[0]}, ["y"], Scope())
    assert "op pick, number 0 of block 0" in str(error.value)


def test_a_kernel_that_returns_no_array_is_told(build: Build, rack: PackManager) -> None:
    @kernel("double", priority=1)
    def wrong(X: Any) -> Any:
        return "text"

    rack.register_kernel(wrong)
    with pytest.raises(DefinitionError, match=r"wrong .* returned a str for output Out; expected an array"):
        Executor().run(double_twice(build), {"x": X}, ["z"], Scope())


# Checks -------------------------------------------------------------------------------------------------------------
def test_nan_check_names_op_and_variable(build: Build) -> None:
    bad = X.copy()
    bad[1, 0] = np.inf
    with pytest.raises(NanInfError, match=r"op double: output Out \(variable 'y'\) has 1 of 4 .* first at \[1, 0\]"):
        Executor(checks=Checks(nan_inf=True)).run(double_twice(build), {"x": bad}, ["z"], Scope())


def test_what_is_set_of_an_executor_counts_from_the_next_run_on(build: Build) -> None:
    exe, program, bad = Executor(), double_twice(build), np.full_like(X, np.inf)
    for _ in range(3):
        exe.run(program, {"x": bad}, ["z"], Scope())
    exe.checks = Checks(nan_inf=True)
    with pytest.raises(NanInfError):
        exe.run(program, {"x": bad}, ["z"], Scope())
    exe.checks = Checks()
    exe.run(program, {"x": bad}, ["z"], Scope())


def test_overwritten_input_is_found(build: Build, rack: PackManager) -> None:
    @kernel("join", priority=1)
    def rude(X: list[Any]) -> Any:
        X[0][...] = 0
        return np.concatenate(X)

    rack.register_kernel(rude)
    program = build({"x": X}, [("double", {"X": "x"}, {"Out": "y"}), ("join", {"X": ["y"]}, {"Out": "z"})])
    with pytest.raises(InputOverwrittenError, match=r"rude .* wrote to input X \(variable 'y'\)"):
        Executor(checks=Checks(overwritten_input=True)).run(program, {"x": X}, ["z"], Scope())


def test_unused_input_is_told(build: Build, rack: PackManager) -> None:
    @kernel("pick", priority=1)
    def no_ids(W: Any) -> Any:
        return W

    rack.register_kernel(no_ids)
    program = build({"i": np.array([0, 1]), "w": X}, [("pick", {"Ids": "i", "W": "w"}, {"Out": "y"})])
    with pytest.warns(UnusedInputWarning, match="no_ids of this process takes no part of input Ids"):
        Executor(checks=Checks(unused_input=True)).run(program, {"i": np.array([0, 1]), "w": X}, ["y"], Scope())


# Profiler -----------------------------------------------------------------------------------------------------------
def test_profiler_has_every_step_a_table_and_a_trace(build: Build, tmp_path: Path) -> None:
    exe = Executor(checks=Checks(nan_inf=True))
    with Profiler() as profiler:
        exe.run(double_twice(build), {"x": X}, ["z"], Scope())
    assert [e[0] for e in profiler.events][:7] == [
        *(f"double.{s}" for s in ("choose_kernel", "prepare_data", "infer_shape", "compute", "write_back", "checks")),
        "double",
    ]
    (row,) = profiler.by_op()
    assert row["op"] == "double" and row["calls"] == 2 and row["share"] == pytest.approx(1)
    assert profiler.table().splitlines()[1].startswith("double ")
    profiler.chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    timed = [e for e in events if e["ph"] == "X"]
    assert len(timed) == 14 and all(e["dur"] >= 0 for e in timed)
    exe.run(double_twice(build), {"x": X}, ["z"], Scope())
    assert len(profiler.events) == 14, "nothing is recorded outside the with block"


def test_a_trace_keeps_threads_apart_with_ids_of_32_bits() -> None:
    profiler = Profiler()
    profiler.events += [("a", "op", 0, 10, 1 << 47), ("b", "op", 5, 15, (1 << 47) + 1), ("c", "op", 20, 30, 1 << 47)]
    events = profiler.chrome_trace()["traceEvents"]
    threads = {e["name"]: e["tid"] for e in events if e["ph"] == "X"}
    assert threads["a"] == threads["c"] != threads["b"] and max(threads.values()) < 1 << 32
    named = {e["tid"] for e in events if e["name"] == "thread_name"}
    assert named == set(threads.values())


def test_shares_are_of_the_time_of_outer_ops() -> None:
    profiler = Profiler()
    for name, category, start, end, thread in (
        ("inner", "op", 10, 40, 1),
        ("inner", "op", 50, 90, 1),
        ("loop", "op", 0, 100, 1),
        ("loop.compute", "step", 0, 100, 1),
        ("inner", "op", 20, 120, 2),
    ):
        profiler.events.append((name, category, start, end, thread))
    rows = {row["op"]: row for row in profiler.by_op()}
    assert rows["loop"]["share"] == 0.5 and rows["inner"]["share"] == 0.85 and rows["inner"]["calls"] == 3
    assert Profiler().by_op() == []


def test_an_error_is_told_also_when_a_value_can_not_be_described(build: Build) -> None:
    program = double_twice(build)
    program.global_block().vars.pop("x")
    scope = Scope()
    scope.var("x").set(np.array(["a"]))
    with pytest.raises(InvalidArgumentError, match=r"<U1.* is not a dtype(?s:.*)input  X = 'x': <U1\[1\]"):
        Executor().run(program, {}, ["z"], scope)


# Random numbers -----------------------------------------------------------------------------------------------------
def test_random_numbers_replay_and_ops_do_not_disturb_each_other() -> None:
    a, b = RandomState(7), RandomState(7)
    first = [a.generator("op1").random(3).tolist() for _ in range(2)]
    b.generator("op2").random(5)
    assert [b.generator("op1").random(3).tolist() for _ in range(2)] == first
    assert first[0] != first[1]
    state = a.state()
    third = a.generator("op1").random(3).tolist()
    a.load_state(json.loads(json.dumps(state)))
    assert a.generator("op1").random(3).tolist() == third
    assert a.generator("op1", seed=5).random() == b.generator("op9", seed=5).random()


# Values -------------------------------------------------------------------------------------------------------------
def test_output_values_of_every_kind(rack: PackManager) -> None:
    class Kinds(OpDef, type="kinds"):
        """Rows and an array."""

        X = Input("x")
        Rows = Output("SelectedRows.")
        Items = Output("LoDTensorArray.")

        def infer_shape(ctx: Any) -> None:
            ctx.set_dim("Rows", (-1, *ctx.dim("X")[1:]))

    @kernel("kinds")
    def kinds(X: Any) -> Any:
        return {"Rows": SelectedRows([1], X[:1], 5), "Items": LoDTensorArray([LoDTensor(X)])}

    rack.register_op(Kinds)
    rack.register_kernel(kinds)
    program = Program(ProgramDesc())
    block = program.global_block()
    for name in ("x", "r", "a"):
        block.create_var(name)
    block.append_op("kinds", {"X": "x"}, {"Rows": "r", "Items": "a"})
    rows, items = Executor().run(program, {"x": X}, ["r", "a"], Scope(), return_numpy=False)
    assert rows.height == 5 and (rows.to_dense()[1] == X[0]).all()
    assert len(items) == 1 and (items[0].array == X).all()
