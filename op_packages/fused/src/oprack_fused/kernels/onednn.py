"""Ops that Paddle's passes for oneDNN make of plain ones."""

from __future__ import annotations

from collections.abc import Callable

from oprack.kernel import Array, ArrayModule, KernelContext, kernel

from oprack_fused.kernels._steps import BOTH, DTYPES, Steps

# post -----------------------------------------------------------------------------------------------------------------
# The activations that oneDNN applies to a result, by their names in attributes.
_PLAIN = {name: name for name in ("abs", "mish", "relu", "sigmoid", "sqrt", "tanh")}


def activated(x: Array, name: str, alpha: float, beta: float, step: Steps, xp: ArrayModule) -> Array:
    """An activation of x.

    Args:
        x: Any shape.
        name: The activation; "" is none.
        alpha: Its first number.
        beta: Its second number.
        step: Runs plain ops.
        xp: The array library.

    Returns:
        The result.
    """
    if name in _PLAIN:
        return step(_PLAIN[name], X=x)

    def linear() -> Array:
        return xp.clip(alpha * x + beta, 0, 1).astype(x.dtype)

    others: dict[str, Callable[[], Array]] = {
        "": lambda: x,
        "clip": lambda: xp.clip(x, x.dtype.type(alpha), x.dtype.type(beta)),
        "gelu_erf": lambda: step("gelu", X=x),
        "gelu_tanh": lambda: step("gelu", X=x, approximate=True),
        "hard_sigmoid": linear,
        "hard_swish": lambda: x * linear(),
        "leaky_relu": lambda: step("leaky_relu", X=x, alpha=alpha),
        "relu6": lambda: xp.clip(x, 0, x.dtype.type(alpha)),
        "swish": lambda: x / (1 + xp.exp(-x * x.dtype.type(alpha))),
    }
    return others[name]()


# elementwise ----------------------------------------------------------------------------------------------------------
def fused_elementwise(
    X: Array,
    Y: Array,
    *,
    axis: int,
    fuse_activation: str,
    fuse_alpha: float,
    fuse_beta: float,
    fused_output_scale: float,
    fused_unsqueeze2_axes: list[int],
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array:
    """The plain op of that name, an activation, a factor and new dims."""
    step = Steps(ctx)
    out = step(ctx.op_type.removeprefix("fused_"), X=X, Y=Y, axis=axis)
    out = activated(out, fuse_activation, fuse_alpha, fuse_beta, step, xp)
    if fused_output_scale != 1:
        out = out * out.dtype.type(fused_output_scale)
    for at in fused_unsqueeze2_axes:
        out = xp.expand_dims(out, at)
    return out


# fused_elementwise_add ------------------------------------------------------------------------------------------------
fused_elementwise_add = kernel("fused_elementwise_add", place=BOTH, dtypes=DTYPES)(fused_elementwise)


# fused_elementwise_div ------------------------------------------------------------------------------------------------
fused_elementwise_div = kernel("fused_elementwise_div", place=BOTH, dtypes=DTYPES)(fused_elementwise)


# fused_elementwise_mul ------------------------------------------------------------------------------------------------
fused_elementwise_mul = kernel("fused_elementwise_mul", place=BOTH, dtypes=DTYPES)(fused_elementwise)


# fused_elementwise_sub ------------------------------------------------------------------------------------------------
fused_elementwise_sub = kernel("fused_elementwise_sub", place=BOTH, dtypes=DTYPES)(fused_elementwise)


# fused_matmul ---------------------------------------------------------------------------------------------------------
def _moved(x: Array, shape: list[int], axes: list[int]) -> Array:
    if shape:
        x = x.reshape([x.shape[i] if s == 0 else s for i, s in enumerate(shape)])
    return x.transpose(axes) if axes else x


@kernel("fused_matmul", place=BOTH, dtypes=DTYPES)
def fused_matmul(
    X: Array, Y: Array, ResidualData: Array | None = None, *, ctx: KernelContext, xp: ArrayModule
) -> Array:
    """matmul_v2, a sum, an activation, with reshapes and transpositions around."""
    a, step = ctx.attrs, Steps(ctx)
    x = xp.ascontiguousarray(_moved(X, a["fused_reshape_X"], a["fused_transpose_X"]))
    y = xp.ascontiguousarray(_moved(Y, a["fused_reshape_Y"], a["fused_transpose_Y"]))
    out = step("matmul_v2", X=x, Y=y, trans_x=a["trans_x"], trans_y=a["trans_y"])
    if a["matmul_alpha"] != 1:
        out = out * out.dtype.type(a["matmul_alpha"])
    if ResidualData is not None:
        out = out + ResidualData
    out = activated(out, a["fuse_activation"], a["fuse_alpha"], a["fuse_beta"], step, xp)
    if a["fused_output_scale"] != 1:
        out = out * out.dtype.type(a["fused_output_scale"])
    if a["fused_transpose_Out"]:
        out = out.transpose(a["fused_transpose_Out"])
    return xp.ascontiguousarray(_moved(out, a["fused_reshape_Out"], []))


# fused_softplus -------------------------------------------------------------------------------------------------------
@kernel("fused_softplus", place=BOTH, dtypes=DTYPES)
def fused_softplus(
    X: Array,
    *,
    beta: float,
    threshold: float,
    fuse_activation: str,
    fuse_alpha: float,
    fuse_beta: float,
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array:
    """softplus, then the activation."""
    step = Steps(ctx)
    return activated(
        step("softplus", X=X, beta=beta, threshold=threshold), fuse_activation, fuse_alpha, fuse_beta, step, xp
    )


# fused_transpose ------------------------------------------------------------------------------------------------------
@kernel("fused_transpose", place=BOTH, dtypes=DTYPES)
def fused_transpose(
    X: Array,
    *,
    axis: list[int],
    fused_squeeze2_axes: list[int],
    fused_unsqueeze2_axes: list[int],
    fused_reshape2_shape: list[int],
    xp: ArrayModule,
) -> tuple[Array, Array]:
    """A transposed copy in its new shape."""
    out = xp.ascontiguousarray(X.transpose(axis))
    gone = {a % out.ndim for a in fused_squeeze2_axes}
    out = out.reshape([d for i, d in enumerate(out.shape) if i not in gone])
    for a in fused_unsqueeze2_axes:
        out = xp.expand_dims(out, a)
    if fused_reshape2_shape:
        out = out.reshape([out.shape[i] if s == 0 else s for i, s in enumerate(fused_reshape2_shape)])
    return (out.copy() if xp.shares_memory(out, X) else out), xp.empty((0, *X.shape), X.dtype)
