"""Parameters of quantised nets, which Paddle stores otherwise than its program declares them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from oprack.errors import CorruptParameterError
from oprack.io import load_vars, save_vars
from oprack.program import Program
from oprack.tensor import Scope


def program_of(shape: list[int], dtype: str) -> Program:
    program = Program()
    program.global_block().create_var("w", dtype=dtype, shape=shape, persistable=True)
    return program


def loaded(tmp_path: Path, stored: np.ndarray, shape: list[int], dtype: str, combined: bool) -> np.ndarray:
    """What a program that declares another shape and dtype finds."""
    scope, filename = Scope(), "params" if combined else None
    scope.var("w").set(stored)
    save_vars(tmp_path, program_of(list(stored.shape), stored.dtype.name), scope, filename=filename)
    found = Scope()
    load_vars(tmp_path, program_of(shape, dtype), found, filename=filename)
    return np.asarray(found.var("w").get().array)


@pytest.mark.parametrize("combined", [True, False])
@pytest.mark.parametrize(
    ("stored", "shape", "dtype"),
    [
        (np.float32(0.5), [1], "float32"),
        (np.array([[1, 2, 3]], np.float32), [3], "float32"),
        (np.array([1, 2, 3], np.float32), [1, 3], "float32"),
        (np.array([[-127, 3], [5, 127]], np.int8), [2, 2], "float32"),
    ],
    ids=["scale without a dim", "scales of channels", "scales of rows", "weights of 8 bits"],
)
def test_they_are_taken_as_declared(tmp_path, stored, shape, dtype, combined):
    got = loaded(tmp_path, np.asarray(stored), shape, dtype, combined)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, np.asarray(stored, dtype).reshape(shape))


@pytest.mark.parametrize(
    ("stored", "shape", "dtype"),
    [
        (np.zeros((2, 3), np.float32), [3, 2], "float32"),
        (np.zeros((2, 3), np.float32), [6], "float32"),
        (np.zeros(3, np.int16), [3], "float32"),
        (np.zeros(3, np.float32), [3], "int8"),
    ],
)
def test_all_else_belongs_to_another_program(tmp_path, stored, shape, dtype):
    with pytest.raises(CorruptParameterError, match="belongs to another program"):
        loaded(tmp_path, stored, shape, dtype, True)
