"""The prepared plan: the same numbers as the reference path, values that die, buffers reused, and when it is used."""

from __future__ import annotations

import gc
import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from oprack.errors import InvalidArgumentError, OpError
from oprack.kernel import kernel
from oprack.op import Attr, Input, OpDef, Output
from oprack.packs.manager import PackManager
from oprack.program import Program
from oprack.runtime import Checks, Executor, Profiler
from oprack.runtime.operator import OperatorBase
from oprack.runtime.plan.codegen import generated_function
from oprack.runtime.prepared import run_block
from oprack.runtime.prepared_function import PreparedFunction
from oprack.tensor import LoDTensor, Scope, SelectedRows

Build = Callable[..., Program]
X = np.array([[1.0, -2.0], [3.0, 4.0]], np.float32)


def plan_of(exe: Executor, program: Program, *fetch: str) -> Any:
    return exe.prepare(program.desc).block(0).plan(fetch)


def run(exe: Executor, program: Program, x: Any, *fetch: str, scope: Scope | None = None) -> list[Any]:
    return exe.run(program, {"x": x}, list(fetch), scope or Scope(), return_numpy=False)


def test_generated_source_is_found_as_long_as_its_function_lives() -> None:
    source = "def half(x):\n    return x / two\n"
    half, twin = (generated_function(source, "half", "a half", {"two": 2}) for _ in range(2))
    file, other = half.__code__.co_filename, twin.__code__.co_filename
    assert half(6) == 3 and linecache.getline(file, 2) == "    return x / two\n"
    del half
    gc.collect()
    assert not linecache.getline(file, 2) and linecache.getline(other, 2)


def test_the_first_run_is_traced_and_the_next_ones_run_generated_code(build: Build, rack: PackManager) -> None:
    program = build({"x": X}, [("double", {"X": "x"}, {"Out": "y"}), ("double", {"X": "y"}, {"Out": "z"})])
    exe = Executor()
    plan = plan_of(exe, program, "z")
    assert "not compiled yet" in plan.source()
    for _ in range(3):
        assert (run(exe, program, X, "z")[0].array == 4 * X).all()
    source = plan.source()
    assert source.splitlines()[0] == "def segment(run, v0):"
    assert source.count("double(") == 2 and "del v0" in source
    free = "out=v1 if v1.nbytes > 65536 and v1.flags.owndata and v1.flags.writeable else None"
    assert free in source, "y dies, so z may have its memory"


def test_the_code_names_the_variables_whatever_a_model_calls_them(build: Build) -> None:
    bad = "y\n    raise SystemExit  # \r\u2028"
    program = build({"x": X}, [("double", {"X": "x"}, {"Out": bad}), ("double", {"X": bad}, {"Out": "z"})])
    exe = Executor()
    for _ in range(3):
        assert (run(exe, program, X, "z", bad)[0].array == 4 * X).all()
    source = plan_of(exe, program, "z", bad).source()
    assert "    # v0 = x\n" in source and source.count(ascii(bad)) == 1
    exe, program = Executor(), build({bad: X}, [("double", {"X": bad}, {"Out": "z"})])
    for _ in range(3):
        (z,) = exe.run(program, {bad: X}, ["z"], Scope())
    assert (z == 2 * X).all() and f"    # v0 = {bad!a}\n" in plan_of(exe, program, "z").source()


def test_shapes_do_not_make_another_plan_but_dtypes_and_lod_levels_do(build: Build) -> None:
    program = build({"x": X}, [("double", {"X": "x"}, {"Out": "y"})])
    program.global_block().vars["x"].dtype = None
    exe = Executor()
    segment = plan_of(exe, program, "y").steps[0]
    for rows in (1, 2, 7, 2):
        run(exe, program, np.ones((rows, 2), np.float32), "y")
    assert len(segment.sources()) == 1
    run(exe, program, X.astype(np.float64), "y")
    (y,) = run(exe, program, LoDTensor(X, [[0, 1, 1, 2]]), "y")
    (y,) = run(exe, program, LoDTensor(X, [[0, 0, 2]]), "y")
    assert y.lod == [[0, 0, 2]] and len(segment.sources()) == 3


def test_a_new_inner_shape_is_checked_by_the_shape_rules_first(build: Build) -> None:
    program = build({"i": np.array([0]), "w": X}, [("pick", {"Ids": "i", "W": "w"}, {"Out": "y"})])
    for name in ("i", "w"):
        program.global_block().vars[name].shape = None
    exe = Executor()
    for _ in range(3):
        exe.run(program, {"i": np.array([0]), "w": X}, ["y"], Scope())
    # numpy would take it: indexing a vector is fine, but the op asks for a matrix
    with pytest.raises(InvalidArgumentError, match="op pick: W has shape"):
        exe.run(program, {"i": np.array([0]), "w": X[0]}, ["y"], Scope())


