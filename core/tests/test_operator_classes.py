"""An op registered the way Fluid does it: a class derived from OperatorWithKernel beside maker and grad maker."""

from __future__ import annotations

from typing import Any

import numpy as np
import oprack
import pytest
from oprack.errors import AlreadyExistsError, DefinitionError, InvalidArgumentError
from oprack.kernel import kernel
from oprack.op import Attr, GradOp, GradOpMaker, InferShapeFacet, Input, OpMaker, Output
from oprack.packs.manager import PackManager
from oprack.program import Program
from oprack.runtime import Executor, OperatorWithKernel
from oprack.tensor import Scope


class ConvOpMaker(OpMaker):
    """Two-dimensional correlation of one channel: $$Out[i, j] = \\sum_{p, q} Input[i + p, j + q] Filter[p, q]$$"""

    Input_ = Input("[h, w]")
    Filter = Input("[p, q]")
    Output_ = Output("[h - p + 1, w - q + 1]")
    data_format = Attr("NCHW", "Layout.")


class ConvOp(OperatorWithKernel):
    def infer_shape(self, ctx: Any) -> None:
        x, w = ctx.require_rank("Input", 2), ctx.require_rank("Filter", 2)
        ctx.require(self.type == "conv2d_like", "the rule knows its op")
        ctx.set_dim("Output", [-1 if a < 0 else a - b + 1 for a, b in zip(x, w, strict=True)])

    def expected_kernel_type(self, ctx: Any) -> Any:
        return ctx.kernel_type(dtype=ctx.dtype("Input"))


class ConvGradOpMaker(GradOpMaker):
    def __call__(self, fwd: Any) -> GradOp:
        return GradOp(
            "conv2d_like_grad",
            Input=fwd.input("Input"),
            Filter=fwd.input("Filter"),
            Output_grad=fwd.output_grad("Output"),
            Filter_grad=fwd.input_grad("Filter"),
            attrs=fwd.attrs,
        )


class ConvGradMaker(OpMaker):
    """The gradient with respect to Filter."""

    Input_ = Input("[h, w]")
    Filter = Input("[p, q]")
    Output_grad = Input("Gradient of Output.")
    Filter_grad = Output("Gradient of Filter.")
    data_format = Attr("NCHW", "Layout.")


class ConvGradOp(OperatorWithKernel):
    def infer_shape(self, ctx: Any) -> None:
        ctx.set_dim("Filter@GRAD", ctx.dim("Filter"))


def windows(x: np.ndarray, p: int, q: int) -> np.ndarray:
    return np.lib.stride_tricks.sliding_window_view(x, (p, q))


@kernel("conv2d_like", dtypes={"float32", "float64"})
def conv(Input: Any, Filter: Any) -> Any:
    return np.einsum("ijpq,pq->ij", windows(Input, *Filter.shape), Filter)


@kernel("conv2d_like_grad", dtypes={"float32", "float64"})
def conv_grad(Input: Any, Filter: Any, Output_grad: Any) -> Any:
    return np.einsum("ijpq,ij->pq", windows(Input, *Filter.shape), Output_grad)


@pytest.fixture
def fluid_like(rack: PackManager) -> PackManager:
    oprack.register_operator("conv2d_like", ConvOp, ConvOpMaker, ConvGradOpMaker)
    oprack.register_operator("conv2d_like_grad", ConvGradOp, ConvGradMaker)
    rack.register_kernel(conv)
    rack.register_kernel(conv_grad)
    return rack


X, W = np.arange(12.0).reshape(3, 4), np.array([[1.0, 2.0], [0.0, -1.0]])
# Out[i, j] = x[i, j] + 2 x[i, j + 1] - x[i + 1, j + 1], and x[i, j] = 4 i + j
OUT = np.array([[4.0 * i + j + 2 * (4 * i + j + 1) - (4 * (i + 1) + j + 1) for j in range(3)] for i in range(2)])


