"""sequence_attention: its blocks, what dropout draws, the memory of long sequences, and the words of errors."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import functional as F
from oprack import to_tensor
from oprack.errors import InvalidArgumentError, InvalidLoDError
from oprack_sequence.kernels import _blocks
from oprack_sequence.kernels._blocks import Reach, blocks
from oprack_sequence.kernels.attention import product
from threadpoolctl import threadpool_limits

rng = np.random.default_rng(0)
LENGTHS = [3, 0, 5, 5, 1, 4, 5, 0]


def inputs(lengths: list[int] = LENGTHS, heads: int = 2, width: int = 3, dtype: str = "float64") -> list[Any]:
    lod = [np.cumsum([0, *lengths]).tolist()]
    shape = sum(lengths), heads, width
    return [to_tensor(rng.standard_normal(shape).astype(dtype), lod=lod, requires_grad=True) for _ in range(3)]


def result(given: list[Any], **attrs: Any) -> list[np.ndarray]:
    """Out and the gradients of a weighted sum."""
    for x in given:
        x.grad = None
    out = F.sequence_attention(*given, **attrs)
    (out * to_tensor(np.cos(np.arange(out.size)).reshape(out.shape))).sum().backward()
    return [out.numpy(), *(x.grad.numpy() for x in given)]


@pytest.mark.parametrize("scores", [1, 40, 1 << 18])
@pytest.mark.parametrize("of_a_call", [0, 60, 1 << 30])
@pytest.mark.parametrize("attrs", [{}, {"causal": True}, {"window": [1, 2]}], ids=["all", "causal", "window"])
def test_numbers_do_not_depend_on_the_blocks(
    monkeypatch: pytest.MonkeyPatch, scores: int, of_a_call: int, attrs: dict[str, Any]
) -> None:
    given = [*inputs(), to_tensor(rng.standard_normal((2, 5)), requires_grad=True)]
    wanted = result(given, **attrs)
    monkeypatch.setattr(_blocks, "_SCORES_AT_ONCE", scores)
    monkeypatch.setattr(_blocks, "_QUERIES_AT_LEAST", 1)
    monkeypatch.setattr(_blocks, "_SCORES_OF_A_CALL", of_a_call)
    monkeypatch.setattr(_blocks, "_ELEMENTS_OF_A_CALL", of_a_call)
    for a, b in zip(result(given, **attrs), wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def offsets(lengths: list[int]) -> np.ndarray:
    return np.cumsum([0, *lengths])


def test_sequences_of_one_length_are_one_view() -> None:
    (block,) = blocks(offsets([4, 4, 4]), offsets([6, 6, 6]), 2, 8, Reach())
    assert block.q.view == slice(0, 12) and block.k.view == slice(0, 18) and block.hidden is None


def test_short_sequences_are_padded_into_few_blocks_and_long_ones_stay_alone() -> None:
    lengths = [*range(1, 9)] * 100
    assert len(list(blocks(offsets(lengths), offsets(lengths), 1, 8, Reach()))) <= 4
    long = [400, 401, 402]
    assert [b.sequences.tolist() for b in blocks(offsets(long), offsets(long), 1, 512, Reach())] == [[0], [1], [2]]


def test_a_window_computes_what_it_sees_alone() -> None:
    n = 4000
    found = list(blocks(offsets([n]), offsets([n]), 1, 8, Reach(10, 0, True)))
    assert sum(b.distance.size for b in found) < 0.1 * n * n


@pytest.mark.parametrize("shape", [(100, 64, 128), (128, 128, 64), (33, 256, 60), (5, 3, 4), (40, 64, 2000), (0, 3, 4)])
def test_products_are_computed_in_parts_that_one_thread_takes(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, int, int]
) -> None:
    m, k, n = shape
    a, b = rng.standard_normal((2, 3, m, k)), rng.standard_normal((2, 3, k, n))
    sizes, matmul = [], np.matmul

    def counted(x: np.ndarray, y: np.ndarray, **out: np.ndarray) -> np.ndarray:
        sizes.append(x.shape[2] * x.shape[3] * y.shape[3])
        return matmul(x, y, **out)

    monkeypatch.setattr(np, "matmul", counted)
    found = product(a, b, np)
    np.testing.assert_allclose(found, np.einsum("shmk,shkn->shmn", a, b), rtol=1e-9, atol=1e-9)
    assert max(sizes) <= 1 << 18 or n * k > (1 << 18) // 16


def test_memory_of_a_long_sequence_is_that_of_its_rows() -> None:
    given = inputs([3000], heads=4, dtype="float32")
    with threadpool_limits(1, "blas"):  # many products, which wait for each other's threads where others work as well
        result(given)  # what is made once
        tracemalloc.start()
        try:
            result(given)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < 0.2 * 4 * 3000 * 3000 * 4, f"{peak} bytes; all scores would be {4 * 3000 * 3000 * 4}"


def test_dropout_drops_a_share_and_keeps_the_mean() -> None:
    q, k, v = inputs([400, 300], heads=1)
    n = np.repeat([400, 300], [400, 300])
    ones = to_tensor(np.ones((700, 1, 3)), lod=q.lod)
    weights = F.sequence_attention(q * 0, k, ones, dropout_p=0.25, seed=7).numpy()[:, 0, 0]
    kept = weights * n * 0.75  # each weight is 1 / n / (1 - p), or 0
    np.testing.assert_allclose(kept, np.round(kept), atol=1e-6)
    share = kept / n
    assert abs(share.mean() - 0.75) < 0.005 and share.std() > 0.01
    np.testing.assert_array_equal(
        F.sequence_attention(q, k, v, dropout_p=0.25, seed=7).numpy(),
        F.sequence_attention(q, k, v, dropout_p=0.25, seed=7).numpy(),
    )
    first, second = (F.sequence_attention(q, k, v, dropout_p=0.25).numpy() for _ in range(2))
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("seed", [0, 7])
def test_the_gradient_drops_what_the_result_dropped(seed: int) -> None:
    """The result is linear in the values, so that it and its transpose have the same products."""
    q, k, v = inputs()
    out = F.sequence_attention(q, k, v, dropout_p=0.5, seed=seed)
    g = rng.standard_normal(out.shape)
    (out * to_tensor(g)).sum().backward()
    np.testing.assert_allclose((v.grad.numpy() * v.numpy()).sum(), (out.numpy() * g).sum(), rtol=1e-9)
    if seed:
        drop = lambda *given: F.sequence_attention(*given, dropout_p=0.5, seed=seed)  # noqa: E731
        assert oprack.gradcheck(drop, [q, k, v]) == []


X = inputs([2, 1])


def _with_lod(x: Any, lod: list[list[int]]) -> Any:
    return to_tensor(x.numpy(), lod=lod)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: F.sequence_attention(X[0], to_tensor(X[1].numpy()), X[2]), InvalidLoDError, "input K .*has no LoD"),
        (
            lambda: F.sequence_attention(X[0], _with_lod(X[1], [[0, 3]]), X[2]),
            InvalidLoDError,
            "Q has 2 sequences and K 1",
        ),
        (
            lambda: F.sequence_attention(X[0], *inputs([2, 1], heads=3)[:2]),
            InvalidArgumentError,
            "Q has 2 heads and K 3; expected a number that divides 2",
        ),
        (lambda: F.sequence_attention(*X, window=[1]), InvalidArgumentError, r"window is \[1\]; expected two numbers"),
        (
            lambda: F.sequence_attention(*X, to_tensor(np.zeros((2, 4)))),
            InvalidArgumentError,
            "RelativeBias has 4 columns; expected an odd number",
        ),
        (
            lambda: F.flash_attn_unpadded(
                *(x.numpy() for x in X), *[np.int32([0, 2, 4])] * 2, max_seqlen_q=2, max_seqlen_k=2, scale=1.0
            ),
            InvalidArgumentError,
            r"cu_seqlens is \[0, 2, 4\]; expected offsets that ascend from 0 to the 3 rows",
        ),
        (
            lambda: F.flash_attn_unpadded(
                *(x.numpy() for x in X), *[np.int32([0, 2, 3])] * 2, max_seqlen_q=1, max_seqlen_k=2, scale=1.0
            ),
            InvalidArgumentError,
            "the longest sequence has 2 rows, and max_seqlen is 1; expected at least 2",
        ),
    ],
)
def test_messages(call: Callable[[], Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call()
