"""oprack.reference() and OPRACK_REFERENCE=1: breakpoints in kernels are met in every call, and numbers are the same."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import functional as F
from oprack import layers, parallel
from oprack.inference import Config, create_predictor
from oprack.interpreter.modes import current_mode
from oprack.io import save_inference_model
from oprack.kernel import KernelSpecialization, kernel
from oprack.packs.manager import PackManager, default_manager
from oprack.runtime import create_op
from oprack.testing.worlds import ThreadWorld

ROUNDS = 5
X = np.random.default_rng(0).standard_normal((2, 3, 12, 12)).astype("float32")
W = np.random.default_rng(1).standard_normal((4, 3, 3, 3)).astype("float32")
Way = Callable[[], Any]


class Breakpoint:
    """Counts how often functions are entered, as a breakpoint in their first line would stop."""

    def __init__(self, functions: Sequence[Any]) -> None:
        self.count, self._codes = 0, {f.__code__ for f in functions}

    def __enter__(self) -> Breakpoint:
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        self.count += event == "call" and frame.f_code in self._codes


def plain_kernels(op_type: str) -> list[Any]:
    kernels = [k.function for k in default_manager().kernel_map(op_type, "cpu") if k.library == "plain"]
    assert kernels
    return kernels


def in_a_block(work: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    with oprack.reference():
        work()


def by_the_environment(work: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread looks at the variable when it runs its first op."""
    monkeypatch.setenv("OPRACK_REFERENCE", "1")
    errors: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]


SWITCHES = pytest.mark.parametrize("switch", [in_a_block, by_the_environment])


# Ways to run an op, each of which returns what to call again and again, and what it computes --------------------------
def eager(call: Callable[..., Any], arrays: Sequence[np.ndarray], tmp_path: Path) -> Way:
    tensors = [oprack.to_tensor(a) for a in arrays]
    return lambda: call(*tensors).numpy()


def eager_in_no_grad(call: Callable[..., Any], arrays: Sequence[np.ndarray], tmp_path: Path) -> Way:
    run = eager(call, arrays, tmp_path)
    return oprack.no_grad()(run)


def backward(call: Callable[..., Any], arrays: Sequence[np.ndarray], tmp_path: Path) -> Way:
    def run() -> Any:
        tensors = [oprack.to_tensor(a, requires_grad=True) for a in arrays]
        y = call(*tensors)
        y.backward(oprack.to_tensor(np.ones(y.shape, "float32")))
        return tensors[-1].grad.numpy()

    return run


def jit(call: Callable[..., Any], arrays: Sequence[np.ndarray], tmp_path: Path) -> Way:
    return eager(oprack.jit(call), arrays, tmp_path)


def backward_of_jit(call: Callable[..., Any], arrays: Sequence[np.ndarray], tmp_path: Path) -> Way:
    return backward(oprack.jit(call), arrays, tmp_path)


def executor(call: Callable[..., Any], arrays: Sequence[np.ndarray], tmp_path: Path) -> Way:
    traced = oprack.to_program(call, [oprack.InputSpec(a.shape, str(a.dtype)) for a in arrays])
    runner, feed = oprack.Executor(), dict(zip(traced.feed_names, arrays, strict=True))
    return lambda: runner.run(traced.program, feed, traced.fetch_names, oprack.Scope())[0]


def predictor(call: Callable[..., Any], arrays: Sequence[np.ndarray], tmp_path: Path) -> Way:
    traced = oprack.to_program(call, [oprack.InputSpec(a.shape, str(a.dtype)) for a in arrays])
    save_inference_model(tmp_path / "m", traced.program, traced.feed_names, traced.fetch_names, traced.scope)
    config = Config(str(tmp_path / "m.pdmodel"), str(tmp_path / "m.pdiparams"))
    served = create_predictor(config)
    return lambda: served.run(list(arrays))[0]


FORWARD = [eager, eager_in_no_grad, backward, jit, backward_of_jit, executor, predictor]
CALLS = {
    "relu": (F.relu, [X]),
    "conv2d": (lambda x, w: F.relu(F.conv2d(x, w)), [X, W]),  # a pass of a library joins the two
}


