"""random_crop (Paddle 1.x): all of the op but its kernel."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of, empty_grad
from oprack.types import AttrType


class RandomCrop(OpDef, type="random_crop"):
    r"""$$Out_{b, i} = X_{b, i + o_b}, \; o_b \sim U\{0, \dots, d - shape\}$$: from each instance a piece at a random
    place; d are the last dims of X, as many as `shape` has.
    """

    X = Input("Instances; the dims in front of those that are cut count them.")
    Seed = Input("int64 [1], of the places; a value of 0 or less takes startup_seed.")
    Out = Output("Pieces of `shape`, as many as there are instances.")
    SeedOut = Output("int64 [1], a seed for the next call.", intermediate=True)
    shape = Attr(REQUIRED, "Shape of a piece.", type=AttrType.INTS)
    startup_seed = Attr(0, "Seed of the first call; 0 takes that of the program.")
    expected_kernel_type = dtype_of("X")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, shape = ctx.dim("X"), ctx.attr("shape")
        cut = dims[len(dims) - len(shape) :] if len(dims) >= len(shape) else ()
        ctx.require(
            len(cut) == len(shape) > 0 and all(0 <= s and (d < 0 or s <= d) for s, d in zip(shape, cut, strict=True)),
            f"X has shape {list(dims)} and shape is {list(shape)}; expected sizes within the last dims of X",
        )
        ctx.set_dim("Out", (*dims[: len(dims) - len(shape)], *shape))
        ctx.set_dim("SeedOut", (1,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.dtype("X"))
        ctx.set_dtype("SeedOut", "int64")
