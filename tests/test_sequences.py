"""oprack.sequences: rows with LoD from other forms and back, and batches by number of tokens."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import io, sequences
from oprack.errors import InvalidArgumentError, InvalidLoDError

LENGTHS = (3, 0, 2, 0)
ROWS = np.arange(10, dtype="float32").reshape(5, 2)
PARTS = [ROWS[:3], ROWS[3:3], ROWS[3:5], ROWS[5:]]
OFFSETS = [0, 3, 3, 5, 5]


def address(array: Any) -> int:
    return array.__array_interface__["data"][0]


def rows() -> oprack.Tensor:
    return oprack.to_tensor(ROWS, lod=[OFFSETS])


def test_lists() -> None:
    x = sequences.from_list(PARTS)
    assert x.lod == [OFFSETS] and sequences.lengths(x).tolist() == list(LENGTHS)
    np.testing.assert_array_equal(x.numpy(), ROWS)
    back = sequences.to_list(x)
    assert len(back) == 4 and all(np.array_equal(a, b) and a.shape == b.shape for a, b in zip(back, PARTS, strict=True))
    assert sequences.from_list([[1, 2], [3]], "int32").dtype == "int32"


def test_lists_of_lists_have_two_levels() -> None:
    x = sequences.from_list([[[1, 2], [3]], [[4, 5, 6]]])
    assert x.lod == [[0, 2, 3], [0, 2, 3, 6]]
    assert [[a.tolist() for a in part] for part in sequences.to_list(x)] == [[[1, 2], [3]], [[4, 5, 6]]]


def test_padded_and_back() -> None:
    padded, mask = sequences.to_padded(rows(), length=4, value=-1.0)
    wanted = np.full((4, 4, 2), -1, "float32")
    for i, part in enumerate(PARTS):
        wanted[i, : len(part)] = part
    np.testing.assert_array_equal(padded.numpy(), wanted)
    np.testing.assert_array_equal(mask.numpy(), np.arange(4) < np.array(LENGTHS)[:, None])
    for given in ({"lengths": LENGTHS}, {"mask": mask}):
        back = sequences.from_padded(padded, **given)
        assert back.lod == [OFFSETS]
        np.testing.assert_array_equal(back.numpy(), ROWS)


def test_gradients_flow_through_padding() -> None:
    x = oprack.to_tensor(ROWS, lod=[OFFSETS], requires_grad=True)
    padded, mask = sequences.to_padded(x)
    weights = np.arange(padded.size, dtype="float32").reshape(padded.shape)
    (sequences.from_padded(padded * weights, mask=mask) * 2.0).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * weights[mask.numpy()])


def test_cumulative_lengths_share_the_rows() -> None:
    x = sequences.from_cu_seqlens(ROWS, np.array(OFFSETS, "int32"))
    assert x.lod == [OFFSETS] and address(x.value.array) == address(ROWS)
    values, offsets = sequences.to_cu_seqlens(x)
    assert address(values) == address(ROWS) and offsets.dtype == np.int32 and offsets.tolist() == OFFSETS
    tensor = oprack.to_tensor(ROWS, requires_grad=True)
    sequences.from_cu_seqlens(tensor, OFFSETS).sum().backward()
    np.testing.assert_array_equal(tensor.grad.numpy(), np.ones_like(ROWS))


def test_ragged_tensors_as_tensorflow_has_them() -> None:
    """By a stand-in of two attributes; test_tensorflow asks TensorFlow itself."""
    inner = SimpleNamespace(values=ROWS, row_splits=np.array(OFFSETS))
    x = sequences.from_ragged(SimpleNamespace(values=inner, row_splits=np.array([0, 1, 4])))
    assert x.lod == [[0, 1, 4], OFFSETS] and address(x.value.array) == address(ROWS)


def test_tensorflow() -> None:
    tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
    ragged = tf.RaggedTensor.from_row_splits(ROWS, OFFSETS)
    x = sequences.from_ragged(ragged)
    assert x.lod == [OFFSETS]
    assert sequences.to_ragged(x).to_list() == ragged.to_list()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sequences.from_list([]), "expected at least one array"),
        (lambda: sequences.from_list([1, 2]), "a sequence is a single number"),
        (lambda: sequences.from_padded(ROWS), "got neither of lengths and mask"),
        (lambda: sequences.from_padded(ROWS, [1] * 5, ROWS), "got both of lengths and mask"),
        (lambda: sequences.from_padded(ROWS, [3] * 5), "expected an integer from 0 to 2 for each sequence"),
        (lambda: sequences.from_padded(ROWS, [1.5] * 5), "expected an integer from 0 to 2 for each sequence"),
        (lambda: sequences.to_padded(rows(), length=2), "length is 2, but the longest sequence has 3 rows"),
        (lambda: sequences.from_nested(ROWS), "expected a nested tensor with layout=torch.jagged"),
        (lambda: sequences.from_ragged(ROWS), r"expected a tf\.RaggedTensor"),
        (lambda: sequences.from_arrow(ROWS), r"expected a pyarrow\.ListArray"),
    ],
)
def test_what_is_refused(call: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        call()


def test_rows_want_lod() -> None:
    for function in (sequences.lengths, sequences.to_list, sequences.to_padded, sequences.to_cu_seqlens):
        with pytest.raises(InvalidLoDError, match=r"expected rows with LoD, as oprack\.sequences\.from_list"):
            function(oprack.to_tensor(ROWS))
    with pytest.raises(InvalidLoDError, match="2 levels of LoD; expected one"):
        sequences.to_padded(sequences.from_list([[[1, 2], [3]]]))
    with pytest.raises(InvalidLoDError):
        sequences.from_cu_seqlens(ROWS, [0, 7])


# Batches by number of tokens ------------------------------------------------------------------------------------------
def test_batches_have_about_as_many_tokens() -> None:
    sampler = io.TokenBatchSampler([3, 4, 2, 12, 1, 0, 9, 1], max_tokens=9)
    assert list(sampler) == [[0, 1, 2], [3], [4, 5], [6], [7]]
    assert len(sampler) == 5
    assert list(io.TokenBatchSampler([3, 4, 2], 9, sampler=[2, 0], drop_last=True)) == []


def test_batches_by_tokens_in_a_loader() -> None:
    lengths = np.random.default_rng(0).integers(0, 20, 50)
    data = [np.full((n, 2), i, "float32") for i, n in enumerate(lengths)]

    def epoch(workers: int) -> list[tuple[list[int], list[list[int]]]]:
        oprack.seed(3)
        sampler = io.TokenBatchSampler(lengths, 64, shuffle=True)
        loader = io.DataLoader(data, batch_sampler=sampler, collate_fn=io.lod_collate, num_workers=workers)
        return [(x.numpy()[:, 0].tolist(), x.lod) for x in loader]

    batches = epoch(0)
    assert all(len(values) <= 64 for values, _ in batches)
    assert sorted(v for values, _ in batches for v in values) == sorted(np.repeat(np.arange(50), lengths).tolist())
    assert sum(len(lod[0]) - 1 for _, lod in batches) == 50
    assert epoch(2) == batches


def test_what_a_token_batch_sampler_refuses() -> None:
    with pytest.raises(InvalidArgumentError, match="max_tokens is 0"):
        io.TokenBatchSampler([1], 0)
    with pytest.raises(InvalidArgumentError, match="expected an integer of at least 0"):
        io.TokenBatchSampler([1, -1], 4)
    with pytest.raises(TypeError, match="depends on the order"):
        len(io.TokenBatchSampler([1], 4, shuffle=True))