def test_a_failing_op_in_generated_code_is_explained_like_on_the_reference_path(build: Build) -> None:
    program = build(
        {"i": np.array([0]), "w": X},
        [("double", {"X": "w"}, {"Out": "v"}), ("pick", {"Ids": "i", "W": "v"}, {"Out": "y"})],
    )
    exe = Executor()
    for _ in range(2):
        exe.run(program, {"i": np.array([0]), "w": X}, ["y"], Scope())
    with pytest.raises(OpError) as error:
        exe.run(program, {"i": np.array([9]), "w": X}, ["y"], Scope())
    for part in ("op pick (pack this process) failed: IndexError", "Ids = 'i': int64[1]", "W = 'v': float32[2, 2]"):
        assert part in str(error.value)


def test_memory_of_the_caller_of_parameters_and_of_views_is_left_alone(build: Build) -> None:
    program = build(
        {"x": X, "w": X},
        [
            ("double", {"X": "x"}, {"Out": "y"}),
            ("flat", {"X": "y"}, {"Out": "v"}),
            ("double", {"X": "y"}, {"Out": "z"}),
            ("double", {"X": "v"}, {"Out": "u"}),
            ("double", {"X": "w"}, {"Out": "t"}),
        ],
    )
    program.global_block().vars["w"].persistable = True
    exe, scope, x, w = Executor(), Scope(), X.copy(), LoDTensor(X.copy())
    scope.var("w").set(w)
    for _ in range(3):
        z, u, t, v = run(exe, program, x, "z", "u", "t", "v", scope=scope)
        assert (z.array == 4 * X).all() and (u.array == 4 * X.reshape(-1)).all()
        assert (t.array == 2 * X).all() and (v.array == 2 * X.reshape(-1)).all()
    assert (x == X).all() and (w.array == X).all()


def test_a_parameter_updated_in_place_keeps_its_memory_unless_it_is_the_callers(build: Build) -> None:
    program = build({"w": X}, [("double", {"X": "w"}, {"Out": "w"})])
    program.global_block().vars["w"].persistable = True
    exe, scope, mine = Executor(), Scope(), X.copy()
    scope.var("w").set(mine)
    addresses = []
    for _ in range(4):
        exe.run(program, {}, [], scope)
        addresses.append(scope.find_var("w").get().array.ctypes.data)
    assert (mine == X).all() and (scope.find_var("w").get().array == 16 * X).all()
    assert len(set(addresses[1:])) == 1 and addresses[0] != mine.ctypes.data


def test_fetching_does_not_hand_out_memory_that_the_scope_goes_on_using(build: Build) -> None:
    program = build({"w": X}, [("double", {"X": "w"}, {"Out": "w"})])
    program.global_block().vars["w"].persistable = True
    exe, scope = Executor(), Scope()
    scope.var("w").set(X)
    got = [exe.run(program, {}, ["w"], scope)[0] for _ in range(3)]
    assert [g[0, 0] for g in got] == [2, 4, 8]


class Both(OpDef, type="both"):
    """Two outputs, one of them a list, by dict or tuple."""

    X = Input("x")
    Parts = Output("Rows of X.", duplicable=True)
    Sum = Output("Sum of all.")
    as_dict = Attr(False, "How the kernel returns.")

    def infer_shape(ctx: Any) -> None:
        ctx.set_dim("Sum", ())


@kernel("both")
def both(X: Any, *, as_dict: bool, ctx: Any) -> Any:
    parts = [X[i].copy() for i in range(ctx.output_count("Parts"))]
    return {"Sum": X.sum(), "Parts": parts} if as_dict else (parts, X.sum())


@pytest.mark.parametrize("as_dict", [False, True])
def test_several_outputs_lists_and_scalars(rack: PackManager, build: Build, as_dict: bool) -> None:
    rack.register_op(Both)
    rack.register_kernel(both)
    ops = [("both", {"X": "x"}, {"Parts": ["a", "@EMPTY@"], "Sum": "s"}, {"as_dict": as_dict})]
    program, exe = build({"x": X}, ops), Executor()
    for _ in range(3):
        a, s = run(exe, program, X, "a", "s")
        assert a.array.tolist() == [1, -2] and s.shape == () and float(s.array) == 6


class Spare(OpDef, type="spare"):
    """Out = 2 X, and nothing for Spare, as batch norms do where nothing is kept for the gradient."""

    X = Input("x")
    Out = Output("As X.")
    Spare = Output("Nothing.", dispensable=True)

    def infer_shape(ctx: Any) -> None:
        ctx.set_dim("Out", ctx.dim("X"))


@kernel("spare")
def spare(X: Any) -> Any:
    return 2 * X, None


