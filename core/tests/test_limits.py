"""Limits of memory and of rounds: off by default, refused before memory is taken, and on every path."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import oprack
import pytest
from oprack.errors import InvalidArgumentError, LoopLimitError, MemoryLimitError
from oprack.io import save_inference_model
from oprack.kernel import kernel
from oprack.op import REQUIRED, Attr, InferShapeFacet, Input, OpDef, OpMaker, Output
from oprack.packs.manager import PackManager
from oprack.program import Program
from oprack.runtime import Executor
from oprack.runtime.operator import OperatorBase
from oprack.runtime.prepared import run_block
from oprack.tensor import LoDTensor, Scope
from oprack.types import AttrType, VarType

Build = Callable[..., Program]
X = np.ones((4, 5), np.float32)
RAN: list[int] = []


class Filled(OpDef, type="filled"):
    """Out = as many ones as N says, or the attribute n where N is absent."""

    N = Input("One integer.", dispensable=True)
    Out = Output("float64 [n].")
    n = Attr(1, "How many.")

    def infer_shape(ctx: Any) -> None:
        value = ctx.value("N") if ctx.has_input("N") else None
        ctx.set_dim("Out", (int(value.item()) if value is not None else -1 if ctx.has_input("N") else ctx.attr("n"),))

    def infer_var_type(ctx: Any) -> None:
        ctx.set_dtype("Out", "float64")

    def expected_kernel_type(ctx: Any) -> Any:
        return ctx.kernel_type(dtype="float64")


@kernel("filled")
def filled(N: Any = None, *, n: int) -> Any:
    count = n if N is None else int(N.item())
    RAN.append(count)
    return np.ones(count)


class Repeat(OpMaker):
    """Runs its block n times."""

    X = Input("Any tensor.")
    Out = Output("As X.")
    n = Attr(1, "How often.")
    sub_block = Attr(REQUIRED, "The block.", type=AttrType.BLOCK)


class RepeatRule(InferShapeFacet):
    """The block's ops set the shapes."""

    def __call__(self, ctx: Any) -> None:
        """Nothing to set."""


class RepeatOp(OperatorBase):
    """repeat."""

    def run_impl(self, scope: Scope, run: Any) -> None:
        for _ in range(self.attrs["n"]):
            run_block(run, self.attrs["sub_block"], scope.new_scope())


@pytest.fixture(autouse=True)
def ops(rack: PackManager) -> None:
    RAN.clear()
    rack.register_op(Filled)
    rack.register_kernel(filled)
    rack.register_operator("repeat", Repeat, RepeatRule, RepeatOp)


@pytest.fixture
def loop(build: Build) -> Program:
    """y = 2 ** 6 x, in two loops of three rounds."""
    program = build({"x": X}, [("double", {"X": "x"}, {"Out": "y"}, {"factor": 1.0})])
    root = program.global_block()
    inner = program.desc.append_block(root)
    inner.append_op("double", {"X": "y"}, {"Out": "y"})
    for _ in range(2):
        root.append_op("repeat", {"X": "y"}, {"Out": "y"}, {"n": 3}).set_attr("sub_block", 1, AttrType.BLOCK)
    return program


@pytest.mark.parametrize("prepared", [False, True])
def test_an_op_that_wants_more_than_the_limit_is_refused_before_its_kernel_runs(build: Build, prepared: bool) -> None:
    program = build({"n": np.array([1])}, [("filled", {"N": "n"}, {"Out": "y"})])
    exe = Executor(prepared=prepared, memory_limit=800)
    for n in (100, 10**6, 100, 101, 7):
        if n * 8 <= 800:
            assert exe.run(program, {"n": np.array([n])}, ["y"], Scope())[0].shape == (n,)
            continue
        with pytest.raises(MemoryLimitError, match=rf"op filled: its outputs Out\[0\] \[{n}\] take {8 * n} bytes; the"):
            exe.run(program, {"n": np.array([n])}, ["y"], Scope())
    assert max(RAN) == 100
    assert Executor(prepared=prepared).run(program, {"n": np.array([101])}, ["y"], Scope())[0].shape == (101,)


