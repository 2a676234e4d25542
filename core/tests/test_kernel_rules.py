"""Which kernel runs: asked for by an attribute, promised to give the same bits, or only there at another place."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import oprack
import pytest
from oprack.device import CPUDeviceContext
from oprack.errors import KernelNotFoundError
from oprack.kernel import kernel
from oprack.op import Attr, GradOp, GradOpDef, Input, OpDef, Output
from oprack.packs.extensions import Extensions
from oprack.packs.manager import PackManager
from oprack.program import Program
from oprack.runtime import Executor, kernel_operator
from oprack.tensor import LoDTensor, LoDTensorArray, Place, Scope, SelectedRows
from oprack.types import VarType

Build = Callable[..., Program]
X = np.array([[1.0, -2.0], [3.0, 4.0]], np.float32)


class Switched(OpDef, type="switched"):
    """$$Out = X$$ plus a number that tells the kernel."""

    X = Input("x")
    Out = Output("o")
    use_fast = Attr(False, "Ask for library fast.")

    def infer_shape(ctx: Any) -> None:
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")

    def make_grad(fwd: Any) -> GradOp:
        return GradOp("switched_grad", Out_grad=fwd.output_grad("Out"), X_grad=fwd.input_grad("X"))


class SwitchedGrad(GradOpDef, type="switched_grad"):
    """$$X@GRAD = Out@GRAD$$"""

    Out_grad = Input("g")
    X_grad = Output("g")

    def infer_shape(ctx: Any) -> None:
        ctx.set_dim("X@GRAD", ctx.dim("Out@GRAD"))


@kernel("switched", dtypes={"float32"})
def plain(X: Any) -> Any:
    return X + np.float32(1)


@kernel("switched", dtypes={"float32"}, library="fast", priority=5, deterministic=False)
def fast(X: Any) -> Any:
    return X + np.float32(2)


@pytest.fixture
def switched(rack: PackManager, monkeypatch: pytest.MonkeyPatch) -> PackManager:
    rack.register_op(Switched)
    rack.register_op(SwitchedGrad)
    rack.register_kernel(plain)
    rack.register_kernel(fast)
    monkeypatch.setattr(Extensions, "library_attrs", lambda _: {"fast": "use_fast"})
    return rack


def added(build: Build, use_fast: bool | None = None, **options: Any) -> int:
    """What the kernel that ran added."""
    attrs = {} if use_fast is None else {"use_fast": use_fast}
    program = build({"x": X}, [("switched", {"X": "x"}, {"Out": "y"}, attrs)])
    exe, scope = Executor(**options), Scope()
    outs = [exe.run(program, {"x": X}, ["y"], scope)[0] for _ in range(2)]
    np.testing.assert_array_equal(*outs)
    return int((outs[0] - X)[0, 0])


# Libraries by attribute -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("prepared", [False, True])
def test_a_library_runs_where_it_is_best_or_where_the_attribute_asks(
    switched: PackManager, build: Build, prepared: bool
) -> None:
    for use_fast in (None, False, True):
        assert added(build, use_fast, prepared=prepared) == 2
    by_attr = {"libraries_by_attr": ["fast"], "prepared": prepared}
    assert added(build, None, **by_attr) == 1
    assert added(build, False, **by_attr) == 1
    assert added(build, True, **by_attr) == 2
    assert added(build, True, **by_attr, excluded_libraries=["fast"]) == 1


def test_asking_for_a_library_without_a_kernel_falls_back_and_says_so_once(
    switched: PackManager, build: Build, caplog: pytest.LogCaptureFixture
) -> None:
    class Asking(Switched, type="asking"):
        """As switched, always by library fast."""

        def expected_kernel_type(ctx: Any) -> Any:
            return ctx.kernel_type(dtype=ctx.dtype("X"), library="fast")

    @kernel("asking")
    def only(X: Any) -> Any:
        return X + np.float32(7)

    switched.register_op(Asking)
    switched.register_kernel(only)
    program = build({"x": X}, [("asking", {"X": "x"}, {"Out": n}) for n in ("y", "z")])
    with caplog.at_level(logging.INFO, "oprack"):
        (z,) = Executor().run(program, {"x": X}, ["z"], Scope())
    np.testing.assert_array_equal(z, X + 7)
    (record,) = [r for r in caplog.records if "op asking" in r.getMessage()]
    assert record.name == "oprack.kernel.kernel_map"
    assert "library fast is asked for, but has no kernel" in record.getMessage() and "only" in record.getMessage()


# Determinism ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("prepared", [False, True])
def test_a_deterministic_run_takes_the_next_kernel(switched: PackManager, build: Build, prepared: bool) -> None:
    assert added(build, prepared=prepared) == 2
    assert added(build, prepared=prepared, deterministic=True) == 1


def test_a_deterministic_run_without_such_a_kernel_lists_them(rack: PackManager, build: Build) -> None:
    rack.register_op(Switched)
    rack.register_kernel(fast)
    with pytest.raises(KernelNotFoundError, match=r"fast of this process .*can't promise the same bits on every run"):
        added(build, deterministic=True)


def test_eager_calls_have_a_mode_of_their_own(switched: PackManager) -> None:
    @kernel("switched_grad", priority=1, deterministic=False)
    def quick_grad(Out_grad: Any) -> Any:
        return Out_grad * np.float32(2)

    @kernel("switched_grad")
    def slow_grad(Out_grad: Any) -> Any:
        return Out_grad * np.float32(3)

    switched.register_kernel(quick_grad)
    switched.register_kernel(slow_grad)

    def call() -> tuple[float, float]:
        x = oprack.to_tensor(X, requires_grad=True)
        y = oprack.functional.switched(x)
        y.backward(oprack.to_tensor(np.ones_like(X)))
        return float((y.numpy() - X)[0, 0]), float(x.grad.numpy()[0, 0])

    for _ in range(3):  # the first call of each mode, then those through generated code
        assert call() == (2.0, 2.0)
        with oprack.deterministic():
            assert call() == (1.0, 3.0)
            with oprack.deterministic(False):
                assert call() == (2.0, 2.0)
    compiled = oprack.jit(oprack.functional.switched)
    for _ in range(2):
        assert float((compiled(X).numpy() - X)[0, 0]) == 2
        with oprack.deterministic():
            assert float((compiled(X).numpy() - X)[0, 0]) == 1


def test_predictors_take_both_settings() -> None:
    from oprack.inference import Config

    config = Config()
    assert not config.deterministic() and config.libraries_by_attr() == ()
    config.switch_deterministic()
    config.switch_library_attrs()
    assert config.deterministic() and set(config.libraries_by_attr()) >= set()
    assert "deterministic" in config.summary() and "library_attrs" in config.summary()
    assert Config(config).deterministic()


@pytest.mark.parametrize("wrong", ["cpu", "cuda"])
def test_deterministic_is_a_flag_or_a_set_of_places(wrong: str) -> None:
    with pytest.raises(oprack.errors.OprackError, match="expected True, False or a set of places"):
        kernel("switched", deterministic=wrong)
    both = kernel("switched", place=("cpu", "cuda"), deterministic={"cpu"})(lambda X: X)
    assert [s.deterministic for s in both.__oprack_kernels__] == [True, False]


# Another place --------------------------------------------------------------------------------------------------------
class ElsewhereDevice(CPUDeviceContext):
    """Memory of its own; counts what crosses to it and back."""

    moved: Counter[str] = Counter()

    def from_host(self, array: np.ndarray) -> np.ndarray:
        self.moved["there"] += 1
        return array.copy()

    def to_host(self, array: np.ndarray) -> np.ndarray:
        self.moved["back"] += 1
        return array.copy()


class ElsewherePlace(Place):
    kind = "elsewhere"


@pytest.fixture
def elsewhere(rack: PackManager, monkeypatch: pytest.MonkeyPatch) -> Iterator[PackManager]:
    monkeypatch.setattr(Extensions, "place_factory", lambda _, kind: ElsewhereDevice)
    kernel_operator._MOVED.clear()

    @kernel("double", place="elsewhere", priority=1)
    def double_there(X: Any, *, factor: float, ctx: Any) -> Any:
        assert ctx.place == ElsewherePlace() and isinstance(ctx.device, ElsewhereDevice)
        return X * np.float32(factor)

    rack.register_kernel(double_there)
    rack.register_op(Switched)
    seen = []

    @kernel("switched", dtypes={"float32"})
    def on_host(X: Any, *, ctx: Any) -> Any:
        assert ctx.place == oprack.CPUPlace() and type(ctx.device) is CPUDeviceContext
        seen.append(type(ctx.device))
        return X + np.float32(1)

    rack.register_kernel(on_host)
    yield rack
    assert seen and set(seen) == {CPUDeviceContext}


@pytest.mark.parametrize("prepared", [False, True])
def test_a_kernel_of_the_cpu_runs_in_the_middle_of_another_place(
    elsewhere: PackManager, build: Build, prepared: bool, caplog: pytest.LogCaptureFixture
) -> None:
    x = LoDTensor(X, [[0, 1, 2]])
    ops = [
        ("double", {"X": "x"}, {"Out": "a"}),
        ("switched", {"X": "a"}, {"Out": "b"}),
        ("double", {"X": "b"}, {"Out": "c"}),
        ("switched", {"X": "c"}, {"Out": "d"}),
    ]
    program = build({"x": x}, ops)
    exe, scope = Executor(ElsewherePlace(), prepared=prepared), Scope()
    with caplog.at_level(logging.WARNING, "oprack"):
        for _ in range(3):
            ElsewhereDevice.moved.clear()
            b, d = exe.run(program, {"x": x}, ["b", "d"], scope, return_numpy=False)
            # x there; a and c back and their results there; b and d back, fetched
            assert ElsewhereDevice.moved == {"there": 3, "back": 4}
            np.testing.assert_array_equal(b.array, 2 * X + 1)
            np.testing.assert_array_equal(d.array, 2 * (2 * X + 1) + 1)
            assert d.lod == [[0, 1, 2]]
    (record,) = caplog.records
    assert record.name == "oprack.runtime.kernel_operator"
    assert "op switched" in record.getMessage() and "no kernel at ElsewherePlace" in record.getMessage()


def test_eager_calls_fall_back_to_the_cpu(request: pytest.FixtureRequest) -> None:
    x = oprack.to_tensor(X)
    request.getfixturevalue("elsewhere")
    x = x.to(ElsewherePlace())
    for _ in range(3):
        y = oprack.functional.double(oprack.functional.switched(oprack.functional.double(x)))
        assert y.place == ElsewherePlace()
        np.testing.assert_array_equal(y.to(oprack.CPUPlace()).numpy(), 2 * (2 * X + 1))


@pytest.mark.parametrize("prepared", [False, True])
def test_the_ops_rule_may_name_the_place(
    elsewhere: PackManager, build: Build, prepared: bool, caplog: pytest.LogCaptureFixture
) -> None:
    class Host(Switched, type="host"):
        """As switched, on the host in any case."""

        def expected_kernel_type(ctx: Any) -> Any:
            return ctx.kernel_type(dtype=ctx.dtype("X"), place="cpu")

    @kernel("host")
    def there(X: Any, *, ctx: Any) -> Any:
        assert ctx.place == oprack.CPUPlace()
        return X + np.float32(1)

    @kernel("host", place="elsewhere")
    def not_there(X: Any) -> Any:
        raise AssertionError("the op's rule asks for the host")

    elsewhere.register_op(Host)
    elsewhere.register_kernel(there)
    elsewhere.register_kernel(not_there)
    ops = [(t, {"X": x}, {"Out": y}) for t, x, y in (("double", "x", "a"), ("host", "a", "b"), ("switched", "b", "c"))]
    program = build({"x": X}, ops)
    exe, scope = Executor(ElsewherePlace(), prepared=prepared), Scope()
    with caplog.at_level(logging.WARNING, "oprack"):
        for _ in range(3):
            (c,) = exe.run(program, {"x": X}, ["c"], scope)
            np.testing.assert_array_equal(c, 2 * X + 2)
    told = [r.getMessage() for r in caplog.records if "op host" in r.getMessage()]
    assert len(told) == 1 and "the op's rule asks for it" in told[0]


def test_a_kernel_that_fits_nowhere_is_an_error_of_the_runs_place(elsewhere: PackManager, build: Build) -> None:
    double = X.astype(np.float64)
    program = build({"x": double}, [("switched", {"X": "x"}, {"Out": "y"})])
    with pytest.raises(KernelNotFoundError, match=r"no kernel for \(elsewhere, float64\)"):
        Executor(ElsewherePlace()).run(program, {"x": double}, ["y"], Scope())
    program = build({"x": X}, [("switched", {"X": "x"}, {"Out": "y"})])
    Executor(ElsewherePlace()).run(program, {"x": X}, ["y"], Scope())


def test_rows_and_arrays_of_tensors_are_moved_too(elsewhere: PackManager, build: Build) -> None:
    @kernel("switched", priority=1)
    def rows_on_host(X: SelectedRows) -> Any:
        assert X.place == oprack.CPUPlace()
        return SelectedRows(X.rows, X.value + np.float32(1), X.height)

    @kernel("switched", priority=1)
    def array_on_host(X: LoDTensorArray) -> Any:
        assert all(t.place == oprack.CPUPlace() for t in X)
        return LoDTensorArray([LoDTensor(t.array + np.float32(1)) for t in X])

    elsewhere.register_kernel(rows_on_host)
    elsewhere.register_kernel(array_on_host)
    values = {
        VarType.SELECTED_ROWS: SelectedRows([1], X[:1].copy(), 5),
        VarType.LOD_TENSOR_ARRAY: LoDTensorArray([LoDTensor(X)]),
    }
    for kind, value in values.items():
        program = Program()
        for name in ("x", "y"):
            program.global_block().create_var(name, type=kind, dtype="float32")
        program.global_block().append_op("switched", {"X": "x"}, {"Out": "y"})
        scope = Scope()
        scope.var("x").set(value)
        program.global_block().vars["x"].persistable = True
        (y,) = Executor(ElsewherePlace()).run(program, {}, ["y"], scope, return_numpy=False)
        found = y[0].array if kind is VarType.LOD_TENSOR_ARRAY else y.value
        np.testing.assert_array_equal(found, (X if kind is VarType.LOD_TENSOR_ARRAY else X[:1]) + 1)
    program = build({"x": X}, [("switched", {"X": "x"}, {"Out": "y"})])
    Executor(ElsewherePlace()).run(program, {"x": X}, ["y"], Scope())


def test_the_library_is_silent_unless_asked() -> None:
    logger = logging.getLogger("oprack")
    assert any(isinstance(h, logging.NullHandler) for h in logger.handlers) and logger.level == logging.NOTSET
