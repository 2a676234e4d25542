"""Neighbouring ops whose library runs them by one call: when a plan asks it to, and what it does where it declines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from oprack.kernel import KernelSpecialization, kernel
from oprack.kernel.specialization import JoinedSteps, StretchStep
from oprack.op import Input, OpDef, Output
from oprack.packs.manager import PackManager
from oprack.program import Program
from oprack.runtime import Executor
from oprack.tensor import LoDTensor, Scope

Build = Callable[..., Program]
X = np.array([[1.0, -2.0], [3.0, 4.0]], np.float32)


@dataclass
class Library:
    """Joins what it is offered, and runs the steps one after the other.

    Attributes:
        offered: Op types of each stretch, how many arrays enter and which numbers leave.
        runs: For each call of a stretch the shapes that entered.
        alone: Names of the functions that the plan called itself.
        declines: Whether stretches decline.
        joins: Whether it makes any.
    """

    offered: list[tuple[list[str], int, list[int]]] = field(default_factory=list)
    runs: list[list[tuple[int, ...]]] = field(default_factory=list)
    alone: list[str] = field(default_factory=list)
    declines: bool = False
    joins: bool = True

    def join(self, steps: Sequence[StretchStep], entering: int, leaving: Sequence[int]) -> JoinedSteps | None:
        self.offered.append(([s.op_type for s in steps], entering, list(leaving)))
        if not self.joins:
            return None

        def run(*values: Any) -> Any:
            assert len(values) == entering
            self.runs.append([v.shape for v in values])
            if self.declines:
                return None
            arrays = list(values)
            for step in steps:
                given = [
                    [arrays[i] for i in a] if isinstance(a, list) else arrays[a] for a in step.arguments if a != []
                ]
                made = step.function(*given) if step.is_view else step.function(*given, counted=False)
                arrays += made if step.results > 1 else [made]
            return [arrays[i] for i in leaving]

        return run


LIBRARY = Library()


@pytest.fixture(autouse=True)
def library() -> Library:
    LIBRARY.__init__()  # type: ignore[misc]
    return LIBRARY


def part_of_stretches(compute: Callable[..., Any], name: str) -> Callable[..., Any]:
    def run(*arrays: Any, counted: bool = True) -> Any:
        if counted:
            LIBRARY.alone.append(name)
        return compute(*arrays)

    run.stretches = LIBRARY  # type: ignore[attr-defined]
    return run


def _double(call: KernelSpecialization) -> Callable[..., Any]:
    return part_of_stretches(lambda x: x * x.dtype.type(call.attrs["factor"]), "double")


@kernel("double", library="fast", priority=2, specialize=_double)
def double_joined(X: Any, *, factor: float) -> Any:
    return X * X.dtype.type(factor)


@kernel("join", library="fast", priority=2, specialize=lambda call: part_of_stretches(np.concatenate, "join"))
def join_joined(X: list[Any]) -> Any:
    return np.concatenate(X)


class Ends(OpDef, type="ends"):
    """Low, High = the rows of X before and behind the middle."""

    X = Input("[2 n, d].")
    Low = Output("[n, d].")
    High = Output("[n, d].")

    def infer_shape(ctx: Any) -> None:
        n, *rest = ctx.dim("X")
        for slot in ("Low", "High"):
            ctx.set_dim(slot, (n // 2, *rest))


def _halves(x: Any) -> tuple[Any, Any]:
    middle = len(x) // 2
    return x[:middle].copy(), x[middle:].copy()


@kernel("ends", library="fast", specialize=lambda call: part_of_stretches(_halves, "ends"))
def ends(X: Any) -> tuple[Any, Any]:
    return _halves(X)


class Positive(OpDef, type="positive"):
    """Out = the rows of X whose sum is above 0: how many, only the kernel knows."""

    X = Input("[n, d].")
    Out = Output("[m, d].")

    def infer_shape(ctx: Any) -> None:
        ctx.set_dim("Out", (-1, ctx.dim("X")[1]))


@kernel("positive")
def positive(X: Any) -> Any:
    return X[X.sum(axis=1) > 0]


@pytest.fixture
def fast(rack: PackManager) -> PackManager:
    for definition in (Ends, Positive):
        rack.register_op(definition)
    for function in (double_joined, join_joined, ends, positive):
        rack.register_kernel(function)
    return rack


def doubled(x: str, out: str, factor: float = 2.0) -> tuple[Any, ...]:
    return ("double", {"X": x}, {"Out": out}, {"factor": factor})


def run(exe: Executor, program: Program, x: Any, fetched: Sequence[str] = ("y",)) -> list[Any]:
    found: list[Any] = exe.run(program, {"x": x}, list(fetched), Scope())
    return found


def source(exe: Executor, program: Program, fetched: Sequence[str] = ("y",)) -> str:
    return exe.prepare(program.desc).block(0).plan(tuple(fetched)).source()


def test_ops_in_a_row_are_one_call_from_the_second_run_on(fast: PackManager, build: Build, library: Library) -> None:
    program, exe = build({"x": X}, [doubled("x", "a"), doubled("a", "b", 3.0), doubled("b", "y")]), Executor()
    for _ in range(3):
        (y,) = run(exe, program, X)
        np.testing.assert_array_equal(y, 12 * X)
    assert library.offered == [(["double"] * 3, 1, [3])]
    assert library.runs == [[(2, 2)]] * 2 and not library.alone
    assert "# 3 ops in one call, or else one by one" in source(exe, program)


def test_shapes_that_are_new_go_op_by_op_first(fast: PackManager, build: Build, library: Library) -> None:
    program, exe = build({"x": X}, [doubled("x", "a"), doubled("a", "y")]), Executor()
    for x in (X, X, X[:1], X[:1], X):
        np.testing.assert_array_equal(run(exe, program, x)[0], 4 * x)
    assert library.runs == [[(2, 2)], [(1, 2)], [(2, 2)]]
    assert library.alone == ["double"] * 2


@pytest.mark.parametrize("declines", [True, False])
def test_what_is_read_later_leaves_and_all_else_is_freed(
    fast: PackManager, build: Build, library: Library, declines: bool
) -> None:
    library.declines = declines
    ops = [doubled("x", "a"), ("join", {"X": ["a", "x", "a"]}, {"Out": "b"}), doubled("b", "y"), doubled("a", "unread")]
    program, exe = build({"x": X}, ops), Executor()
    for _ in range(3):
        a, y = run(exe, program, X, ("a", "y"))
        np.testing.assert_array_equal(a, 2 * X)
        np.testing.assert_array_equal(y, np.concatenate([4 * X, 2 * X, 4 * X]))
    assert library.offered == [(["double", "join", "double", "double"], 1, [1, 3])]
    assert "v1, v3, = joined\n        del v0, joined\n" in source(exe, program, ("a", "y"))
    assert len(library.runs) == 2 and len(library.alone) == (8 if declines else 0)


def test_several_results_of_an_op(fast: PackManager, build: Build, library: Library) -> None:
    ops = [("ends", {"X": "x"}, {"Low": "low", "High": "high"}), doubled("high", "y")]
    program, exe = build({"x": X}, ops), Executor()
    for _ in range(3):
        low, y = run(exe, program, X, ("low", "y"))
        np.testing.assert_array_equal(low, X[:1])
        np.testing.assert_array_equal(y, 2 * X[1:])
    assert library.offered == [(["ends", "double"], 1, [1, 3])] and len(library.runs) == 2


def test_another_op_in_between_ends_a_stretch(fast: PackManager, build: Build, library: Library) -> None:
    ops = [doubled("x", "a"), doubled("a", "b"), ("positive", {"X": "b"}, {"Out": "c"}), doubled("c", "y")]
    program, exe = build({"x": X}, ops), Executor()
    for _ in range(3):
        np.testing.assert_array_equal(run(exe, program, X)[0], 8 * X[1:])
    assert library.offered == [(["double", "double"], 1, [2])], "a single op is not worth it"


def flat(x: str, out: str) -> tuple[Any, ...]:
    return ("flat", {"X": x}, {"Out": out})


def test_views_between_the_ops_of_a_library_are_part_of_a_stretch(
    fast: PackManager, build: Build, library: Library
) -> None:
    ops = [flat("x", "a"), doubled("a", "b"), flat("x", "v"), flat("b", "c"), doubled("c", "d"), flat("d", "y")]
    program, exe = build({"x": X}, ops), Executor()
    for x in (X, X, X, X[:1], X[:1]):
        v, y = run(exe, program, x, ("v", "y"))
        np.testing.assert_array_equal(v, x.reshape(-1))
        np.testing.assert_array_equal(y, 4 * x.reshape(-1))
    # of a and of x, which a view before the stretch has made, and behind it y is one of d
    assert library.offered == [(["double", "flat", "flat", "double"], 2, [3, 5])]
    assert library.runs == [[(4,), (2, 2)]] * 2 + [[(2,), (1, 2)]] and len(library.alone) == 2


def test_a_view_of_another_dtype_ends_a_stretch(fast: PackManager, build: Build, library: Library) -> None:
    ops = [doubled("x", "a"), doubled("a", "b"), flat("n", "m"), doubled("b", "y")]
    program, exe = build({"x": X, "n": np.arange(6).reshape(2, 3)}, ops), Executor()
    for _ in range(3):
        feed = {"x": X, "n": np.arange(6).reshape(2, 3)}
        m, y = exe.run(program, feed, ["m", "y"], Scope())
        np.testing.assert_array_equal(m, np.arange(6))
        np.testing.assert_array_equal(y, 8 * X)
    assert [names for names, *_ in library.offered] == [["double", "double"]]


def test_a_library_that_joins_nothing(fast: PackManager, build: Build, library: Library) -> None:
    library.joins = False
    program, exe = build({"x": X}, [doubled("x", "a"), doubled("a", "y")]), Executor()
    for _ in range(3):
        np.testing.assert_array_equal(run(exe, program, X)[0], 4 * X)
    assert "joined" not in source(exe, program) and library.alone == ["double"] * 4


def test_shapes_that_only_a_kernel_knows_have_to_be_met_as_well(
    fast: PackManager, build: Build, library: Library
) -> None:
    ops = [("positive", {"X": "x"}, {"Out": "p"}), doubled("p", "a"), doubled("a", "y")]
    program, exe = build({"x": X}, ops), Executor()
    joined = []
    for x in (X, X, X, -X, -X, X):
        np.testing.assert_array_equal(run(exe, program, x)[0], 4 * x[x.sum(axis=1) > 0])
        joined.append(len(library.runs))
        library.runs.clear()
    # the first run is recorded, and what it returned is met by the second; all return one row
    assert joined == [0, 0, 1, 1, 1, 1]
    assert "if met is not None and (joined := " in source(exe, program)


def test_lod_goes_through_a_stretch(fast: PackManager, build: Build) -> None:
    x = LoDTensor(X, [[0, 1, 2]])
    program, exe = build({"x": x}, [doubled("x", "a"), doubled("a", "y")]), Executor()
    for _ in range(3):
        (y,) = exe.run(program, {"x": x}, ["y"], Scope(), return_numpy=False)
        assert y.lod == [[0, 1, 2]]
        np.testing.assert_array_equal(y.array, 4 * X)


def test_a_stretch_that_fails_is_explained_by_its_ops(fast: PackManager, build: Build, library: Library) -> None:
    program, exe = build({"x": X}, [doubled("x", "a"), doubled("a", "y")]), Executor()
    run(exe, program, X)
    library.runs = None  # type: ignore[assignment]
    with pytest.raises(
        Exception, match="op double failed: AttributeError: 'NoneType' object has no attribute 'append'"
    ):
        run(exe, program, X)


def test_the_reference_path_sees_op_by_op(fast: PackManager, build: Build, library: Library) -> None:
    program = build({"x": X}, [doubled("x", "a"), doubled("a", "y")])
    for _ in range(3):
        np.testing.assert_array_equal(run(Executor(prepared=False), program, X)[0], 4 * X)
    assert not library.offered
