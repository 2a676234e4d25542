"""Kernels that are prepared for new shapes before the first op of a row runs: when, with what, and what goes wrong."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from oprack.errors import OprackError
from oprack.kernel import KernelSpecialization, kernel
from oprack.kernel.specialization import JoinedSteps, StretchStep
from oprack.op import Input, OpDef, Output
from oprack.packs.manager import PackManager
from oprack.program import Program
from oprack.runtime import Executor
from oprack.tensor import LoDTensor, Scope

Build = Callable[..., Program]
X = np.array([[1.0, -2.0], [3.0, 4.0]], np.float32)
ROWS = np.arange(10, dtype=np.float32).reshape(5, 2)


class Log:
    """What happened, in order: ("prepare" or "run" or "rule", name, shape); and what preparing an op gives."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, tuple[int, ...]]] = []
        self.gives: dict[str, Callable[..., Any]] = {}

    def of(self, kind: str) -> list[str]:
        return [name for what, name, _ in self.events if what == kind]


LOG = Log()


@pytest.fixture(autouse=True)
def log() -> Log:
    LOG.__init__()  # type: ignore[misc]
    return LOG


def prepared(compute: Callable[..., Any], name: str) -> Callable[..., Any]:
    def run(*arrays: Any) -> Any:
        LOG.events.append(("run", name, arrays[0].shape))
        return compute(*arrays)

    def prepare(*arrays: Any) -> Any:
        LOG.events.append(("prepare", name, arrays[0].shape))
        like = LOG.gives.get(name, lambda *xs: np.empty_like(compute(*xs)))
        return like(*arrays)

    run.prepare = prepare  # type: ignore[attr-defined]
    return run


class Taken(OpDef, type="taken"):
    """Out = X + Y, of one shape."""

    X = Input("[n, d].")
    Y = Input("[n, d].")
    Out = Output("[n, d].")

    def infer_shape(ctx: Any) -> None:
        LOG.events.append(("rule", "taken", ctx.dim("X")))
        if ctx.dim("X") != ctx.dim("Y"):
            raise ValueError("two shapes")
        ctx.set_dim("Out", ctx.dim("X"))


@kernel("taken", library="fast", specialize=lambda call: prepared(np.add, "taken"))
def taken(X: Any, Y: Any) -> Any:
    return X + Y


class Seen(OpDef, type="seen"):
    """Out = X^T."""

    X = Input("[n, d].")
    Out = Output("[d, n].")

    def infer_shape(ctx: Any) -> None:
        ctx.set_dim("Out", ctx.dim("X")[::-1])


@kernel("seen", view=True)
def seen(X: Any) -> Any:
    return X.T


def _double(call: KernelSpecialization) -> Callable[..., Any]:
    return prepared(lambda x: x * x.dtype.type(call.attrs["factor"]), f"times {call.attrs['factor']:g}")


@kernel("double", library="fast", priority=2, specialize=_double)
def double_prepared(X: Any, *, factor: float) -> Any:
    return X * X.dtype.type(factor)


@pytest.fixture
def fast(rack: PackManager) -> PackManager:
    for definition in (Taken, Seen):
        rack.register_op(definition)
    for function in (double_prepared, taken, seen):
        rack.register_kernel(function)
    return rack


def times(x: str, out: str, factor: float) -> tuple[Any, ...]:
    return ("double", {"X": x}, {"Out": out}, {"factor": factor})


def added(x: str, y: str, out: str) -> tuple[Any, ...]:
    return ("taken", {"X": x, "Y": y}, {"Out": out})


ROW = [times("x", "a", 2.0), times("a", "b", 3.0), added("a", "b", "y")]


def run(exe: Executor, program: Program, x: Any, fetched: Sequence[str] = ("y",)) -> list[Any]:
    found: list[Any] = exe.run(program, {"x": x}, list(fetched), Scope())
    return found


def test_a_row_is_prepared_before_its_first_op_runs(fast: PackManager, build: Build, log: Log) -> None:
    program, exe = build({"x": X}, ROW), Executor()
    run(exe, program, X)
    log.events.clear()
    np.testing.assert_array_equal(run(exe, program, ROWS)[0], 8 * ROWS)
    assert [(kind, name) for kind, name, _ in log.events] == [
        *(("prepare", "times 2"), ("prepare", "times 3"), ("rule", "taken"), ("prepare", "taken")),
        *(("run", "times 2"), ("run", "times 3"), ("run", "taken")),
    ]
    assert all(shape == (5, 2) for *_, shape in log.events)


def test_shapes_that_were_met_are_not_prepared_again(fast: PackManager, build: Build, log: Log) -> None:
    program, exe = build({"x": X}, ROW), Executor()
    log.events.clear()
    for x in (X, X, ROWS, ROWS, X):
        np.testing.assert_array_equal(run(exe, program, x)[0], 8 * x)
    assert log.of("prepare") == ["times 2", "times 3", "taken"]
    assert log.of("rule") == ["taken"] * 2


def test_what_a_library_cant_tell_ends_the_row(fast: PackManager, build: Build, log: Log) -> None:
    log.gives["times 3"] = lambda x: None
    program, exe = build({"x": X}, ROW), Executor()
    for x in (X, ROWS):
        np.testing.assert_array_equal(run(exe, program, x)[0], 8 * x)
    assert log.of("prepare") == ["times 2", "times 3"]


def _fail(*arrays: Any) -> Any:
    raise RuntimeError("prepare failed")


