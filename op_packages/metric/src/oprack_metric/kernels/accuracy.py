"""Kernel of accuracy."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS, HALF_FLOATS


@kernel("accuracy", place=("cpu", "cuda"), dtypes=FLOATS | HALF_FLOATS)
def accuracy(Out: Array, Indices: Array, Label: Array, *, xp: ArrayModule) -> tuple[Array, ...]:
    total = Indices.shape[0]
    correct = (Indices == Label.reshape(total, 1)).any(axis=1).sum()
    share = (correct / max(total, 1)).astype("float32")
    return share, correct.astype("int32"), xp.full((), total, dtype="int32")
