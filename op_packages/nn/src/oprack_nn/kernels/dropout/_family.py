"""Dropping elements by a mask, and the same mask over a gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext

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
