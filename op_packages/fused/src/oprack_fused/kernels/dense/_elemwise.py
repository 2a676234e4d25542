"""A pair of element-wise functions, and its gradient, as steps."""

from __future__ import annotations

from oprack.kernel import Array, KernelContext

from oprack_fused.kernels._steps import Steps

_READS = {"relu": "Out", "tanh": "Out", "sigmoid": "Out", "gelu": "X"}
"""What the gradient of a unary function reads."""


def _unary(step: Steps, name: str, x: Array, scale: float) -> Array:
    return step("scale", X=x, scale=scale) if name == "scale" else step(name, X=x)


def _unary_grad(step: Steps, name: str, x: Array, out: Array, gradient: Array, scale: float) -> Array:
    if name == "scale":
        return step("scale", X=gradient, scale=scale)
    return step(f"{name}_grad", **{_READS[name]: out if _READS[name] == "Out" else x}, Out_grad=gradient)


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
