"""Kernels of dropout."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS, HALF_FLOATS

# shared ---------------------------------------------------------------------------------------------------------------
# Dropping elements by a mask, and the same mask over a gradient.
BOTH = ("cpu", "cuda")


def drop(
    x: Array,
    mask_shape: tuple[int, ...],
    seed_tensor: Array | None,
    p: float,
    is_test: bool,
    implementation: str,
    fix_seed: bool,
    seed: int,
    ctx: KernelContext,
    xp: ArrayModule,
) -> tuple[Array, Array | None]:
    """x without the elements that fall to chance, and the mask of those that were kept (None in a test)."""
    kind = x.dtype.type
    upscale = implementation == "upscale_in_train"
    if is_test:
        return x * kind(1.0 if upscale else 1.0 - p), None
    if p == 0.0 or p == 1.0:
        mask = xp.full(mask_shape, p == 0.0, "uint8")
    else:
        number = int(seed_tensor.reshape(-1)[0]) if seed_tensor is not None else seed if fix_seed else 0
        mask = xp.asarray(ctx.generator(number).random(mask_shape, "float32") >= p).astype("uint8")
    return x * (mask.astype(x.dtype) * kind(_scale(p, upscale))), mask


def _scale(p: float, upscale: bool) -> float:
    """Factor of the kept elements; with p = 1 none is."""
    return 1.0 / (1.0 - p) if upscale and p < 1.0 else 1.0


def undrop(mask: Array | None, grad: Array, p: float, is_test: bool, implementation: str) -> Array:
    """The gradient of drop by x."""
    kind = grad.dtype.type
    upscale = implementation == "upscale_in_train"
    if is_test or mask is None:
        return grad * kind(1.0 if upscale else 1.0 - p)
    return grad * (mask.astype(grad.dtype) * kind(_scale(p, upscale)))


# dropout --------------------------------------------------------------------------------------------------------------
@kernel("dropout", place=BOTH, dtypes=FLOATS | HALF_FLOATS)
def dropout(
    X: Array,
    Seed: Array | None = None,
    *,
    dropout_prob: float,
    is_test: bool,
    dropout_implementation: str,
    fix_seed: bool,
    seed: int,
    ctx: KernelContext,
    xp: ArrayModule,
) -> tuple[Array, Array | None]:
    return drop(X, X.shape, Seed, dropout_prob, is_test, dropout_implementation, fix_seed, seed, ctx, xp)


@kernel("dropout_grad", place=BOTH, dtypes=FLOATS | HALF_FLOATS)
def dropout_grad(
    Out_grad: Array, Mask: Array | None = None, *, dropout_prob: float, is_test: bool, dropout_implementation: str
) -> Array:
    return undrop(Mask, Out_grad, dropout_prob, is_test, dropout_implementation)


# dropout_nd -----------------------------------------------------------------------------------------------------------
@kernel("dropout_nd", place=BOTH, dtypes=FLOATS | HALF_FLOATS)
def dropout_nd(
    X: Array,
    Seed: Array | None = None,
    *,
    dropout_prob: float,
    is_test: bool,
    dropout_implementation: str,
    axis: list[int],
    fix_seed: bool,
    seed: int,
    ctx: KernelContext,
    xp: ArrayModule,
) -> tuple[Array, Array | None]:
    shape = tuple(n if not axis or i in axis else 1 for i, n in enumerate(X.shape))
    return drop(X, shape, Seed, dropout_prob, is_test, dropout_implementation, fix_seed, seed, ctx, xp)


@kernel("dropout_nd_grad", place=BOTH, dtypes=FLOATS | HALF_FLOATS)
def dropout_nd_grad(
    Out_grad: Array, Mask: Array | None = None, *, dropout_prob: float, is_test: bool, dropout_implementation: str
) -> Array:
    return undrop(Mask, Out_grad, dropout_prob, is_test, dropout_implementation)
