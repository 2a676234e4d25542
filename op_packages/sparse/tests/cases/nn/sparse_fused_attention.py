"""Cases of sparse_fused_attention and of its gradient."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import at, csr, drawn, holes, slopes

SHAPE = (1, 2, 3, 4)
Q, K, V, G = (drawn(*SHAPE, seed=110 + i) for i in range(4))
MASK = csr(holes(np.ones((2, 3, 3), np.float32), seed=115))
PADDING, PLACES = np.array([[1, 1, 0]], np.float32), np.array([[1, 1, 1], [0, 1, 1], [1, 1, 1]], np.float32)


def weights(q: np.ndarray, k: np.ndarray, taken: np.ndarray) -> np.ndarray:
    power = np.exp(q @ k.swapaxes(-1, -2) / 2) * taken
    total = power.sum(axis=-1, keepdims=True)
    return power / np.where(total, total, 1)


def case(name: str, masks: dict[str, np.ndarray]) -> list[OpCase]:
    taken = np.zeros(MASK.shape)
    taken[at(MASK)] = 1
    taken = taken.reshape(1, 2, 3, 3)
    if masks:
        taken = taken * PADDING[:, None, None, :] * PLACES
    w = weights(Q, K, taken)
    softmax = MASK.with_values(w.reshape(2, 3, 3)[at(MASK)].astype(np.float32))
    given = {"query": Q, "key": K, "value": V}
    back = {
        "query@GRAD": slopes(lambda q: weights(q, K, taken) @ V, Q, G),
        "key@GRAD": slopes(lambda k: weights(Q, k, taken) @ V, K, G),
        "value@GRAD": slopes(lambda v: w @ v, V, G),
    }
    outputs = {"out": (w @ V).astype(np.float32), "softmax": softmax}
    return [
        OpCase(
            "sparse_fused_attention",
            given | {"sparse_mask": MASK} | masks,
            {},
            outputs,
            ["query", "key", "value"],
            name=name,
        ),
        OpCase(
            "sparse_fused_attention_grad", given | {"softmax": softmax, "out@GRAD": G}, {}, back, name=name, atol=1e-5
        ),
    ]


CASES = [*case("plain", {}), *case("masked", {"key_padding_mask": PADDING, "attn_mask": PLACES})]
