"""Inputs of which an op needs only the shape: their memory is freed, and a kernel that reads it is told so."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import oprack
import pytest
from oprack.errors import DefinitionError, NoBufferError
from oprack.kernel import kernel
from oprack.op import GradOp, GradOpDef, Input, OpDef, Output
from oprack.packs.manager import PackManager
from oprack.program import Program
from oprack.runtime import Checks, Executor
from oprack.tensor import LoDTensor, Scope, ShapeOnly

Build = Callable[..., Program]
X = np.arange(20000, dtype=np.float32).reshape(4, 5000)
ALIVE: list[Any] = []


class Head(OpDef, type="head"):
    """Out = the first row of X."""

    X = Input("[n, d].")
    Out = Output("[1, d].")

    def infer_shape(ctx: Any) -> None:
        ctx.set_dim("Out", (1, ctx.dim("X")[1]))

    def make_grad(fwd: Any) -> GradOp:
        return GradOp(
            "head_grad", X=fwd.input("X"), Out_grad=fwd.output_grad("Out"), X_grad=fwd.input_grad("X"), attrs=fwd.attrs
        )


class HeadGrad(GradOpDef, type="head_grad"):
    """X@GRAD = Out@GRAD in the first row, 0 in the others."""

    X = Input("Only its shape is read.")
    Out_grad = Input("Gradient of Out.")
    X_grad = Output("Gradient of X.")
    no_need_buffer_vars = ("X",)

    def infer_shape(ctx: Any) -> None:
        ctx.set_dim("X@GRAD", ctx.dim("X"))
        ctx.share_lod("X", "X@GRAD")


@kernel("head")
def head(X: Any) -> Any:
    ALIVE.append(weakref.ref(X))
    return X[:1].copy()


@kernel("head_grad")
def head_grad(X: Any, Out_grad: Any) -> Any:
    gc.collect()
    assert isinstance(X, ShapeOnly) and X.ndim == len(X.shape) and X.size == X.nbytes // X.itemsize and len(X) == 4
    ALIVE.append(ALIVE.pop()() is not None)
    made = np.zeros(X.shape, X.dtype)
    made[:1] = Out_grad
    return made


@pytest.fixture(autouse=True)
def ops(rack: PackManager) -> None:
    ALIVE.clear()
    rack.register_op(Head)
    rack.register_op(HeadGrad)
    rack.register_kernel(head)


@pytest.fixture
def program(build: Build) -> Program:
    """x -> y = 2 x -> h = head(y), and the gradient of h back to x, where h@GRAD = 2 h."""
    return build(
        {"x": X},
        [
            ("double", {"X": "x"}, {"Out": "y"}),
            ("head", {"X": "y"}, {"Out": "h"}),
            ("double", {"X": "h"}, {"Out": "h@GRAD"}),
            ("head_grad", {"X": "y", "Out@GRAD": "h@GRAD"}, {"X@GRAD": "y@GRAD"}),
        ],
    )


@pytest.mark.parametrize("prepared", [False, True])
@pytest.mark.parametrize("lod", [[], [[0, 1, 4]]])
def test_the_memory_goes_before_the_op_that_needs_only_the_shape(
    rack: PackManager, build: Build, prepared: bool, lod: list[list[int]]
) -> None:
    rack.register_kernel(head_grad)
    program = build(
        {"x": LoDTensor(X, lod)},
        [
            ("double", {"X": "x"}, {"Out": "y"}),
            ("head", {"X": "y"}, {"Out": "h"}),
            ("double", {"X": "h"}, {"Out": "h@GRAD"}),
            ("head_grad", {"X": "y", "Out@GRAD": "h@GRAD"}, {"X@GRAD": "y@GRAD"}),
        ],
    )
    exe, keep = Executor(prepared=prepared), ["y@GRAD"]
    for run in range(4):
        scope = Scope().new_scope()
        scope.var("x").set(LoDTensor(X, lod))
        exe.run_prepared(exe.prepare(program.desc), scope, keep)
        found = scope.get_var("y@GRAD").get()
        assert (found.array[0] == 4 * X[0]).all() and not found.array[1:].any() and found.lod == lod
        if run or not prepared:  # a plan's first run goes op by op and frees nothing but what dies
            assert ALIVE[-1] is False
    if prepared:
        assert "v1 = ShapeOnly(v1)" in exe.prepare(program.desc).block(0).plan(keep).source()


@pytest.mark.parametrize("prepared", [False, True])
def test_a_variable_that_is_fetched_or_read_again_keeps_its_memory(
    rack: PackManager, program: Program, prepared: bool
) -> None:
    rack.register_kernel(head_grad)
    exe = Executor(prepared=prepared)
    for _ in range(3):
        y, grad = exe.run(program, {"x": X}, ["y", "y@GRAD"], Scope())
        assert (y == 2 * X).all() and (grad[0] == 4 * X[0]).all()
    program.global_block().create_var("z", dtype="float32", shape=[-1, 5000])
    program.global_block().append_op("double", {"X": "y"}, {"Out": "z"})
    for _ in range(3):
        assert (exe.run(program, {"x": X}, ["z"], Scope())[0] == 4 * X).all()


READS: dict[str, Callable[[Any, Any], Any]] = {
    "asarray": lambda x, g: np.asarray(x) * g,
    "a ufunc": lambda x, g: np.multiply(x, g),
    "a function": lambda x, g: np.zeros_like(x),
    "an operator": lambda x, g: x * g,
    "a reflected operator": lambda x, g: g + x,
    "an index": lambda x, g: x[:1],
    "a method": lambda x, g: x.sum(),
    "a comparison": lambda x, g: x == g,
    "an iteration": lambda x, g: [row for row in x],
    "a truth value": lambda x, g: g if x else 2 * g,
    "an assignment": lambda x, g: x.__setitem__(0, 1),
    "a write": lambda x, g: np.copyto(x, g),
}


@pytest.mark.parametrize("how", list(READS))
def test_a_kernel_that_reads_the_memory_is_told_on_every_path(rack: PackManager, program: Program, how: str) -> None:
    honest = [True]

    @kernel("head_grad")
    def sneaky(X: Any, Out_grad: Any) -> Any:
        if not honest[0]:
            READS[how](X, Out_grad)
        made = np.zeros(X.shape, X.dtype)
        made[:1] = Out_grad
        return made

    rack.register_kernel(sneaky)
    text = r"op head_grad, input X: kernel .*sneaky of this process \(.*\) reads .*only shape and dtype of this.*Remove"
    plan = Executor()
    plan.run(program, {"x": X}, ["y@GRAD"], Scope())
    x = oprack.to_tensor(X, requires_grad=True)
    oprack.functional.head(x).backward(oprack.to_tensor(X[:1]))  # generated code from now on
    honest[0] = False
    for executor in (plan, plan, Executor(), Executor(prepared=False), Executor(checks=Checks(overwritten_input=True))):
        with pytest.raises(NoBufferError, match=text) as error:
            executor.run(program, {"x": X}, ["y@GRAD"], Scope())
        assert isinstance(error.value, DefinitionError)
    with pytest.raises(NoBufferError, match=text):
        oprack.functional.head(x).backward(oprack.to_tensor(X[:1]))


def test_eager_gradients_see_shapes_and_lod(rack: PackManager) -> None:
    rack.register_kernel(head_grad)
    x = oprack.to_tensor(X, lod=[[0, 1, 4]], requires_grad=True)
    for k in (1, 2):
        ALIVE.append(lambda: None)
        oprack.functional.head(x).backward(oprack.to_tensor(X[:1]))
        assert (x.grad.numpy()[0] == k * X[0]).all() and not x.grad.numpy()[1:].any()  # type: ignore[union-attr]


def test_questions_about_attributes_are_answered() -> None:
    x = ShapeOnly(X, "somebody")
    assert not hasattr(x, "place") and getattr(x, "get", None) is None and "float32[4, 5000]" in repr(x)
    assert x.reshape(2, -1).shape == x.reshape((2, -1)).shape == (2, 10000) and x.reshape(-1).dtype == X.dtype
    assert x.transpose(1, 0).shape == x.transpose().shape == (5000, 4) and x.reshape(-1).where == "somebody"
    assert x is not None and {x: 1}[x] == 1 and ShapeOnly(x).shape == X.shape
    with pytest.raises(NoBufferError, match="somebody reads its attribute 'mean'"):
        _ = x.mean