@pytest.mark.parametrize("give", [_fail, lambda x: np.empty((1, 7), np.float32), lambda x: (x, x, x)])
def test_what_goes_wrong_there_is_no_concern_of_the_run(
    fast: PackManager, build: Build, log: Log, give: Callable[..., Any]
) -> None:
    log.gives["times 3"] = give
    program, exe = build({"x": X}, ROW), Executor()
    for x in (X, ROWS, ROWS):
        np.testing.assert_array_equal(run(exe, program, x)[0], 8 * x)
    assert "taken" not in log.of("prepare"), "a rule was told of a shape that nobody promised"


def test_rules_refuse_shapes_before_a_library_sees_them(fast: PackManager, build: Build, log: Log) -> None:
    other = LoDTensor(np.ones((2, 2), np.float32))
    ops = [times("x", "a", 2.0), added("a", "z", "b"), times("b", "y", 2.0)]
    program, exe = build({"x": X, "z": other}, ops), Executor()
    feed = {"x": X, "z": other}
    exe.run(program, feed, ["y"], Scope())
    log.events.clear()
    with pytest.raises((OprackError, ValueError), match="two shapes"):
        exe.run(program, feed | {"x": ROWS}, ["y"], Scope())
    assert log.of("prepare") == ["times 2"]


def test_an_op_on_its_own_is_not_prepared(fast: PackManager, build: Build, log: Log) -> None:
    ops = [times("x", "a", 2.0), ("join", {"X": ["a"]}, {"Out": "b"}), times("b", "y", 3.0)]
    program, exe = build({"x": X}, ops), Executor()
    for x in (X, ROWS):
        np.testing.assert_array_equal(run(exe, program, x)[0], 6 * x)
    assert not log.of("prepare")


def test_views_are_taken_on_the_way(fast: PackManager, build: Build, log: Log) -> None:
    ops = [times("x", "a", 2.0), ("seen", {"X": "a"}, {"Out": "b"}), times("b", "y", 3.0)]
    program, exe = build({"x": X}, ops), Executor()
    for x in (X, ROWS):
        np.testing.assert_array_equal(run(exe, program, x)[0], 6 * x.T)
    assert [e for e in log.events if e[0] == "prepare"] == [
        ("prepare", "times 2", (5, 2)),
        ("prepare", "times 3", (2, 5)),
    ]


def test_memory_that_nothing_reads_is_free_while_the_rest_is_prepared(
    fast: PackManager, build: Build, log: Log
) -> None:
    held: list[Any] = []

    def give(x: Any) -> Any:
        made = np.empty_like(x)
        held.append(weakref.ref(made))
        return made

    for factor in (2, 3, 5):
        log.gives[f"times {factor}"] = give
    alive: list[list[bool]] = []
    log.gives["times 7"] = lambda x: alive.append([r() is not None for r in held])
    ops = [times("x", "a", 2.0), times("a", "b", 3.0), times("b", "c", 5.0), times("c", "y", 7.0)]
    program, exe = build({"x": X}, ops), Executor()
    for x in (X, ROWS):
        run(exe, program, x)
    assert alive == [[False, False, True]]


class Maker:
    """Joins ops to one function that computes nothing, of which only the first call for shapes matters."""

    def join(self, steps: Sequence[StretchStep], entering: int, leaving: Sequence[int]) -> JoinedSteps:
        def joined(*values: Any) -> None:
            LOG.events.append(("joined", str(len(steps)), values[0].shape))

        joined.begin = lambda *values: Begun(values[0].shape)  # type: ignore[attr-defined]
        return joined


class Begun:
    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        LOG.events.append(("begin", "", shape))

    def advance(self) -> None:
        LOG.events.append(("advance", "", self.shape))

    def __call__(self, *values: Any) -> None:
        LOG.events.append(("finish", "", self.shape))

    def close(self) -> None:
        LOG.events.append(("close", "", self.shape))


def joinable(call: KernelSpecialization) -> Callable[..., Any]:
    function: Any = prepared(lambda x: 2 * x, "twice")
    function.stretches = MAKER
    return function  # type: ignore[no-any-return]


MAKER = Maker()


class Twice(OpDef, type="twice"):
    """Out = 2 X."""

    X = Input("[n, d].")
    Out = Output("[n, d].")

    def infer_shape(ctx: Any) -> None:
        ctx.set_dim("Out", ctx.dim("X"))


@kernel("twice", library="fast", specialize=joinable)
def twice(X: Any) -> Any:
    return 2 * X


def fail(error: type[BaseException]) -> Callable[..., Any]:
    def raises(*arrays: Any) -> Any:
        raise error("as the test wants it")

    return raises


@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt])
def test_a_stretch_hears_of_each_op_that_is_prepared(
    rack: PackManager, build: Build, log: Log, error: type[BaseException] | None
) -> None:
    rack.register_op(Twice)
    rack.register_kernel(twice)
    ops = [("twice", {"X": a}, {"Out": b}) for a, b in ("xa", "ab", "by")]
    program, exe = build({"x": X}, ops), Executor()
    for _ in range(2):
        exe.run(program, {"x": X}, ["y"], Scope())
    assert not log.of("begin"), "the shapes are known"
    log.events.clear()
    if error is not None:
        log.gives["twice"] = lambda x: fail(error)() if len(log.of("prepare")) == 2 else np.empty_like(x)
    if error is KeyboardInterrupt:
        with pytest.raises(KeyboardInterrupt):
            exe.run(program, {"x": ROWS}, ["y"], Scope())
    else:
        (y,) = exe.run(program, {"x": ROWS}, ["y"], Scope())
        np.testing.assert_array_equal(y, 8 * ROWS)
    kinds = [kind for kind, *_ in log.events if kind in ("begin", "prepare", "advance", "close", "finish", "joined")]
    whole = ["begin", *["prepare", "advance"] * 3, "finish"]
    assert kinds == (whole if error is None else ["begin", "prepare", "advance", "prepare", "close"])
