"""Kernel of split: views."""

from __future__ import annotations

from oprack.kernel import Array, kernel

from oprack_tensor.dims import sections_of, to_ints


@kernel("split", place=("cpu", "cuda"), view=True)
def split(
    X: Array,
    AxisTensor: Array | None = None,
    SectionsTensorList: list[Array] | None = None,
    *,
    sections: list[int],
    num: int,
    axis: int,
) -> list[Array]:
    axis = axis if AxisTensor is None else int(AxisTensor.reshape(-1)[0])
    axis += X.ndim if axis < 0 else 0
    parts, start = [], 0
    for size in sections_of("split", X.shape[axis], num, to_ints(None, SectionsTensorList, sections)):
        parts.append(X[(slice(None),) * axis + (slice(start, start + size),)])
        start += size
    return parts
