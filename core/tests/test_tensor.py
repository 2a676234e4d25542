"""Values and scopes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oprack.errors import InvalidArgumentError, InvalidLoDError, NotFoundError, PreconditionNotMetError
from oprack.tensor import (
    LoDTensor,
    Scope,
    SelectedRows,
    check_lod,
    lod_from_lengths,
    lod_to_lengths,
    merge_rows,
    numpy_dtype,
)
from oprack.types import VarType, dtype_enum, dtype_name


def test_lengths_and_offsets() -> None:
    assert lod_from_lengths([[2, 0], [1, 3]]) == [[0, 2, 2], [0, 1, 4]]
    assert lod_to_lengths([[0, 2, 2], [0, 1, 4]]) == [[2, 0], [1, 3]]


@pytest.mark.parametrize(
    ("lod", "rows", "text"),
    [
        (3, 2, "expected a list of levels"),
        ([[]], 2, "expected offsets that start at 0"),
        ([[0, 3, 2]], 2, "level 0 decreases from 3 to 2 at position 2"),
        ([[0, 1]], 2, "level 0 ends at 1; expected 2, the tensor's rows"),
        ([[0, 1], [0, 1, 2]], 2, "level 0 ends at 1; expected 2, the number of sequences of level 1"),
        ([[0, "a"]], 2, "expected a list of levels"),
        ([[0, 2.5]], 2, "expected a list of levels"),
        (["02"], 2, "expected a list of levels"),
    ],
)
def test_bad_lod(lod: object, rows: int, text: str) -> None:
    with pytest.raises(InvalidLoDError, match=text):
        check_lod(lod, rows)


def test_a_tensor_is_an_array_with_lod() -> None:
    t = LoDTensor(np.ones((5, 2), np.float32), [[0, 0, 5]])
    assert (t.dtype, t.shape, t.lod, len(t)) == ("float32", (5, 2), [[0, 0, 5]], 5)
    assert t.recursive_sequence_lengths() == [[0, 5]]
    assert np.asarray(t) is t.array, "np.asarray does not copy"
    assert np.array(t) is not t.array and "lod=[[0, 0, 5]]" in repr(t)
    assert LoDTensor([1, 2]).dtype == "int64" and LoDTensor(np.float32(3)).shape == ()


def test_selected_rows_add_up() -> None:
    r = SelectedRows(rows=[3, 0, 3], value=np.array([[1.0], [2.0], [4.0]]), height=5)
    assert r.shape == (5, 1) and r.to_dense()[:, 0].tolist() == [2, 0, 0, 5, 0]
    merged = r.merged()
    assert merged.rows.tolist() == [0, 3] and (merged.to_dense() == r.to_dense()).all()
    with pytest.raises(InvalidArgumentError, match="1 rows but value has shape"):
        SelectedRows([1], np.zeros((2, 1)), 5)
    with pytest.raises(InvalidArgumentError, match=r"rows lie in \[1, 7\] but height is 5"):
        SelectedRows([1, 7], np.zeros((2, 1)), 5)
    with pytest.raises(InvalidArgumentError, match=r"rows are float64; expected integers"):
        SelectedRows([0.5], np.zeros((1, 1)), 5)
    assert SelectedRows([], np.zeros((0, 3)), 4).merged().to_dense().shape == (4, 3)


def test_dtypes_by_name_number_and_object() -> None:
    assert (
        dtype_name(5) == dtype_name(VarType.FP32) == dtype_name(np.float32) == dtype_name(np.dtype("f4")) == "float32"
    )
    assert dtype_enum("bool") is VarType.BOOL and numpy_dtype("bfloat16").itemsize == 2
    for wrong in ("float31", 7, object()):
        with pytest.raises(InvalidArgumentError, match="dtype"):
            dtype_name(wrong)


def test_scopes_are_a_tree() -> None:
    root = Scope()
    root.var("w").set(np.ones(2))
    kid = root.new_scope()
    kid.var("x")
    assert kid.find_var("w") is root.var("w") and root.find_var("x") is None
    assert kid.local_var_names() == ["x"] and set(kid.all_var_names()) == {"x", "w"}
    kid.var("w").set(np.zeros(1))
    assert root.var("w").get().shape == (2,), "a variable of a child hides its parent's"
    with pytest.raises(PreconditionNotMetError, match="variable 'x' holds no value"):
        kid.var("x").get()
    with pytest.raises(NotFoundError, match=r"variable 'ww' is not in the scope \(did you mean w"):
        kid.get_var("ww")
    kid.rename("x", "y")
    kid.erase(["w", "unknown"])
    assert kid.local_var_names() == ["y"] and "w" in kid
    root.delete_scope(kid)
    assert root.kids() == []


def test_scopes_refuse_what_they_do_not_have() -> None:
    scope = Scope()
    with pytest.raises(NotFoundError, match="rename 'a' to 'b': this scope has no variable 'a'"):
        scope.rename("a", "b")
    with pytest.raises(NotFoundError, match="it is not a child of this scope"):
        scope.delete_scope(Scope())
    kid = scope.new_scope()
    scope.delete_scope(kid)
    with pytest.raises(NotFoundError):
        scope.delete_scope(kid)


@pytest.mark.parametrize("height", [1, 2, 30, 5000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_merged_rows_are_the_sums_of_their_values(height: int, dtype: Any) -> None:
    rng = np.random.default_rng(height)
    for count in (0, 1, 7, 400):
        rows, value = rng.integers(0, height, count), rng.integers(-9, 10, (count, 3)).astype(dtype)
        dense = np.zeros((height, 3), dtype)
        np.add.at(dense, rows, value)
        distinct, sums = merge_rows(rows, value)
        assert distinct.tolist() == sorted(set(rows.tolist())) and sums.dtype == dtype
        assert (sums == dense[distinct]).all()
        assert (SelectedRows(rows, value, height).to_dense() == dense).all()
