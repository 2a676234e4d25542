"""Arguments of CUDA kernels are compared with what the sources declare, before any kernel is launched."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from oprack.errors import InvalidArgumentError
from oprack_cuda import raw
from oprack_cuda.parameters import Check, kernels_of
from oprack_cuda.testing import xp

SCALARS = {"i64": np.int64, "u64": np.uint64, "int": np.int32, "double": np.float64}
KERNELS = [
    (path.name, name, parameters)
    for path in sorted(raw.SOURCES.glob("*.cu"))
    for name, parameters in kernels_of(Path(path).read_text("utf-8")).items()
]


def arguments_of(parameters):
    """Valid ones: every scalar is 3, every array as large as its kernel asks for."""
    scope = {p.name: 3 for p in parameters if not p.is_pointer}
    sizes = [eval(p.size or "5", {}, scope) if p.is_pointer else 0 for p in parameters]
    return [
        np.ones(size, p.dtype("float32")) if p.is_pointer else SCALARS[p.type](3)
        for p, size in zip(parameters, sizes, strict=True)
    ]


@pytest.mark.parametrize("file, name, parameters", KERNELS, ids=[name for _, name, _ in KERNELS])
def test_each_argument_is_checked(file, name, parameters):
    check, valid = Check(name, parameters, "float32"), arguments_of(parameters)
    check(valid)

    def refused(i, other):
        with pytest.raises(InvalidArgumentError, match=f"CUDA kernel {name}: got .*expected"):
            check([*valid[:i], other, *valid[i + 1 :]])

    for i, parameter in enumerate(parameters):
        if not parameter.is_pointer:
            refused(i, 3)
            continue
        array = valid[i]
        for dtype in {"float64", "float16", "int32", "uint8"} - {array.dtype.name}:
            refused(i, array.astype(dtype))
        refused(i, np.repeat(array, 2)[::2]) if array.size > 1 else None
        if parameter.size:
            refused(i, array[:-1])
        check([*valid[:i], None, *valid[i + 1 :]])  # a null pointer
    with pytest.raises(InvalidArgumentError, match="arguments; expected"):
        check(valid[:-1])


def test_most_arrays_have_a_declared_size():
    pointers = [p for _, _, parameters in KERNELS for p in parameters if p.is_pointer]
    assert len([p for p in pointers if p.size]) > 0.8 * len(pointers)


def test_nothing_is_launched_with_an_argument_that_does_not_fit(monkeypatch):
    launched = []
    monkeypatch.setitem(raw._BACKENDS, xp.__name__, lambda *kernel: lambda *given: launched.append(kernel))
    softmax = raw.function(xp, "normalize.cu", "softmax", "float32")
    x, y, count = xp.zeros((4, 5), "float32"), xp.zeros((4, 5), "float32"), np.int64
    for given in ((x, y, count(4), count(6)), (x.astype("float64"), y, count(4), count(5)), (x, y, 4, count(5))):
        with pytest.raises(InvalidArgumentError):
            softmax(4, 32, *given)
    assert not launched
    softmax(4, 32, x, y, count(4), count(5))
    assert launched == [("normalize.cu", "softmax", "float32")]
