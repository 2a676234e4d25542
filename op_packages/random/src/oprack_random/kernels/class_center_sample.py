"""Kernel of class_center_sample."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, KernelContext, kernel


@kernel("class_center_sample", place=("cpu", "cuda"), dtypes={"int32", "int64"})
def class_center_sample(
    Label: Array,
    *,
    num_classes: int,
    num_samples: int,
    fix_seed: bool,
    seed: int,
    ctx: KernelContext,
    xp: ArrayModule,
) -> tuple[Array, Array]:
    """The classes that occur, and as many others as there is room for."""
    present, remapped = xp.unique(Label, return_inverse=True)
    if len(present) and not (0 <= int(present[0]) and int(present[-1]) < num_classes):
        raise InvalidArgumentError(
            f"op class_center_sample: Label lies in [{int(present[0])}, {int(present[-1])}]; expected classes in "
            f"[0, {num_classes})"
        )
    others = xp.setdiff1d(xp.arange(num_classes, dtype=Label.dtype), present)
    picked = ctx.generator(seed if fix_seed else 0).permutation(len(others))[: max(num_samples - len(present), 0)]
    return remapped.reshape(Label.shape).astype(Label.dtype), xp.concatenate([present, others[xp.asarray(picked)]])
