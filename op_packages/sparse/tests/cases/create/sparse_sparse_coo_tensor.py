"""Cases of sparse_sparse_coo_tensor and of its gradient."""

from __future__ import annotations

from oprack.tensor import SparseCooTensor
from oprack.testing import OpCase

from .._data import HYBRID, TWICE, at, drawn


def case(name: str, x: SparseCooTensor, shape: list[int], dims: tuple[int, ...]) -> list[OpCase]:
    out = SparseCooTensor(x.indices, x.values, dims)
    given, attrs = {"values": x.values, "indices": x.indices}, {"shape": shape}
    arrived = out.with_values(drawn(*x.values.shape, seed=6))
    back = {"values@GRAD": arrived.to_dense()[at(x)]}
    grad = {"values": x.values, "indices": x.indices, "out@GRAD": arrived}
    return [
        OpCase("sparse_sparse_coo_tensor", given, attrs, {"out": out}, ["values"], name=name),
        OpCase("sparse_sparse_coo_tensor_grad", grad, attrs, back, name=name),
    ]


CASES = [
    *case("hybrid", HYBRID, list(HYBRID.shape), HYBRID.shape),
    *case("smallest", HYBRID, [], (*(HYBRID.indices.max(axis=1) + 1).tolist(), 2)),
    *case("batch_of_any_size", HYBRID, [-1, *HYBRID.shape[1:]], (int(HYBRID.indices[0].max()) + 1, *HYBRID.shape[1:])),
    case("twice", TWICE, [3, 4], (3, 4))[0],
]
