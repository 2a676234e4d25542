"""seed: all of the op but its kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack.op import (
    Attr,
    InferShapeContext,
    InferVarTypeContext,
    KernelTypeContext,
    OpDef,
    OpVersion,
    Output,
    empty_grad,
)

if TYPE_CHECKING:
    from oprack.kernel import OpKernelType


class Seed(OpDef, type="seed"):
    r"""$$Out = seed$$ or, where that is 0, a random integer above 0."""

    Out = Output("int32 [1]")
    seed = Attr(0, "The number itself; 0 draws one.")
    deterministic = Attr(False, "Paddle: draw from the generator `rng_name`.", extra=True)
    force_cpu = Attr(False, "Paddle: keep Out in host memory.", extra=True)
    rng_name = Attr("", "Paddle: a generator by its name.", extra=True)
    make_grad = empty_grad
    versions = OpVersion("seed").checkpoint("Out may stay in host memory.", ("new_attr", "force_cpu", False))

    def expected_kernel_type(ctx: KernelTypeContext) -> OpKernelType:
        return ctx.kernel_type(dtype="int32")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", (1,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", "int32")