def rounds(make: Callable[..., Way], given: Any, kernels: Sequence[Any], tmp_path: Path) -> tuple[list[Any], int]:
    """(what each of several calls computes, how often one of these functions was entered)."""
    run = make(*given, tmp_path)
    with Breakpoint(kernels) as met:
        results = [run() for _ in range(ROUNDS)]
    return results, met.count


def check(make: Any, given: Any, kernels: Sequence[Any], tmp_path: Path, switch: Any, monkeypatch: Any) -> int:
    """Hold rounds with the switch against rounds without it: how often those without meet the kernels."""
    expected, _ = rounds(make, given, kernels, tmp_path)
    _, warm = rounds(make, given, kernels, tmp_path)
    found: list[Any] = []
    switch(lambda: found.append(rounds(make, given, kernels, tmp_path)), monkeypatch)
    [(results, count)] = found
    assert count == ROUNDS
    for a, b in zip(results, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-4)
    monkeypatch.undo()
    again, count = rounds(make, given, kernels, tmp_path)
    assert count == warm
    for a, b in zip(again, expected, strict=True):
        np.testing.assert_array_equal(a, b)
    return warm


@SWITCHES
@pytest.mark.parametrize("make", FORWARD)
@pytest.mark.parametrize("op_type", CALLS)
def test_kernels_of_the_pack_nn_are_met_each_time(
    op_type: str, make: Any, switch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_backward = make in (backward, backward_of_jit)
    kernels = plain_kernels(f"{op_type}_grad" if is_backward else op_type)
    without = check(make, CALLS[op_type], kernels, tmp_path, switch, monkeypatch)
    assert without < ROUNDS or (op_type, is_backward) == ("relu", True)  # the only one that nothing stands for


def test_the_numbers_are_those_of_numpy() -> None:
    with oprack.reference():
        x = oprack.to_tensor(X, requires_grad=True)
        for _ in range(3):
            y = oprack.relu(x)
            y.sum().backward()
    np.testing.assert_array_equal(y.numpy(), np.maximum(X, 0))
    np.testing.assert_array_equal(x.grad.numpy(), 3 * (X > 0))


@SWITCHES
def test_the_kernel_of_an_optimizer_is_met_in_each_step(switch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def steps(counts: list[int]) -> np.ndarray:
        p = oprack.to_tensor(np.ones(3, "float32"), requires_grad=True)
        adam = oprack.optimizer.Adam(0.1, parameters=[p])
        for _ in range(2):  # what is prepared before has no say
            with Breakpoint(plain_kernels("adam")) as met:
                for _ in range(ROUNDS):
                    (p * p).sum().backward()
                    adam.step()
                    adam.clear_grad()
            counts.append(met.count)
        return p.numpy()

    expected = steps([])
    counts: list[int] = []
    found: list[np.ndarray] = []
    switch(lambda: found.append(steps(counts)), monkeypatch)
    assert counts == [ROUNDS, ROUNDS]
    np.testing.assert_allclose(found[0], expected, rtol=1e-6)


def times_factor(s: KernelSpecialization) -> Callable[[Any], Any]:
    factor = s.attrs["factor"]
    return lambda x: x * np.float32(factor)


@kernel("double", priority=1, specialize=times_factor)
def specialized(X: Any, *, factor: float) -> Any:
    return X * np.float32(factor)


@kernel("double_grad", priority=1, specialize=times_factor)
def specialized_grad(Out_grad: Any, *, factor: float) -> Any:
    return Out_grad * np.float32(factor)


@pytest.mark.parametrize("make", [eager, backward, jit, executor])
@SWITCHES
def test_kernels_of_a_small_pack_are_met_each_time(
    rack: PackManager, make: Any, switch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rack.register_kernel(specialized)
    rack.register_kernel(specialized_grad)
    kernel = specialized_grad if make is backward else specialized
    assert check(make, (lambda x: F.double(x, factor=3.0), [X]), [kernel], tmp_path, switch, monkeypatch) <= 1


# What was made before -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("make", [eager, jit, executor])
def test_what_was_warm_before_stops_as_well(make: Any, tmp_path: Path) -> None:
    run = make(*CALLS["conv2d"], tmp_path)
    expected = [run() for _ in range(3)][-1]
    with oprack.reference(), Breakpoint(plain_kernels("conv2d")) as met:
        results = [run() for _ in range(ROUNDS)]
    assert met.count == ROUNDS
    np.testing.assert_allclose(results[-1], expected, rtol=1e-5, atol=1e-4)
    with Breakpoint(plain_kernels("conv2d")) as met:
        np.testing.assert_array_equal(run(), expected)
    assert met.count == 0, "outside again by the library"


def test_a_predictor_made_before_runs_what_its_passes_left(tmp_path: Path) -> None:
    run = predictor(*CALLS["conv2d"], tmp_path)
    expected = [run() for _ in range(3)][-1]
    with oprack.reference():
        np.testing.assert_allclose(run(), expected, rtol=1e-5, atol=1e-4)


# Modes ----------------------------------------------------------------------------------------------------------------
def test_it_goes_with_other_modes() -> None:
    x = oprack.to_tensor(X)
    with oprack.Profiler() as profiler, oprack.reference(), oprack.deterministic():
        assert repr(current_mode()) == "<Mode grad deterministic reference in _Timing>"
        for _ in range(3):
            oprack.relu(x)
    assert [(row["op"], row["calls"]) for row in profiler.by_op()] == [("relu", 3)]
    with oprack.reference(), oprack.reference():
        pass
    assert repr(current_mode()) == "<Mode grad>"

    @oprack.reference()
    def decorated() -> str:
        return repr(current_mode())

    assert decorated() == "<Mode grad reference>"


def test_other_threads_run_as_before() -> None:
    modes: list[Any] = []
    with oprack.reference():
        thread = threading.Thread(target=lambda: modes.append(current_mode().reference))
        thread.start()
        thread.join()
    assert modes == [False]


def test_an_op_in_place_writes_to_the_memory_that_views_show() -> None:
    for _ in range(3):
        with oprack.reference():
            x = oprack.to_tensor(np.float32([[1, -2], [3, -4]]))
            view = F.reshape2(x, shape=[4])
            F.relu(x, in_place=True)
            np.testing.assert_array_equal(view.numpy(), [1, 0, 3, 0])


def test_one_op_by_itself_runs_by_its_plain_kernel() -> None:
    op, scope = create_op("conv2d", {"Input": "x", "Filter": "w"}, {"Output": "y"}), oprack.Scope()
    scope.var("x").set(X)
    scope.var("w").set(W)
    with oprack.reference(), Breakpoint(plain_kernels("conv2d")) as met:
        for _ in range(ROUNDS):
            op.run(scope)
    assert met.count == ROUNDS


@pytest.fixture
def only_in_a_library(rack: PackManager) -> Iterator[Any]:
    """An op whose only kernel is a library's."""

    @kernel("flip_sign", library="fast")
    def in_library(X: Any) -> Any:
        return -X

    class FlipSign(oprack.op.OpDef, type="flip_sign"):
        """Out = -X."""

        X = oprack.op.Input("Any tensor.")
        Out = oprack.op.Output("As X.")

        def infer_shape(ctx: Any) -> None:
            ctx.set_dim("Out", ctx.dim("X"))

    rack.register_op(FlipSign)
    rack.register_kernel(in_library)
    yield in_library


def test_a_library_runs_where_nothing_else_fits(only_in_a_library: Any) -> None:
    x = oprack.to_tensor(X)
    with oprack.reference(), Breakpoint([only_in_a_library]) as met:
        for _ in range(ROUNDS):
            np.testing.assert_array_equal(F.flip_sign(x).numpy(), -X)
    assert met.count == ROUNDS


# The code that runs ---------------------------------------------------------------------------------------------------
def test_the_source_of_calls() -> None:
    x = oprack.to_tensor(X, requires_grad=True)
    text = oprack.source_of(oprack.relu, x)
    assert text.startswith("# <oprack.functional.relu ") and "# <eager relu " in text
    assert "def relu(x=None" in text and "relu(v0" in text and "_n.saved = (v1,)" in text
    assert text == oprack.source_of(oprack.relu, x), "the text that runs, and no other"
    assert "_n = Node()" not in oprack.source_of(oprack.relu, oprack.to_tensor(X))
    y = oprack.relu(x)
    text = oprack.source_of(y.backward, oprack.to_tensor(X), retain_graph=True)
    assert "# <gradient of op relu " in text and "# <eager relu_grad " in text and "relu_grad(v0, v1" in text


def test_the_source_of_programs() -> None:
    text = oprack.source_of(oprack.jit(lambda x: F.relu(x)), oprack.to_tensor(X))
    assert (
        "# <jit of <lambda> " in text and "# <plan of 1 ops from 0/0/relu " in text and "def segment(run, v0):" in text
    )
    main = oprack.Program()
    with oprack.program_guard(main, oprack.Program()):
        y = layers.relu(layers.data("x", [None, 3, 12, 12]))
    runner = oprack.Executor()
    text = oprack.source_of(runner.run, main, {"x": X}, [y])
    assert text.split("\n", 1)[1] == runner.prepare(main).main.plan([y.name]).source()


def test_the_source_of_what_runs_op_by_op() -> None:
    x = oprack.to_tensor(X)
    with oprack.reference():
        assert "values = reference((_a0,))" in (text := oprack.source_of(oprack.relu, x)) and "relu(v0" not in text
        assert oprack.source_of(len, [1]).startswith("# no generated code ran")


def test_the_source_of_what_can_not_be_called_again() -> None:
    x = oprack.to_tensor(np.ones((5, 1, 1, 7)), requires_grad=True)
    with pytest.raises(oprack.errors.PreconditionNotMetError) as caught:
        oprack.source_of((x * 3.0).sum().backward)
    assert "retain_graph=True" in caught.value.__notes__[0]
    with pytest.raises(oprack.errors.InvalidArgumentError, match=r"source_of\(Program\).*source_of\(executor.run"):
        oprack.source_of(oprack.Program())
    with pytest.raises(ZeroDivisionError):
        oprack.source_of(lambda: 1 / 0)


def test_what_a_debugger_shows_says_what_it_is() -> None:
    x = oprack.to_tensor(X, requires_grad=True)
    y = oprack.relu(x)
    rule = y._node.rule
    assert repr(rule) == (
        "<BackwardRule of <BoundExpr <OpExpr relu(X) -> Out> of <LoDTensor float32 lod_level=0 cpu:0>> for X>"
    )
    fast = oprack.jit(F.relu)
    assert repr(fast) == "<jit of relu, captured for 0 kinds of calls>"
    fast(x)
    ((program,),) = fast._programs.values()
    assert repr(program) == "<JitProgram of relu at CPUPlace() in <Mode grad>>"
    assert repr(program._forward) == "<PreparedFunction ['x0'] -> ['relu_0.tmp_0']>"
    assert repr(program._forward.program) == "<PreparedProgram of 1 ops at CPUPlace()>"
    assert repr(program._forward._plan.segment) == "<Segment of 1 ops from 0/0/relu>"
    assert repr(program._forward._plan.segment.operators[0]) == "<OperatorWithKernel 0/0/relu>"
    with oprack.reference():
        oprack.relu(x)
        assert "plain=True" in repr(current_mode().interpreter.inner)


@pytest.mark.parametrize("ranks", [1, 2])
def test_kernels_are_met_by_global_tensors_as_well(ranks: int) -> None:
    """Each rank's part, forward and backward; also where some calls were made before without the switch."""

    def rank(world: Any) -> tuple[list[int], np.ndarray]:
        def call() -> Any:
            own = oprack.to_tensor(X, requires_grad=True)
            y = oprack.relu(own.to_global(parallel.placement(), "S(0)", from_whole=True))
            y.sum().backward()
            return y

        met: list[int] = []
        for op_type in ("relu", "relu_grad"):
            for inside in (False, True):
                with Breakpoint(plain_kernels(op_type)) as kernels:
                    for _ in range(ROUNDS):
                        with oprack.reference() if inside else contextlib.nullcontext():
                            y = call()
                met.append(kernels.count)
        return met, y.to_local().numpy()

    parts = []
    for met, part in ThreadWorld(ranks).run(rank):
        assert met[1::2] == [ROUNDS, ROUNDS] and met[0] < ROUNDS
        parts.append(part)
    np.testing.assert_array_equal(np.concatenate(parts), np.maximum(X, 0))
