"""Kernels that decline: the next one that fits takes over, on every path, and it is told who declined and why."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from oprack.errors import DefinitionError, InputOverwrittenError, KernelNotFoundError, KernelResultError, NanInfError
from oprack.kernel import KernelSpecialization, OpKernelType, bind_signature, decline, kernel
from oprack.op import Attr, Input, OpDef, Output
from oprack.packs.manager import PackManager
from oprack.program import Program
from oprack.runtime import Checks, Executor
from oprack.tensor import Scope

Build = Callable[..., Program]
CALLS: list[str] = []


@pytest.fixture(autouse=True)
def fresh() -> None:
    CALLS.clear()


@kernel("double", library="fast", priority=2, may_decline=True)
def positive(X: Any, *, factor: Any, out: Any = None) -> Any:
    if (X < 0).any():
        return decline("X has negative elements")
    CALLS.append("positive")
    return np.multiply(X, X.dtype.type(factor), out=out)


def run(exe: Executor, program: Program, x: Any, fetch: str = "y") -> Any:
    return exe.run(program, {"x": x}, [fetch], Scope())[0]


def chain_of(build: Build, op: str = "double") -> Program:
    ops = [(op, {"X": "x"}, {"Out": "m"}), (op, {"X": "m"}, {"Out": "y"})]
    program = build({"x": np.ones(2, np.float32)}, ops)
    program.global_block().vars["x"].shape = (-1,)
    return program


@pytest.mark.parametrize("prepared", [False, True])
@pytest.mark.parametrize("first", [1, -1])
def test_the_next_kernel_takes_over_whatever_came_first(
    rack: PackManager, build: Build, prepared: bool, first: int
) -> None:
    rack.register_kernel(positive)
    program, exe = chain_of(build), Executor(prepared=prepared)
    for sign in (first, 1, -1, 1, -1):
        for size in (3, 70_000):
            CALLS.clear()
            x = np.full(size, sign * 2, np.float32)
            np.testing.assert_array_equal(run(exe, program, x), 4 * x)
            assert (x == sign * 2).all()
            assert CALLS == ["positive"] * (2 if sign > 0 else 0)
    if prepared:
        source = exe.prepare(program.desc).block(0).plan(("y",)).source()
        assert "v1 if (v1 := positive(" in source and ") is not NotImplemented else" in source


def test_what_a_kernel_specialized_may_decline_as_well(rack: PackManager, build: Build) -> None:
    def specialize(call: KernelSpecialization) -> Any:
        factor = np.float32(call.attrs["factor"])
        return lambda X: NotImplemented if (X < 0).any() else (CALLS.append("special"), X * factor)[1]

    @kernel("double", library="fast", priority=2, may_decline=True, min_numel=4, specialize=specialize)
    def general(X: Any, *, factor: Any) -> Any:
        return NotImplemented if (X < 0).any() else X * X.dtype.type(factor)

    rack.register_kernel(general)
    program, exe = chain_of(build), Executor()
    run(exe, program, np.ones(5, np.float32))
    for x, count in (([1] * 5, 2), ([-1] * 5, 0), ([1] * 3, 0), ([1] * 4, 2)):
        CALLS.clear()
        np.testing.assert_array_equal(run(exe, program, np.array(x, np.float32)), 4.0 * np.array(x))
        assert CALLS == ["special"] * count, x


class Split(OpDef, type="halves"):
    """Out and Rest."""

    X = Input("[2 n].")
    Out = Output("The first n.")
    Rest = Output("The others.")

    def infer_shape(ctx: Any) -> None:
        for slot in ("Out", "Rest"):
            ctx.set_dim(slot, (-1 if ctx.dim("X")[0] < 0 else ctx.dim("X")[0] // 2,))

    def infer_var_type(ctx: Any) -> None:
        for slot in ("Out", "Rest"):
            ctx.set_dtype(slot, ctx.dtype("X"))


@pytest.mark.parametrize("first", [1, -1])
def test_several_outputs(rack: PackManager, build: Build, first: int) -> None:
    @kernel("halves", library="fast", priority=1, may_decline=True)
    def fast(X: Any) -> Any:
        return (
            NotImplemented if X[0] < 0 else (CALLS.append("fast"), X[: len(X) // 2].copy(), X[len(X) // 2 :].copy())[1:]
        )

    @kernel("halves")
    def plain(X: Any) -> Any:
        return X[: len(X) // 2].copy(), X[len(X) // 2 :].copy()

    rack.register_op(Split)
    rack.register_kernel(fast)
    rack.register_kernel(plain)
    program = build({"x": np.ones(4, np.float32)}, [("halves", {"X": "x"}, {"Out": "y", "Rest": "z"})])
    for exe in (Executor(), Executor(prepared=False)):
        for sign in (first, 1, -1, 1):
            x = sign * np.arange(1, 5, dtype=np.float32)
            y, z = exe.run(program, {"x": x}, ["y", "z"], Scope())
            np.testing.assert_array_equal(np.concatenate([y, z]), x)
    assert CALLS


def test_a_failing_op_names_who_declined_before(rack: PackManager, build: Build) -> None:
    @kernel("double", priority=3, may_decline=True)
    def first(X: Any) -> Any:
        return decline("never does anything")

    rack.register_kernel(first)
    rack.register_kernel(positive)
    exe, program = Executor(prepared=False, checks=Checks(nan_inf=True)), chain_of(build)
    with pytest.raises(NanInfError, match=r"kernel .*first declined: never does anything"):
        run(exe, program, np.array([np.nan, 1], np.float32))


@pytest.mark.parametrize("prepared", [False, True])
def test_all_decline(rack: PackManager, build: Build, prepared: bool) -> None:
    class Alone(OpDef, type="alone"):
        """Only one kernel."""

        X = Input("x")
        Out = Output("o")

        def infer_shape(ctx: Any) -> None:
            ctx.set_dim("Out", ctx.dim("X"))

    @kernel("alone", may_decline=True)
    def alone(X: Any) -> Any:
        return decline("X is negative") if X[0] < 0 else X + 1

    rack.register_op(Alone)
    rack.register_kernel(alone)
    program, exe = build({"x": np.ones(2, np.float32)}, [("alone", {"X": "x"}, {"Out": "y"})]), Executor()
    exe.prepared = prepared
    for _ in range(2):
        assert (run(exe, program, np.ones(2, np.float32)) == 2).all()
        with pytest.raises(KernelNotFoundError, match=r"every kernel that fits has declined:\n.*alone: X is neg"):
            run(exe, program, -np.ones(2, np.float32))


def test_a_kernel_that_does_not_say_so_may_not_decline(rack: PackManager, build: Build) -> None:
    @kernel("double", priority=1)
    def silent(X: Any) -> Any:
        return NotImplemented

    rack.register_kernel(silent)
    with pytest.raises(KernelResultError, match=r"silent.*returned NotImplemented.*may_decline=True"):
        run(Executor(), chain_of(build), np.ones(2, np.float32))


def test_nothing_may_be_written_before_a_kernel_declines(rack: PackManager, build: Build) -> None:
    @kernel("double", priority=1, may_decline=True)
    def late(X: Any, *, out: Any = None) -> Any:
        if out is not None:
            out[:] = 7
        return NotImplemented

    rack.register_kernel(late)
    program = build(
        {"x": np.ones(2, np.float32)}, [("double", {"X": "x"}, {"Out": "m"}), ("double", {"X": "m"}, {"Out": "m"})]
    )
    with pytest.raises(
        InputOverwrittenError, match=r"late.* declined after it had written to input X \(variable 'm'\)"
    ):
        run(Executor(), program, np.ones(2, np.float32), "m")


@pytest.mark.parametrize("prepared", [False, True])
def test_other_libraries_take_over_from_one_that_is_asked_for(rack: PackManager, build: Build, prepared: bool) -> None:
    class Asking(OpDef, type="asks"):
        """Asks for library fast."""

        X = Input("x")
        Out = Output("o")

        def infer_shape(ctx: Any) -> None:
            ctx.set_dim("Out", ctx.dim("X"))

        def expected_kernel_type(ctx: Any) -> OpKernelType:
            return ctx.kernel_type(dtype=ctx.dtype("X"), library="fast")  # type: ignore[no-any-return]

    @kernel("asks", library="fast", may_decline=True)
    def fast(X: Any) -> Any:
        return NotImplemented if X[0] < 0 else X + 1

    @kernel("asks")
    def plain(X: Any) -> Any:
        return X + 2

    rack.register_op(Asking)
    rack.register_kernel(fast)
    rack.register_kernel(plain)
    program = build({"x": np.ones(2, np.float32)}, [("asks", {"X": "x"}, {"Out": "y"})])
    exe = Executor(prepared=prepared)
    for sign, want in ((1, 2), (-1, 1), (1, 2), (-1, 1)):
        assert (run(exe, program, np.full(2, sign, np.float32)) == want).all()


def test_the_log_says_once_who_declined(rack: PackManager, build: Build, caplog: pytest.LogCaptureFixture) -> None:
    rack.register_kernel(positive)
    with caplog.at_level(logging.DEBUG, "oprack"):
        for _ in range(3):
            run(Executor(prepared=False), chain_of(build), np.full(3, -1, np.float32))
    told = [r.getMessage() for r in caplog.records if "declined" in r.getMessage()]
    assert len(told) <= 1 and all("positive declined: X has negative elements; " in text for text in told)


def test_deterministic_runs_leave_out_those_that_take_over(rack: PackManager, build: Build) -> None:
    @kernel("double", library="fast", priority=1, deterministic=False)
    def fast(X: Any) -> Any:
        return X * 100

    rack.register_kernel(positive)
    rack.register_kernel(fast)
    x = np.full(2, -1, np.float32)
    assert (run(Executor(), chain_of(build), x) == -10_000).all()
    assert (run(Executor(deterministic=True), chain_of(build), x) == -4).all()


# Slot groups ----------------------------------------------------------------------------------------------------------
class State(NamedTuple):
    """Of the op below."""

    W: Any
    Ids: Any
    Scale: Any = None
    Unknown: Any = None


class Rule(NamedTuple):
    """Of the op below."""

    axis: int
    unknown: int = 5


class Gather(OpDef, type="gathers"):
    """Rows of W."""

    Ids = Input("int64 [n].")
    W = Input("Table [v, d].")
    Scale = Input("One element.", dispensable=True)
    Out = Output("[n, d].")
    axis = Attr(0, "Along which.")

    def expected_kernel_type(ctx: Any) -> Any:
        return ctx.kernel_type(dtype=ctx.dtype("W"))

    def infer_shape(ctx: Any) -> None:
        ctx.set_dim("Out", (ctx.dim("Ids")[0], ctx.dim("W")[1]))

    def infer_var_type(ctx: Any) -> None:
        ctx.set_dtype("Out", ctx.dtype("W"))


@kernel("gathers")
def gathers(state: State, *, rule: Rule) -> Any:
    assert state.Scale is None and state.Unknown is None and rule == Rule(0)
    return state.W.take(state.Ids, axis=rule.axis)


@pytest.mark.parametrize("prepared", [False, True])
def test_a_kernel_takes_a_group_of_slots_and_of_attributes(rack: PackManager, build: Build, prepared: bool) -> None:
    rack.register_op(Gather)
    rack.register_kernel(gathers)
    ids, table = np.array([2, 0]), np.arange(6, dtype=np.float32).reshape(3, 2)
    program = build({"x": ids, "w": table}, [("gathers", {"Ids": "x", "W": "w"}, {"Out": "y"})])
    exe = Executor(prepared=prepared)
    for _ in range(3):
        (y,) = exe.run(program, {"x": ids, "w": table}, ["y"], Scope())
        np.testing.assert_array_equal(y, table[ids])
    if prepared:
        assert "(State, (v" in exe.prepare(program.desc).block(0).plan(("y",)).source()


def test_a_group_must_have_what_the_op_has_not_as_a_default(rack: PackManager) -> None:
    class Wrong(NamedTuple):
        """Has no such slot."""

        W: Any
        Missing: Any

    def wrong(state: Wrong) -> None: ...

    wrong.__globals__["Wrong"] = Wrong
    rack.register_op(Gather)
    with pytest.raises(DefinitionError, match="'Missing' is no input slot"):
        bind_signature(wrong, rack.op_info("gathers").proto)
