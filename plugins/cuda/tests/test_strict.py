"""Strict arrays refuse what CuPy refuses, and count what waits and what copies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oprack_cuda.testing import LOG, StrictArray, xp
from oprack_cuda.testing.surface import parse_signature, signature_text

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def x() -> StrictArray:
    LOG.clear()
    return xp.asarray(X)


def host(array: Any) -> np.ndarray:
    assert type(array) is StrictArray
    return array._host


def test_operators_and_functions_agree_with_numpy(x: StrictArray) -> None:
    assert np.array_equal(host((x + 1) * 2 - x / 3), (X + 1) * 2 - X / 3)
    assert np.array_equal(host(1 - x), 1 - X) and np.array_equal(host(np.float32(2) * x), 2 * X)
    assert np.array_equal(host(x @ x.T), X @ X.T) and np.array_equal(host(-x), -X)
    assert np.array_equal(host(xp.concatenate([x, x], axis=1)), np.concatenate([X, X], axis=1))
    assert np.array_equal(host(x.sum(axis=0, keepdims=True)), X.sum(axis=0, keepdims=True))
    x += 1
    x[0] = 7
    assert host(x).tolist() == [[7, 7, 7], [4, 5, 6]]
    assert host(xp.ogrid[:2, :3][1]).tolist() == [[0, 1, 2]]


def test_results_are_arrays_of_rank_0_and_never_scalars(x: StrictArray) -> None:
    for value in (x.max(), x[0, 0], xp.sum(x), next(iter(x[0]))):
        assert type(value) is StrictArray and value.shape == ()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: np.exp(x), "numpy.exp was called on an array of the device; write xp.exp"),
        (lambda x: np.concatenate([x, x]), "numpy.concatenate was called on an array of the device"),
        (lambda x: np.asarray(x), "implicit conversion to a NumPy array is not allowed"),
        (lambda x: X + x, "numpy.add was called on an array of the device"),
        (lambda x: x + X, "got a numpy.ndarray"),
        (lambda x: x[np.array([0])], "got a numpy.ndarray"),
        (lambda x: xp.concatenate([x, X]), "xp.concatenate: got a numpy.ndarray"),
        (lambda x: xp.exp(X), "xp.exp: got a numpy.ndarray"),
        (lambda x: xp.maximum(1.0, 2.0), "xp.maximum: no operand is an array of the device"),
        (lambda x: x * [1, 2, 3], "an operand is a list"),
        (lambda x: x[: x.argmax()], "a bound of a slice is an array of the device"),
        (lambda x: xp.zeros(x.argmax()), "a shape, an axis or a count is an array of the device"),
        (lambda x: x.reshape(x.argmax(), 1), "a shape, an axis or a count is an array of the device"),
        (lambda x: xp.sort(x, order=None), "got an unexpected keyword argument 'order'"),
        (lambda x: x.sum(initial=0), "got an unexpected keyword argument 'initial'"),
        (lambda x: xp.subtract(x > 0, x > 1, dtype=bool), "not supported"),
        (lambda x: xp.add.at((x > 0), xp.asarray([0]), True), "a device has no atomic operation for bool"),
        (lambda x: xp.lexsort((x[0], x[1])), "expected one array of the device"),
    ],
)
def test_what_a_device_refuses_is_a_type_error(x: StrictArray, call: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call(x)


def test_names_that_cupy_does_not_have(x: StrictArray) -> None:
    with pytest.raises(AttributeError, match=r"cupy 14\.\d+\.\d+ has no 'nested_iters'"):
        xp.nested_iters  # noqa: B018
    with pytest.raises(AttributeError, match="has no 'ctypes'"):
        x.ctypes  # noqa: B018
    with pytest.raises(NotImplementedError, match=r"cupy.multiply.at does not exist"):
        xp.multiply.at(x, 0, 2)
    with pytest.raises(NotImplementedError, match=r"cupy.maximum.reduceat does not exist"):
        xp.maximum.reduceat(x, xp.asarray([0]))


def test_an_index_that_names_an_element_twice(x: StrictArray) -> None:
    with pytest.raises(ValueError, match="names an element twice"):
        x[xp.asarray([0, 0]), xp.asarray([1, 1])] = xp.asarray([5.0, 6.0])
    x[xp.asarray([0, 0]), xp.asarray([1, 1])] = xp.asarray([5.0, 5.0])
    assert host(x)[0, 1] == 5


def test_waits_and_copies_are_counted(x: StrictArray) -> None:
    LOG.clear()
    if x.max() > 3:
        float(x.min())
    x[x > 3].tolist()
    xp.nonzero(x)
    assert sum(LOG.waits.values()) == 5 and not LOG.copies
    xp.asarray([1, 2])
    x[[0, 1]]
    assert sum(LOG.copies.values()) == 2
    assert next(iter(LOG.copies)).endswith("test_waits_and_copies_are_counted: xp.asarray(host memory)")


def test_bfloat16_has_loops_of_its_own() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="bfloat16 needs ml_dtypes")
    x = xp.asarray(np.ones(3, ml_dtypes.bfloat16))
    assert (x + x).dtype == ml_dtypes.bfloat16 and xp.exp(x).dtype == ml_dtypes.bfloat16


def test_signatures_survive_their_text() -> None:
    import inspect

    def function(a: int, b: int = 1, *args: int, c: int, d: int = 2, **rest: int) -> None: ...

    text = signature_text(inspect.signature(function))
    assert text == "a b= *args c d= **rest" and signature_text(parse_signature(text)) == text
    assert signature_text(parse_signature("a * b=")) == "a * b="