@pytest.mark.parametrize("prepared", [False, True])
def test_shapes_that_grow_meet_the_limit(build: Build, prepared: bool) -> None:
    program = build({"x": X}, [("double", {"X": "x"}, {"Out": "y"}), ("double", {"X": "y"}, {"Out": "z"})])
    exe = Executor(prepared=prepared, memory_limit=X.nbytes)
    for rows in (4, 3, 5, 4, 5, 1):
        x = np.ones((rows, 5), np.float32)
        if rows <= 4:
            assert (exe.run(program, {"x": x}, ["z"], Scope())[0] == 4).all()
            continue
        with pytest.raises(MemoryLimitError, match=r"op double: its outputs Out\[0\] \[5, 5\] take 100 bytes.*is 80"):
            exe.run(program, {"x": x}, ["z"], Scope())


def test_a_dtype_that_the_program_declares_too_small_does_not_help(build: Build) -> None:
    program = build({}, [("filled", {}, {"Out": "y"}, {"n": 200})])
    program.global_block().vars["y"].dtype = VarType.BOOL
    with pytest.raises(MemoryLimitError, match="1600 bytes; the limit is 1000"):
        Executor(memory_limit=1000).run(program, {}, ["y"], Scope())


def test_eager_calls_and_executors_take_the_limit_of_the_environment(
    rack: PackManager, monkeypatch: pytest.MonkeyPatch, build: Build
) -> None:
    monkeypatch.setenv("OPRACK_MEMORY_LIMIT", "800")
    F = oprack.functional
    for n in (10, 100):
        assert F.filled(oprack.to_tensor(np.array([n]))).shape == (n,)
    with pytest.raises(MemoryLimitError, match="OPRACK_MEMORY_LIMIT"):
        F.filled(oprack.to_tensor(np.array([10**6])))
    with pytest.raises(MemoryLimitError):
        Executor().run(build({}, [("filled", {}, {"Out": "y"}, {"n": 101})]), {}, ["y"], Scope())
    monkeypatch.setenv("OPRACK_MEMORY_LIMIT", "1 GB")
    with pytest.raises(InvalidArgumentError, match="OPRACK_MEMORY_LIMIT is '1 GB'; expected a number of at least 0"):
        Executor()


@pytest.mark.parametrize("prepared", [False, True])
def test_rounds_of_all_loops_of_a_run_count(loop: Program, prepared: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    exe = Executor(prepared=prepared, loop_limit=6)
    for _ in range(3):
        assert (exe.run(loop, {"x": X}, ["y"], Scope())[0] == 64).all()
    monkeypatch.setenv("OPRACK_LOOP_LIMIT", "5")
    for tight in (Executor(prepared=prepared, loop_limit=5), Executor(prepared=prepared)):
        for _ in range(2):
            with pytest.raises(LoopLimitError, match=r"(?s)block 1 was to run as round 6.*is 5.*loop_limit.*op repeat"):
                tight.run(loop, {"x": X}, ["y"], Scope())
        tight.clone()


def test_predictors_and_their_clones_have_the_limits_of_their_config(loop: Program, tmp_path: Path) -> None:
    save_inference_model(tmp_path / "m", loop, ["x"], ["y"], Scope())
    config = oprack.inference.Config(f"{tmp_path / 'm'}.pdmodel", f"{tmp_path / 'm'}.pdiparams")
    config.set_loop_limit(5)
    assert config.loop_limit() == 5 and "loop_limit" in config.summary()
    for predictor in (first := oprack.inference.create_predictor(config), first.clone()):
        with pytest.raises(LoopLimitError):
            predictor.run([X])
    config.set_loop_limit(None)
    config.set_memory_limit(X.nbytes)
    predictor = oprack.inference.create_predictor(config)
    assert (predictor.run([X])[0] == 64).all()  # type: ignore[index]
    with pytest.raises(MemoryLimitError):
        predictor.run([np.ones((9, 5), np.float32)])


@pytest.mark.parametrize("bad", [-1, 2.5, "1", True])
def test_limits_are_numbers(bad: Any) -> None:
    for call in (
        lambda: Executor(memory_limit=bad),
        lambda: Executor(loop_limit=bad),
        lambda: oprack.inference.Config().set_memory_limit(bad),
        lambda: oprack.inference.Config().set_loop_limit(bad),
    ):
        with pytest.raises(InvalidArgumentError, match=r"limit is .*; expected a number of at least 0, or None"):
            call()


def test_a_tensor_that_is_fed_is_not_counted(build: Build) -> None:
    program = build({"x": X}, [("filled", {}, {"Out": "y"}, {"n": 3})])
    (x,) = Executor(memory_limit=100).run(program, {"x": LoDTensor(np.ones((99, 5), np.float32))}, ["x"], Scope())
    assert x.shape == (99, 5)
