"""oprack.sequences with the true libraries: nested tensors of PyTorch, lists of Arrow."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import sequences
from oprack.errors import InvalidArgumentError, InvalidLoDError

torch = pytest.importorskip("torch")
ROWS = np.arange(10, dtype="float32").reshape(5, 2)
OFFSETS = [0, 3, 3, 5, 5]


def rows() -> Any:
    return oprack.to_tensor(ROWS, lod=[OFFSETS])


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def test_nested_tensors_share_their_values() -> None:
    parts = [torch.from_numpy(ROWS[a:b]) for a, b in pairwise(OFFSETS)]
    nested = torch.nested.nested_tensor(parts, layout=torch.jagged, requires_grad=True)
    x = sequences.from_nested(nested)
    assert x.lod == [OFFSETS] and x.dtype == "float32"
    np.testing.assert_array_equal(x.numpy(), ROWS)
    assert address(x.value.array) == nested.values().data_ptr()


def test_nested_tensors_are_made_on_the_rows() -> None:
    x = rows()
    nested = sequences.to_nested(x)
    assert nested.layout == torch.jagged and nested.offsets().tolist() == OFFSETS
    assert nested.values().data_ptr() == address(x.value.array)
    np.testing.assert_array_equal(sequences.from_nested(nested).numpy(), ROWS)


def test_nested_tensors_with_holes_are_refused() -> None:
    nested = torch.nested.narrow(
        torch.ones(2, 4, 3), 1, torch.tensor([0, 1]), torch.tensor([2, 2]), layout=torch.jagged
    )
    with pytest.raises(InvalidArgumentError, match=r"holes between its sequences; expected nested\.contiguous\(\)"):
        sequences.from_nested(nested)


def test_nested_tensors_whose_jagged_dim_is_another_are_refused() -> None:
    """Also where its rows are as many as the numbers of a row."""
    nested = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 3)], layout=torch.jagged)
    with pytest.raises(InvalidLoDError, match=r"dim 2 of the tensor is the jagged one; expected dim 1"):
        sequences.from_nested(nested.transpose(1, 2))


def test_lists_of_arrow_share_their_values() -> None:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    array = pa.array([[1.0, 2.0], [], [3.0]], pa.list_(pa.float32()))
    x = sequences.from_arrow(array)
    assert x.lod == [[0, 2, 2, 3]] and x.numpy().tolist() == [1, 2, 3]
    assert address(x.value.array) == array.values.buffers()[1].address
    assert sequences.from_arrow(array.slice(1)).lod == [[0, 0, 1]]
    assert sequences.from_arrow(pa.chunked_array([array, array])).lod == [[0, 2, 2, 3, 5, 5, 6]]
    deep = pa.array([[[1], [2, 3]], []], pa.large_list(pa.list_(pa.int64())))
    assert sequences.from_arrow(deep).lod == [[0, 2, 2], [0, 1, 3]]


def test_lists_of_arrow_are_made_on_the_rows() -> None:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    x = rows()
    array = sequences.to_arrow(x)
    assert isinstance(array, pa.LargeListArray) and array.to_pylist()[2] == ROWS[3:].tolist()
    assert array.values.values.buffers()[1].address == address(x.value.array)
    back = sequences.from_arrow(array)
    assert back.lod == [OFFSETS] and address(back.value.array) == address(x.value.array)
    np.testing.assert_array_equal(back.numpy(), ROWS)


def test_nulls_are_refused() -> None:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    for values in ([[1], None], [[1, None]]):
        with pytest.raises(InvalidArgumentError, match=r"1 of the .* are null; expected none"):
            sequences.from_arrow(pa.array(values, pa.list_(pa.int64())))
