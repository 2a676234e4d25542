"""The functions of native.c, where it was compiled; oprack's other Python threads run meanwhile."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

import numpy as np


@functools.cache
def library() -> ctypes.CDLL | None:
    """The library beside this file; None where the pack was installed without it."""
    try:
        found = ctypes.CDLL(str(Path(__file__).with_name("libnative.so")))
    except OSError:
        return None
    pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_float
    found.{{ cookiecutter.first_op }}.argtypes = [pointer, pointer, size, number]
    found.{{ cookiecutter.first_op }}.restype = None
    return found


def {{ cookiecutter.first_op }}(x: np.ndarray, factor: float) -> np.ndarray:
    """factor times the square of float32 of any shape."""
    found = library()
    assert found is not None
    x = np.asarray(x, np.float32, order="C")  # C sees neither strides nor dtypes
    out = np.empty(x.shape, np.float32)
    found.{{ cookiecutter.first_op }}(x.ctypes.data, out.ctypes.data, x.size, factor)
    return out
