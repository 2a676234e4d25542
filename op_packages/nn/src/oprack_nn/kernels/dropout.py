"""Kernels of dropout and dropout_nd."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.types import FLOATS, HALF_FLOATS

BOTH = ("cpu", "cuda")


def _drop(x, mask_shape, seed_tensor, p, is_test, implementation, fix_seed, seed, ctx, xp):
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


def _scale(p, upscale):
    """Factor of the kept elements; with p = 1 none is."""
    return 1.0 / (1.0 - p) if upscale and p < 1.0 else 1.0


def _undrop(mask, grad, p, is_test, implementation):
    kind = grad.dtype.type
    upscale = implementation == "upscale_in_train"
    if is_test or mask is None:
        return grad * kind(1.0 if upscale else 1.0 - p)
    return grad * (mask.astype(grad.dtype) * kind(_scale(p, upscale)))


@kernel("dropout", place=BOTH, dtypes=FLOATS | HALF_FLOATS)
def dropout(X, Seed=None, *, dropout_prob, is_test, dropout_implementation, fix_seed, seed, ctx, xp):
    return _drop(X, X.shape, Seed, dropout_prob, is_test, dropout_implementation, fix_seed, seed, ctx, xp)


@kernel("dropout_grad", place=BOTH, dtypes=FLOATS | HALF_FLOATS)
def dropout_grad(Out_grad, Mask=None, *, dropout_prob, is_test, dropout_implementation):
    return _undrop(Mask, Out_grad, dropout_prob, is_test, dropout_implementation)


@kernel("dropout_nd", place=BOTH, dtypes=FLOATS | HALF_FLOATS)
def dropout_nd(X, Seed=None, *, dropout_prob, is_test, dropout_implementation, axis, fix_seed, seed, ctx, xp):
    shape = tuple(n if not axis or i in axis else 1 for i, n in enumerate(X.shape))
    return _drop(X, shape, Seed, dropout_prob, is_test, dropout_implementation, fix_seed, seed, ctx, xp)


@kernel("dropout_nd_grad", place=BOTH, dtypes=FLOATS | HALF_FLOATS)
def dropout_nd_grad(Out_grad, Mask=None, *, dropout_prob, is_test, dropout_implementation):
    return _undrop(Mask, Out_grad, dropout_prob, is_test, dropout_implementation)
