"""What crop and crop_tensor share."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.op import InferShapeContext

from oprack_tensor.dims import given_ints


def crop_sizes(dims: Sequence[int], shape: Sequence[int], offsets: Sequence[int]) -> list[int]:
    """Sizes of the part; one of -1 reaches to the end."""
    return [d - o if s == -1 else s for d, s, o in zip(dims, shape, offsets, strict=True)]


def given_offsets(ctx: InferShapeContext, tensors: str = "") -> list[int | None]:
    """Where the part begins along each dim, by tensors or else by `offsets`; without any at 0."""
    rank = len(ctx.dim("X"))
    absent = not (ctx.has_input("Offsets") or (tensors and ctx.has_input(tensors)) or ctx.attr("offsets"))
    return [0] * rank if absent else given_ints(ctx, "offsets", "Offsets", tensors, likely=rank)


def set_cropped(ctx: InferShapeContext, shape: Sequence[int | None], offsets: Sequence[int | None]) -> None:
    """Shape rule: Out is the part of X with this shape that begins at the offsets; None is not known yet."""
    dims = ctx.dim("X")
    ctx.require(
        len(shape) == len(dims) == len(offsets),
        f"X has shape {list(dims)}, shape is {list(shape)} and offsets {list(offsets)}; expected a size and an offset "
        "for each dim",
    )
    out = []
    for d, size, offset in zip(dims, shape, offsets, strict=True):
        if size is None or (size == -1 and (d < 0 or offset is None)):
            out.append(-1)
            continue
        size = d - (offset or 0) if size == -1 else size
        fits = size >= 0 and (offset is None or (offset >= 0 and (d < 0 or offset + size <= d)))
        ctx.require(
            fits,
            f"a part of shape {list(shape)} at {list(offsets)} is not in X of shape {list(dims)}; expected offsets of "
            "at least 0 and parts that end within X",
        )
        out.append(size)
    ctx.set_dim("Out", out)