@pytest.mark.parametrize("prepared", [False, True])
def test_it_runs_in_a_program(fluid_like: PackManager, prepared: bool) -> None:
    program = Program()
    with oprack.program_guard(program, Program()):
        x, w = (oprack.layers.data(n, s, dtype="float64") for n, s in (("x", [-1, 4]), ("w", [2, 2])))
        y = oprack.functional.conv2d_like(x, w)
    assert y.shape == (-1, 3)
    exe, scope = Executor(prepared=prepared), Scope()
    for _ in range(2):
        (out,) = exe.run(program, {"x": X, "w": W}, [y.name], scope)
        np.testing.assert_array_equal(out, OUT)
    assert isinstance(exe.prepare(program.desc).block(0).operators[-1], ConvOp)
    with pytest.raises(InvalidArgumentError, match="Filter has shape"), oprack.program_guard(program, Program()):
        oprack.functional.conv2d_like(x, oprack.layers.data("v", [2], dtype="float64"))


def test_it_runs_eagerly_with_its_gradient(fluid_like: PackManager) -> None:
    x, w = oprack.to_tensor(X), oprack.to_tensor(W, requires_grad=True)
    y = oprack.functional.conv2d_like(x, w)
    np.testing.assert_array_equal(y.numpy(), OUT)
    y.backward(oprack.to_tensor(np.ones((2, 3))))
    # the sum of the windows that each weight meets
    np.testing.assert_array_equal(w.grad.numpy(), [[X[p : p + 2, q : q + 3].sum() for q in (0, 1)] for p in (0, 1)])


def test_it_has_kernels_and_does_not_run_itself(fluid_like: PackManager) -> None:
    info = fluid_like.op_info("conv2d_like")
    assert info.creator is ConvOp and fluid_like.operator_class("conv2d_like") is None
    assert info.infer_shape is not None and info.expected_kernel_type is not None
    assert info.owners["infer_shape"] == info.owners["creator"] == "this process"


def test_a_second_shape_rule_is_refused(rack: PackManager) -> None:
    class Shape(InferShapeFacet):
        def __call__(self, ctx: Any) -> None:
            ctx.set_dim("Output", ctx.dim("Input"))

    for facets in ((ConvOp, ConvOpMaker, Shape), (Shape, ConvOpMaker, ConvOp)):
        with pytest.raises(AlreadyExistsError, match="facet 'infer_shape' is set by"):
            oprack.register_operator("conv2d_like", *facets)


def test_a_class_without_rules_leaves_them_to_other_facets(rack: PackManager) -> None:
    class Bare(OperatorWithKernel):
        """Nothing of its own."""

    class Shape(InferShapeFacet):
        def __call__(self, ctx: Any) -> None:
            ctx.set_dim("Output", ctx.dim("Input"))

    oprack.register_operator("conv2d_like", Bare, ConvOpMaker, Shape)
    assert isinstance(rack.op_info("conv2d_like").infer_shape, Shape)


class ScaledRelu:
    """A kernel as a class, as Fluid has them."""

    def __init__(self) -> None:
        self.low = 0.0

    def compute(self, X: Any, *, factor: float) -> Any:
        return np.maximum(X, self.low) * factor


@pytest.mark.parametrize("path", ["reference", "plan", "eager"])
def test_a_class_is_a_kernel(rack: PackManager, path: str) -> None:
    for _ in range(2):  # a cell of a notebook, run again
        cls = type("ScaledRelu", (ScaledRelu,), {"__qualname__": "ScaledRelu"})
        rack.register_kernel(kernel("double", priority=9)(cls))
    (spec,) = (s for s in rack.kernels_listing("double") if s.priority == 9)
    assert spec.name.endswith("ScaledRelu.compute") and __file__ in spec.where
    x, wanted = np.array([-1.0, 2.0]), [0.0, 6.0]
    for _ in range(3):
        if path == "eager":
            out = oprack.functional.double(oprack.to_tensor(x), factor=3.0).numpy()
        else:
            program = Program()
            with oprack.program_guard(program, Program()):
                y = oprack.functional.double(oprack.layers.data("x", [-1], dtype="float64"), factor=3.0)
            (out,) = Executor(prepared=path == "plan").run(program, {"x": x}, [y.name], Scope())
        np.testing.assert_array_equal(out, wanted)


def test_a_class_that_computes_nothing_says_how() -> None:
    with pytest.raises(DefinitionError, match=r"class Odd has no method compute \(it has Compute\); expected def"):
        kernel("double")(type("Odd", (), {"Compute": lambda self, ctx: None, "__qualname__": "Odd"}))
    with pytest.raises(DefinitionError, match="can't be made without arguments"):
        kernel("double")(type("Odd", (), {"compute": lambda self, X: X, "__init__": lambda self, n: None}))
