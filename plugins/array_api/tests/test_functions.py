"""Functions of oprack.array_api against NumPy's of the same name, and their gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import array_api as xp
from oprack.errors import InvalidArgumentError, UnknownLayerError
from oprack_array_api.pack import NAMES

RNG = np.random.default_rng(7)
FLAT = RNG.normal(size=(3, 4))
SQUARE = RNG.normal(size=(2, 3, 3)) + 3 * np.eye(3)
COMPLEX = (FLAT + 1j * RNG.normal(size=(3, 4))).astype("complex64")

UNARY = (
    "acos acosh asin asinh atan atanh ceil cos cosh exp expm1 floor log log10 log1p log2 reciprocal round sign sin sinh"
)
UNARY += " sinh sqrt square tan tanh trunc abs conj isfinite isinf isnan logical_not negative positive signbit"
BINARY = (
    "add atan2 copysign divide equal floor_divide greater greater_equal hypot less less_equal logaddexp logical_and"
)
BINARY += " logical_or logical_xor maximum minimum multiply nextafter not_equal pow remainder subtract"
OF_COMPLEX = "acos asin atan conj cos exp expm1 imag isfinite log log10 log1p log2 real reciprocal round sign sin sqrt"
OF_COMPLEX += " square tanh"
SPECIAL = np.array([0.5, -0.5, 1.5, -2.5, 0.0, -0.0, np.inf, -np.inf, np.nan, 3e-9])


def same(found: Any, wanted: Any, tolerance: float = 1e-6) -> None:
    """Dtype, shape and values."""
    wanted = np.asarray(wanted)
    assert type(found) is oprack.Tensor and found.dtype == wanted.dtype.name and found.shape == wanted.shape
    np.testing.assert_allclose(found.numpy(), wanted, tolerance, tolerance)


@pytest.mark.parametrize("name", UNARY.split())
def test_unary(name: str) -> None:
    for x in (SPECIAL, FLAT.astype("float32"), np.float32(0.25), np.zeros((0, 2))):
        with np.errstate(all="ignore"):
            wanted = getattr(np, name)(x)
            same(getattr(xp, name)(xp.asarray(np.asarray(x))), wanted)


@pytest.mark.parametrize("name", OF_COMPLEX.split())
def test_unary_of_complex_numbers(name: str) -> None:
    same(getattr(xp, name)(xp.asarray(COMPLEX)), getattr(np, name)(COMPLEX), 1e-5)


@pytest.mark.parametrize("name", BINARY.split())
def test_binary(name: str) -> None:
    a, b = FLAT.astype("float32"), SPECIAL[:4].astype("float32")
    with np.errstate(all="ignore"):
        for x, y in ((a, b), (b, a), (a, np.float32(2.0)), (a[:, :1], b), (np.zeros((0, 4), "float32"), b)):
            same(getattr(xp, name)(xp.asarray(np.asarray(x)), xp.asarray(np.asarray(y))), getattr(np, name)(x, y))
        same(getattr(xp, name)(xp.asarray(a), 2.0), getattr(np, name)(a, np.float32(2.0)))
        same(getattr(xp, name)(0.5, xp.asarray(a)), getattr(np, name)(np.float32(0.5), a))


@pytest.mark.parametrize("dtype", [d for d in xp.__array_namespace_info__().dtypes(kind="integral")])
def test_integers_of_every_dtype(dtype: str) -> None:
    a, b = np.array([[1, 5, 100], [0, 7, 2]], dtype), np.array([3, 2, 1], dtype)
    x, y = xp.asarray(a), xp.asarray(b)
    for (
        name
    ) in "add subtract multiply floor_divide remainder maximum minimum equal less bitwise_and bitwise_or pow".split():
        same(getattr(xp, name)(x, y), getattr(np, name)(a, b))
    same(xp.bitwise_left_shift(x, y), np.left_shift(a, b))
    same(xp.sum(x, axis=0), a.sum(axis=0, dtype="uint64" if dtype.startswith("u") else "int64"))
    same(xp.sort(x, axis=1, descending=True), np.sort(a, axis=1)[:, ::-1])
    same(x[:, 1], a[:, 1])
    same(x[x > 1], a[a > 1])
    x[0, 1:] = y[:2]
    a[0, 1:] = b[:2]
    same(x, a)


REDUCTIONS: list[tuple[str, dict[str, Any]]] = [
    (name, over)
    for name in ("sum", "prod", "max", "min", "mean", "std", "var", "all", "any", "count_nonzero")
    for over in ({}, {"axis": 1}, {"axis": (0, 2), "keepdims": True}, {"axis": (), "keepdims": True})
]


@pytest.mark.parametrize(("name", "over"), REDUCTIONS)
def test_reductions(name: str, over: dict[str, Any]) -> None:
    x = RNG.integers(-2, 3, (2, 3, 4)).astype("float64")
    same(getattr(xp, name)(xp.asarray(x), **over), getattr(np, name)(x, **over))
    if name in ("sum", "prod", "mean"):
        z = x + 1j
        same(getattr(xp, name)(xp.asarray(z), **over), getattr(np, name)(z, **over))
    if over and name in ("sum", "prod", "all", "any"):
        none = np.zeros((2, 0, 4), "float32")
        same(getattr(xp, name)(xp.asarray(none), **over), getattr(np, name)(none, **over))


def test_standard_deviation_with_a_correction() -> None:
    same(xp.std(xp.asarray(FLAT), axis=0, correction=1), FLAT.std(axis=0, ddof=1))


def test_running_sums_and_differences() -> None:
    x = xp.asarray(FLAT)
    same(xp.cumulative_sum(x, axis=1), FLAT.cumsum(axis=1))
    same(xp.cumulative_prod(x, axis=0, include_initial=True), np.cumulative_prod(FLAT, axis=0, include_initial=True))
    same(xp.diff(x, n=2, prepend=x[:, :1]), np.diff(FLAT, n=2, prepend=FLAT[:, :1]))


def test_shapes() -> None:
    x = xp.asarray(FLAT)
    same(xp.reshape(x, (2, -1)), FLAT.reshape(2, -1))
    same(xp.reshape(xp.zeros((0, 3)), (3, 0, 2)), np.zeros((3, 0, 2), "float32"))
    same(xp.moveaxis(xp.asarray(SQUARE), 0, -1), np.moveaxis(SQUARE, 0, -1))
    same(xp.roll(x, (5, -1), axis=(0, 1)), np.roll(FLAT, (5, -1), (0, 1)))
    same(xp.flip(x), np.flip(FLAT))
    same(xp.tile(x, (2, 1, 2)), np.tile(FLAT, (2, 1, 2)))
    same(xp.repeat(x, xp.asarray([2, 0, 1]), axis=0), np.repeat(FLAT, [2, 0, 1], 0))
    same(xp.expand_dims(x, (0, 3)), FLAT[None, :, :, None])
    same(
        xp.concat([x, xp.asarray([[1]], dtype="int8").astype("float32") * xp.ones((1, 4))]),
        np.vstack([FLAT, np.ones(4)]),
    )
    same(xp.take(x, xp.asarray([[2, -1]]), axis=1), np.take(FLAT, [[2, -1]], 1))
    order = np.argsort(FLAT, axis=1)
    same(xp.take_along_axis(x, xp.asarray(order), axis=1), np.take_along_axis(FLAT, order, 1))
    for found, wanted in zip(xp.meshgrid(x[0], x[1, :2]), np.meshgrid(FLAT[0], FLAT[1, :2]), strict=True):
        same(found, wanted)
    for found, wanted in zip(xp.unstack(x, axis=1), FLAT.T, strict=True):
        same(found, wanted)
    for found, wanted in zip(xp.broadcast_arrays(x, x[0]), np.broadcast_arrays(FLAT, FLAT[0]), strict=True):
        same(found, wanted)


def test_sets_and_order() -> None:
    a = np.array([[2.0, -1.0, np.nan], [2.0, np.nan, 0.0]])
    found = xp.unique_all(xp.asarray(a))
    same(found.values, np.unique(a, equal_nan=False))
    assert found.counts.tolist() == [1, 1, 2, 1, 1] and found.indices.tolist() == [1, 5, 0, 2, 4]
    assert found.inverse_indices.tolist() == [[2, 0, 3], [2, 4, 1]]
    ties = np.array([1, 0, 1, 0])
    assert xp.argsort(xp.asarray(ties), descending=True).tolist() == [0, 2, 1, 3]
    same(xp.searchsorted(xp.asarray([1.0, 2.0, 4.0]), xp.asarray([[2.0], [5.0]]), side="right"), np.int64([[2], [3]]))
    same(xp.nonzero(xp.asarray(ties))[0], np.int64([0, 2]))
    same(xp.argmax(xp.asarray(FLAT), axis=0, keepdims=True), FLAT.argmax(0, keepdims=True))
    same(xp.where(xp.asarray(ties > 0), xp.asarray(FLAT), 0.0), np.where(ties > 0, FLAT, 0.0))


def test_linear_algebra() -> None:
    x = xp.asarray(SQUARE)
    la, na = xp.linalg, np.linalg
    for name in ("det", "inv", "svdvals", "matrix_norm", "pinv"):
        same(getattr(la, name)(x), getattr(na, name)(SQUARE))
    for name in ("qr", "slogdet"):
        for found, wanted in zip(getattr(la, name)(x), getattr(na, name)(SQUARE), strict=True):
            same(found, wanted)
    definite = SQUARE @ SQUARE.swapaxes(-1, -2)
    same(la.cholesky(xp.asarray(definite), upper=True), na.cholesky(definite, upper=True))
    same(la.eigvalsh(xp.asarray(definite)), na.eigvalsh(definite))
    same(la.solve(x, xp.asarray(SQUARE[0])), na.solve(SQUARE, SQUARE[0]))
    same(la.cross(x, x[:1]), np.cross(SQUARE, SQUARE[:1]))
    same(la.vecdot(xp.asarray(COMPLEX), xp.asarray(COMPLEX)), na.vecdot(COMPLEX, COMPLEX), 1e-5)
    same(la.tensordot(x, x, axes=((2, 0), (1, 0))), np.tensordot(SQUARE, SQUARE, ((2, 0), (1, 0))))
    same(la.matrix_power(x, -2), na.matrix_power(SQUARE, -2))
    with pytest.raises(InvalidArgumentError, match=r"matrix_power: .*expected square matrices"):
        la.matrix_power(xp.ones((2, 3)), 0)
    assert la.matrix_rank(xp.asarray(np.ones((4, 3)))).item() == 1
    for order in (0, 1, 2, 3.5, math.inf, -math.inf):
        same(la.vector_norm(x, ord=order, axis=1), na.vector_norm(SQUARE, ord=order, axis=1))
    z = SQUARE + 1j * SQUARE.swapaxes(-1, -2)
    for name in ("det", "inv", "pinv"):
        same(getattr(la, name)(xp.asarray(z)), getattr(na, name)(z))
    same(la.svdvals(xp.asarray(z)), na.svdvals(z))


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_fourier_transforms(norm: Any) -> None:
    for n in (None, 3, 6):
        for name in ("fft", "ifft", "rfft", "ihfft"):
            same(getattr(xp.fft, name)(xp.asarray(FLAT), n=n, norm=norm), getattr(np.fft, name)(FLAT, n=n, norm=norm))
        for name in ("irfft", "hfft"):
            wanted = getattr(np.fft, name)(COMPLEX.astype("complex128"), n=n, axis=0, norm=norm)
            same(getattr(xp.fft, name)(xp.asarray(COMPLEX.astype("complex128")), n=n, axis=0, norm=norm), wanted)
    same(xp.fft.irfftn(xp.fft.rfftn(xp.asarray(SQUARE)), s=SQUARE.shape, axes=(0, 1, 2)), SQUARE)
    same(xp.fft.fftshift(xp.asarray(SQUARE)), np.fft.fftshift(SQUARE))
    same(xp.fft.fftfreq(5, d=2.0, dtype=xp.float64), np.fft.fftfreq(5, 2.0))


SLOPES: list[tuple[str, Callable[..., Any]]] = [
    ("hypot", lambda x, y: xp.hypot(x, y)),
    ("logaddexp", lambda x, y: xp.logaddexp(x, y)),
    ("copysign", lambda x, y: xp.copysign(x, y)),
    ("maximum", lambda x, y: xp.maximum(x, y)),
    ("clip", lambda x, y: xp.clip(x, -0.4, 0.6) * y),
    ("std", lambda x, y: xp.std(x, axis=0) + xp.var(y, correction=1)),
    ("sort", lambda x, y: xp.sort(x, descending=True) * y),
    ("roll", lambda x, y: xp.roll(xp.concat([x, y]), 2) * xp.tile(x, (2, 1))),
    ("diff", lambda x, y: xp.diff(xp.cumulative_sum(x * y, axis=1), axis=0)),
    ("take", lambda x, y: xp.take(x, xp.asarray([1, 1]), axis=1) * xp.where(x[:, :2] > y[:, :2], x[:, :2], y[:, :2])),
    ("fft", lambda x, y: xp.abs(xp.fft.rfft(x, n=6)) ** 2),
    ("products", lambda x, y: xp.linalg.inv(x @ y.mT + 9.0 * xp.eye(3, dtype="float64")) @ xp.vecdot(x, y)),
    ("cross", lambda x, y: xp.linalg.cross(x[:, :3], y[:, 1:])),
]


@pytest.mark.parametrize("function", [f for _, f in SLOPES], ids=[n for n, _ in SLOPES])
def test_gradients(function: Callable[..., Any]) -> None:
    x, y = oprack.to_tensor(FLAT), oprack.to_tensor(FLAT[::-1] * 1.5 + 0.1)
    assert oprack.gradcheck(function, [x, y]) == []


@pytest.mark.parametrize(
    "name", ["inv", "det", "solve", "matrix_power", "log2", "reciprocal", "pow", "prod", "slogdet"]
)
def test_gradients_of_complex_numbers(name: str) -> None:
    calls: dict[str, Callable[[Any], Any]] = {
        "solve": lambda z: xp.linalg.solve(z, xp.flip(z)),
        "matrix_power": lambda z: xp.linalg.matrix_power(z, 3),
        "slogdet": lambda z: xp.linalg.slogdet(z).logabsdet,
        "pow": lambda z: xp.pow(z, 1.5 + 0.5j),
        "prod": lambda z: xp.prod(z, axis=1),
    }
    call = calls.get(name) or getattr(xp.linalg, name, None) or getattr(xp, name)

    def function(real: Any, imag: Any) -> Any:
        out = call(oprack.functional.complex(real, imag))
        return xp.real(out) + (xp.imag(out) if out.dtype.startswith("complex") else 0.0)

    real = RNG.normal(size=(3, 3)) + 2 * np.eye(3)
    assert oprack.gradcheck(function, [oprack.to_tensor(real), oprack.to_tensor(RNG.normal(size=(3, 3)))]) == []


def test_dtypes() -> None:
    x = xp.asarray([1.0])
    assert x.dtype == xp.float32 == "float32" and xp.float32 != xp.float64 and repr(xp.int8) == "oprack.array_api.int8"
    assert xp.result_type(xp.uint8, xp.int8) == xp.int16 and xp.result_type(x, 1j) == xp.complex64
    assert xp.isdtype(x.dtype, ("integral", "real floating")) and not xp.isdtype(xp.bool, xp.int8)
    assert xp.finfo(xp.complex128).eps == np.finfo("float64").eps and xp.iinfo(xp.uint16).max == 65535
    assert xp.can_cast(xp.int8, xp.int64) and not xp.can_cast(xp.int64, xp.float32)
    with pytest.raises(TypeError, match=r"uint64 and int64 have no common dtype"):
        xp.result_type(xp.uint64, xp.int64)
    with pytest.raises(TypeError, match=r"1\.5 beside int64"):
        xp.add(xp.asarray([1]), 1.5)
    with pytest.raises(InvalidArgumentError, match=r"kind is 'whole'; expected one of bool, signed integer"):
        xp.isdtype(xp.int8, "whole")
    assert oprack.to_tensor([1], dtype=xp.uint16).dtype == "uint16"


def test_namespace() -> None:
    x = xp.asarray([[1.0, 2.0]])
    assert x.__array_namespace__(api_version="2023.12") is xp and x.device in xp.__array_namespace_info__().devices()
    with pytest.raises(InvalidArgumentError, match=r"does not follow version '2099.12' of the standard"):
        x.__array_namespace__(api_version="2099.12")
    assert {name for names in NAMES.values() for name in names.split()} <= set(dir(xp))
    with pytest.raises(UnknownLayerError, match=r"oprack\.array_api has no 'sinus'"):
        _ = xp.sinus
    assert x.mT.shape == (2, 1) and x.to_device(x.device) is x and complex(xp.asarray(2 + 1j)) == 2 + 1j


def test_other_libraries_read_the_memory() -> None:
    x = xp.asarray([1.0, 2.0])
    assert np.shares_memory(np.from_dlpack(x), np.asarray(x)) and x.__dlpack_device__() == (1, 0)
    assert np.from_dlpack(x).tolist() == [1.0, 2.0]
    mine = xp.from_dlpack(np.arange(3, dtype="uint16"))
    assert mine.dtype == "uint16" and mine.tolist() == [0, 1, 2]
    with pytest.raises(BufferError, match=r"from_dlpack: tensors have memory of their own"):
        xp.from_dlpack(np.arange(3), copy=False)


def test_functions_are_written_down_by_jit() -> None:
    def net(x: Any) -> Any:
        y = xp.concat([xp.clip(x, -0.5, 0.5) + 0.1, xp.std(x, axis=0, keepdims=True)], axis=0)
        y = xp.tensordot(xp.take(y, xp.asarray([0, -1]), axis=0), xp.expand_dims(x, axis=0), axes=((1,), (2,)))
        return xp.where(xp.equal(y, 0.0), 1.0, xp.sort(xp.maximum(xp.round(y * 8), y), axis=-1))

    x = xp.asarray(FLAT)
    same(oprack.jit(net)(x), net(x).numpy(), 1e-12)
