"""Kernels of products with a bias and an activation, and of pairs of element-wise functions."""

from __future__ import annotations

from typing import Any

from oprack.kernel import Array, KernelContext, kernel

from oprack_fused.kernels._steps import BOTH, DTYPES, Steps

# elemwise -------------------------------------------------------------------------------------------------------------
# A pair of element-wise functions, and its gradient, as steps.
_READS = {"relu": "Out", "tanh": "Out", "sigmoid": "Out", "gelu": "X"}

"""What the gradient of a unary function reads."""


def _unary(step: Steps, name: str, x: Array, scale: float) -> Array:
    return step("scale", X=x, scale=scale) if name == "scale" else step(name, X=x)


def _unary_grad(step: Steps, name: str, x: Array, out: Array, gradient: Array, scale: float) -> Array:
    if name == "scale":
        return step("scale", X=gradient, scale=scale)
    read: dict[str, Any] = {_READS[name]: out if _READS[name] == "Out" else x}
    return step(f"{name}_grad", **read, Out_grad=gradient)


def pair(
    X: Array,
    Y: Array,
    *,
    axis: int,
    scale: float,
    save_intermediate_out: bool,
    functor_list: list[str],
    ctx: KernelContext,
) -> tuple[Array, Array]:
    """The inner function, then the outer one."""
    step, (outer, inner) = Steps(ctx), functor_list
    if inner.startswith("elementwise"):
        middle = step(inner, X=X, Y=Y, axis=axis)
        return _unary(step, outer, middle, scale), middle
    middle = _unary(step, inner, Y, scale)
    return step(outer, X=X, Y=middle, axis=axis), middle


def _apart(gradients: dict[str, Array]) -> dict[str, Array]:
    """Gradients of a sum may be the very gradient that came in, both of them."""
    return {**gradients, "X@GRAD": gradients["X@GRAD"].copy()}


def pair_grad(
    X: Array,
    Y: Array,
    Out: Array,
    Out_grad: Array,
    *,
    axis: int,
    scale: float,
    functor_list: list[str],
    ctx: KernelContext,
) -> dict[str, Array]:
    """The gradient of the outer function, then that of the inner one; what lies between is computed again."""
    step, (outer, inner) = Steps(ctx), [name.removesuffix("_grad") for name in functor_list]
    gradient = Out_grad.reshape(Out.shape)
    if inner.startswith("elementwise"):
        gradient = _unary_grad(step, outer, step(inner, X=X, Y=Y, axis=axis), Out, gradient, scale)
        return _apart(step.all(f"{inner}_grad", X=X, Y=Y, Out_grad=gradient, axis=axis))
    middle = _unary(step, inner, Y, scale)
    found = _apart(step.all(f"{outer}_grad", X=X, Y=middle, Out_grad=gradient, axis=axis))
    return {**found, "Y@GRAD": _unary_grad(step, inner, Y, middle, found["Y@GRAD"], scale)}


# fc -------------------------------------------------------------------------------------------------------------------
@kernel("fc", place=BOTH, dtypes=DTYPES)
def fc(
    Input: Array,
    W: Array,
    Bias: Array | None = None,
    *,
    in_num_col_dims: int,
    activation_type: str,
    padding_weights: bool,
    ctx: KernelContext,
) -> Array:
    """mul, elementwise_add, activation."""
    weight = W[:-4, :-4] if padding_weights else W
    return Steps(ctx).dense(Input, weight, Bias, activation_type, in_num_col_dims)


# fused_elemwise_activation --------------------------------------------------------------------------------------------
kernel("fused_elemwise_activation", place=BOTH, dtypes=DTYPES)(pair)

kernel("fused_elemwise_activation_grad", place=BOTH, dtypes=DTYPES)(pair_grad)


# fused_elemwise_add_activation ----------------------------------------------------------------------------------------
kernel("fused_elemwise_add_activation", place=BOTH, dtypes=DTYPES)(pair)

kernel("fused_elemwise_add_activation_grad", place=BOTH, dtypes=DTYPES)(pair_grad)


# fused_fc_elementwise_layernorm ---------------------------------------------------------------------------------------
@kernel("fused_fc_elementwise_layernorm", place=BOTH, dtypes=DTYPES)
def fused_fc_elementwise_layernorm(
    X: Array,
    W: Array,
    Y: Array,
    Bias0: Array | None = None,
    Scale: Array | None = None,
    Bias1: Array | None = None,
    *,
    x_num_col_dims: int,
    activation_type: str,
    epsilon: float,
    begin_norm_axis: int,
    ctx: KernelContext,
) -> tuple[Array, Array, Array]:
    """fc, elementwise_add, layer_norm."""
    step = Steps(ctx)
    total = step("elementwise_add", X=step.dense(X, W, Bias0, activation_type, x_num_col_dims), Y=Y)
    norm: dict[str, Any] = {"epsilon": epsilon, "begin_norm_axis": begin_norm_axis}
    found = step.all("layer_norm", X=total, Scale=Scale, Bias=Bias1, **norm)
    return found["Y"], found["Mean"].reshape(-1), found["Variance"].reshape(-1)


# fusion_repeated_fc_relu ----------------------------------------------------------------------------------------------
@kernel("fusion_repeated_fc_relu", place=BOTH, dtypes=DTYPES)
def fusion_repeated_fc_relu(
    X: Array, W: list[Array], Bias: list[Array], *, ctx: KernelContext
) -> tuple[list[Array], Array]:
    """fc with relu, again and again."""
    found = [X]
    for weight, bias in zip(W, Bias, strict=True):
        found.append(Steps(ctx).dense(found[-1], weight, bias, "relu"))
    return found[1:-1], found[-1]


# fusion_squared_mat_sub -----------------------------------------------------------------------------------------------
@kernel("fusion_squared_mat_sub", place=BOTH, dtypes=DTYPES)
def fusion_squared_mat_sub(X: Array, Y: Array, *, scalar: float, ctx: KernelContext) -> tuple[Array, ...]:
    """square, matmul_v2, elementwise_sub, scale."""
    step = Steps(ctx)
    x, y, xy = step("square", X=X), step("square", X=Y), step("square", X=step("matmul_v2", X=X, Y=Y))
    difference = step("elementwise_sub", X=xy, Y=step("matmul_v2", X=x, Y=y))
    return x, y, xy, step("scale", X=difference, scale=scalar)


# skip_layernorm -------------------------------------------------------------------------------------------------------
@kernel("skip_layernorm", place=BOTH, dtypes=DTYPES)
def skip_layernorm(
    X: Array, Y: Array, Scale: Array, Bias: Array, *, epsilon: float, begin_norm_axis: int, ctx: KernelContext
) -> Array:
    """elementwise_add, layer_norm."""
    step = Steps(ctx)
    norm: dict[str, Any] = {"epsilon": epsilon, "begin_norm_axis": begin_norm_axis}
    return step("layer_norm", X=step("elementwise_add", X=X, Y=Y), Scale=Scale, Bias=Bias, want="Y", **norm)