def test_an_output_that_is_left_out_and_read_takes_no_scope_either(
    rack: PackManager, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    rack.register_op(Spare)
    rack.register_kernel(spare)
    ids = np.array([1, 0])
    ops = [
        ("spare", {"X": "x"}, {"Out": "y", "Spare": "s"}),
        ("pick", {"Ids": "ids", "W": "y", "Scale": "s"}, {"Out": "z"}),
    ]
    program, exe = build({"x": X, "ids": ids}, ops), Executor()
    for i in range(5):
        if i == 3:
            monkeypatch.setattr(PreparedFunction, "_run_in_scope", None)
        (z,) = exe.run(program, {"x": X + i, "ids": ids}, ["z"], Scope())
        assert (z == 2 * (X + i)[ids]).all()


def test_rows_pass_through(rack: PackManager, build: Build) -> None:
    class Rows(OpDef, type="rows"):
        """SelectedRows out."""

        X = Input("x")
        Out = Output("rows")

        def infer_shape(ctx: Any) -> None:
            ctx.set_dim("Out", (5, -1))

    class Dense(OpDef, type="dense"):
        """SelectedRows in."""

        X = Input("rows")
        Out = Output("dense")

        def infer_shape(ctx: Any) -> None:
            ctx.set_dim("Out", ctx.dim("X"))

    @kernel("rows")
    def rows(X: Any) -> Any:
        return SelectedRows([0, 3], X, 5)

    @kernel("dense")
    def dense(X: SelectedRows) -> Any:
        return X.to_dense()

    for definition, function in ((Rows, rows), (Dense, dense)):
        rack.register_op(definition)
        rack.register_kernel(function)
    program = build({"x": X}, [("rows", {"X": "x"}, {"Out": "r"}), ("dense", {"X": "r"}, {"Out": "y"})])
    exe = Executor()
    for _ in range(3):
        assert (run(exe, program, X, "y")[0].array[3] == X[1]).all()


class Twice(OperatorBase):
    """Runs its block two times."""

    def run_impl(self, scope: Scope, run: Any) -> None:
        for _ in range(2):
            run_block(run, self.attrs["sub_block"], scope.new_scope())


def test_ops_that_run_themselves_split_the_plan_and_their_blocks_have_plans_too(
    rack: PackManager, build: Build
) -> None:
    from oprack.op import REQUIRED, InferShapeFacet, OpMaker
    from oprack.types import AttrType

    class Maker(OpMaker):
        """Runs its block two times."""

        X = Input("x", duplicable=True)
        Out = Output("o", duplicable=True)
        sub_block = Attr(REQUIRED, "block", type=AttrType.BLOCK)

    class Shape(InferShapeFacet):
        def __call__(self, ctx: Any) -> None:
            """The ops of the block set the shapes."""

    rack.register_operator("twice", Maker, Twice, Shape)
    program = build({"x": X}, [("double", {"X": "x"}, {"Out": "y"})])
    root = program.global_block()
    inner = program.desc.append_block(root)
    inner.create_var("t", dtype="float32", shape=[-1, 2])
    inner.append_op("double", {"X": "y"}, {"Out": "t"})
    inner.append_op("double", {"X": "t"}, {"Out": "y"})
    op = root.append_op("twice", {"X": "y"}, {"Out": "y"})
    op.set_attr("sub_block", 1, AttrType.BLOCK)
    root.create_var("z", dtype="float32", shape=[-1, 2])
    root.append_op("double", {"X": "y"}, {"Out": "z"})
    for prepared in (False, True):
        exe = Executor(prepared=prepared)
        for _ in range(3):
            assert (run(exe, program, X, "z")[0].array == 2 * 16 * 2 * X).all()
    plan = plan_of(exe, program, "z")
    assert [type(s).__name__ for s in plan.steps] == ["Segment", "Twice", "Segment"]
    assert "# twice runs itself" in plan.source()
    assert "def segment" in exe.prepare(program.desc).block(1).plan(None).source()


def test_checks_profilers_and_observers_see_ops_one_by_one(build: Build, rack: PackManager) -> None:
    program = build({"x": X}, [("double", {"X": "x"}, {"Out": "y"})])
    exe = Executor(checks=Checks(nan_inf=True))
    run(exe, program, X, "y")
    assert exe.prepare(program.desc).block(0)._plans == {}
    exe = Executor()
    with Profiler() as profiler:
        run(exe, program, X, "y")
    assert profiler.by_op()[0]["op"] == "double"
    assert "1 ops, not compiled yet" in plan_of(exe, program, "y").source()


def test_names_of_variables_stand_beside_the_code_and_never_in_it(build: Build) -> None:
    wicked = "y\n    raise SystemExit  # \u2028"
    program = build({"x": X}, [("double", {"X": "x"}, {"Out": wicked}), ("double", {"X": wicked}, {"Out": "z"})])
    exe = Executor()
    for _ in range(3):
        assert (run(exe, program, X, "z")[0].array == 4 * X).all()
    code = plan_of(exe, program, "z").source()
    assert "  # z\n" in code and "# 'y\\n    raise SystemExit  # \\u2028'" in code
