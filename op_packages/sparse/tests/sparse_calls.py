"""Calls of `sparse` functions that Paddle 2.6.2 computed: the same code runs over paddle.sparse and over oprack.sparse.

Each call is a function of the namespace and of its inputs. tests/oracle/record_sparse.py wrote what Paddle gave.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Call = Callable[..., Any]


@dataclass(frozen=True)
class Given:
    """An input: of kind "coo" or "csr" as (arrays of the pattern ..., values, shape), "dense" as (array)."""

    kind: str
    arrays: tuple[Any, ...]


def coo(indices: Any, values: Any, shape: Any) -> Given:
    return Given("coo", (np.array(indices, np.int64), np.array(values, np.float32), list(shape)))


def csr(crows: Any, cols: Any, values: Any, shape: Any) -> Given:
    return Given(
        "csr", (np.array(crows, np.int64), np.array(cols, np.int64), np.array(values, np.float32), list(shape))
    )


def dense(values: Any) -> Given:
    return Given("dense", (np.array(values, np.float32),))


def drawn(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.RandomState(seed).uniform(-1, 1, shape).round(3).astype(np.float32)


COO = coo([[0, 0, 1, 2], [1, 3, 0, 2]], [0.5, -0.25, 0.75, -0.5], [3, 4])
COO_B = coo([[0, 1, 1, 2], [1, 0, 2, 3]], [-0.5, 0.5, 2.0, 3.0], [3, 4])
HYBRID = coo([[0, 0, 2], [1, 3, 2]], drawn(3, 2), [3, 4, 2])
CUBE = coo([[0, 0, 1, 1, 1], [0, 2, 0, 0, 1], [1, 0, 0, 3, 2]], drawn(5, seed=1), [2, 3, 4])
TWICE = coo([[2, 0, 2, 0], [1, 1, 1, 3]], [1.0, 2.0, 3.0, 4.0], [3, 4])
CSR = csr([0, 2, 3, 4], [1, 3, 0, 2], [0.5, -0.25, 0.75, -0.5], [3, 4])
CSR_B = csr([0, 1, 3, 4], [1, 0, 2, 3], [-0.5, 0.5, 2.0, 3.0], [3, 4])
BATCH = csr([0, 1, 1, 3, 0, 2, 3, 4], [2, 0, 3, 1, 2, 0, 3], drawn(7, seed=2), [2, 3, 4])
VOLUME = coo([[0, 0, 0, 0, 0], [0, 0, 1, 2, 3], [0, 1, 2, 1, 3], [1, 1, 0, 3, 2]], drawn(5, 2, seed=3), [1, 4, 4, 4, 2])
PICTURE = coo([[0, 0, 0, 0], [0, 1, 2, 3], [1, 1, 3, 2]], drawn(4, 2, seed=4), [1, 4, 4, 2])
KERNEL3 = dense(drawn(3, 3, 3, 2, 3, seed=5))
KERNEL2 = dense(drawn(3, 3, 2, 3, seed=6))

_UNARY = "sin tan asin atan sinh tanh asinh atanh square abs neg deg2rad rad2deg expm1".split()
_POSITIVE = "sqrt log1p".split()


def _named(name: str) -> Call:
    return lambda s, x: getattr(s, name)(x)


def _activation(name: str) -> Call:
    return lambda s, x: getattr(s.nn.functional, name)(x)


def _sum(axis: Any, keepdim: bool) -> Call:
    return lambda s, x: s.sum(x, axis=axis, keepdim=keepdim)


def _positive(x: Given) -> Given:
    *pattern, values, shape = x.arrays
    return Given(x.kind, (*pattern, np.abs(values) + np.float32(0.1), shape))


CALLS: dict[str, tuple[Call, tuple[Given, ...]]] = {}
for _name in _UNARY:
    CALLS |= {f"{_name}_coo": (_named(_name), (HYBRID,)), f"{_name}_csr": (_named(_name), (BATCH,))}
for _name in _POSITIVE:
    CALLS |= {f"{_name}_coo": (_named(_name), (_positive(HYBRID),)), f"{_name}_csr": (_named(_name), (_positive(CSR),))}
for _name in ("relu", "relu6", "leaky_relu"):
    CALLS |= {f"{_name}_coo": (_activation(_name), (HYBRID,)), f"{_name}_csr": (_activation(_name), (BATCH,))}
for _name in ("add", "subtract", "multiply", "divide"):

    def _binary(s: Any, x: Any, y: Any, name: str = _name) -> Any:
        return getattr(s, name)(x, y)

    CALLS |= {
        f"{_name}_coo": (_binary, (COO, COO_B)),
        f"{_name}_csr": (_binary, (CSR, CSR_B)),
        f"{_name}_same": (_binary, (HYBRID, _positive(HYBRID))),
    }
for _axis in (None, 0, 1, -1):
    for _keep in (False, True):
        _tag = f"{'all' if _axis is None else _axis % 7}_{'keep' if _keep else 'drop'}"
        _given = {"coo": CUBE, "hybrid": HYBRID} | ({"csr": CSR, "batch": BATCH} if _axis in (None, -1) else {})
        CALLS |= {f"sum_{_kind}_{_tag}": (_sum(_axis, _keep), (_x,)) for _kind, _x in _given.items()}
CALLS |= {
    "add_bias": (lambda s, x, b: s.add(x, b), (HYBRID, dense(drawn(2, seed=7)))),
    "divide_scalar_coo": (lambda s, x: s.divide(x, 2.0), (HYBRID,)),
    "divide_scalar_csr": (lambda s, x: s.divide(x, 4.0), (BATCH,)),
    "pow_coo": (lambda s, x: s.pow(x, 3), (HYBRID,)),
    "pow_csr": (lambda s, x: s.pow(x, 2.0), (CSR,)),
    "cast_coo": (lambda s, x: s.cast(x, "int32", "float64"), (HYBRID,)),
    "cast_csr": (lambda s, x: s.cast(x, "int32", "float64"), (CSR,)),
    "isnan_coo": (lambda s, x: s.isnan(x), (coo([[0, 2]], [np.nan, 1.0], [3]),)),
    "coalesce": (lambda s, x: s.coalesce(x), (TWICE,)),
    "coo_to_dense": (lambda s, x: x.to_dense(), (HYBRID,)),
    "csr_to_dense": (lambda s, x: x.to_dense(), (BATCH,)),
    "coo_values": (lambda s, x: x.values(), (HYBRID,)),
    "csr_values": (lambda s, x: x.values(), (CSR,)),
    "dense_to_coo_1": (lambda s, x: x.to_sparse_coo(1), (dense([[0.0, 2.0], [0.0, 0.0], [3.0, 0.0]]),)),
    "dense_to_coo_2": (lambda s, x: x.to_sparse_coo(2), (dense([[0.0, 2.0], [0.0, 0.0], [3.0, 0.0]]),)),
    "dense_to_csr": (lambda s, x: x.to_sparse_csr(), (dense([[0.0, 2.0], [0.0, 0.0], [3.0, 0.0]]),)),
    "dense_to_batch": (lambda s, x: x.to_sparse_csr(), (dense([[[0.0, 2.0]], [[0.0, 0.0]], [[3.0, 4.0]]]),)),
    "coo_to_csr": (lambda s, x: x.to_sparse_csr(), (COO,)),
    "cube_to_csr": (lambda s, x: x.to_sparse_csr(), (CUBE,)),
    "csr_to_coo": (lambda s, x: x.to_sparse_coo(2), (CSR,)),
    "batch_to_coo": (lambda s, x: x.to_sparse_coo(3), (BATCH,)),
    "transpose_coo": (lambda s, x: s.transpose(x, [2, 0, 1]), (CUBE,)),
    "transpose_hybrid": (lambda s, x: s.transpose(x, [1, 0, 2]), (HYBRID,)),
    "transpose_csr": (lambda s, x: s.transpose(x, [1, 0]), (CSR,)),
    "transpose_batch_021": (lambda s, x: s.transpose(x, [0, 2, 1]), (BATCH,)),
    "transpose_batch_102": (lambda s, x: s.transpose(x, [1, 0, 2]), (BATCH,)),
    "transpose_batch_201": (lambda s, x: s.transpose(x, [2, 0, 1]), (BATCH,)),
    "reshape_coo": (lambda s, x: s.reshape(x, [0, 2, -1]), (coo([[0, 1, 1], [0, 2, 3]], drawn(3), [2, 4]),)),
    "reshape_cube": (lambda s, x: s.reshape(x, [6, -1]), (CUBE,)),
    "reshape_hybrid": (lambda s, x: s.reshape(x, [2, 6, 2]), (HYBRID,)),
    "reshape_csr": (lambda s, x: s.reshape(x, [4, 3]), (CSR,)),
    "reshape_batch": (lambda s, x: s.reshape(x, [3, 2, 4]), (BATCH,)),
    "slice_coo": (lambda s, x: s.slice(x, [0, 2], [1, 0], [2, 3]), (CUBE,)),
    "slice_csr": (lambda s, x: s.slice(x, [0, 1], [0, 1], [2, -1]), (CSR,)),
    "slice_batch": (lambda s, x: s.slice(x, [0, 2], [1, 1], [2, 4]), (BATCH,)),
    "softmax_coo": (lambda s, x: s.nn.functional.softmax(x), (COO,)),
    "softmax_cube": (lambda s, x: s.nn.functional.softmax(x), (CUBE,)),
    "softmax_cube_1": (lambda s, x: s.nn.functional.softmax(x, axis=1), (CUBE,)),
    "softmax_hybrid": (lambda s, x: s.nn.functional.softmax(x), (HYBRID,)),
    "softmax_hybrid_1": (lambda s, x: s.nn.functional.softmax(x, axis=1), (HYBRID,)),
    "softmax_csr": (lambda s, x: s.nn.functional.softmax(x), (CSR,)),
    "softmax_batch": (lambda s, x: s.nn.functional.softmax(x), (BATCH,)),
    "conv3d": (lambda s, x, w: s.nn.functional.conv3d(x, w), (VOLUME, KERNEL3)),
    "conv3d_wide": (
        lambda s, x, w: s.nn.functional.conv3d(x, w, stride=2, padding=1, dilation=1),
        (VOLUME, KERNEL3),
    ),
    "conv3d_dilated": (lambda s, x, w: s.nn.functional.conv3d(x, w, padding=2, dilation=2), (VOLUME, KERNEL3)),
    "subm_conv3d": (lambda s, x, w: s.nn.functional.subm_conv3d(x, w, padding=1), (VOLUME, KERNEL3)),
    "subm_conv3d_bias": (
        lambda s, x, w, b: s.nn.functional.subm_conv3d(x, w, b, padding=1),
        (VOLUME, KERNEL3, dense(drawn(3, seed=8))),
    ),
    "conv2d": (lambda s, x, w: s.nn.functional.conv2d(x, w, padding=1), (PICTURE, KERNEL2)),
    "subm_conv2d": (lambda s, x, w: s.nn.functional.subm_conv2d(x, w, padding=1), (PICTURE, KERNEL2)),
    "max_pool3d": (lambda s, x: s.nn.functional.max_pool3d(x, 2, stride=2), (VOLUME,)),
    "max_pool3d_over": (lambda s, x: s.nn.functional.max_pool3d(x, 3, stride=1, padding=1), (VOLUME,)),
    "batch_norm": (lambda s, x: s.nn.BatchNorm(2)(x), (VOLUME,)),
    "matmul_csr": (lambda s, x, y: s.matmul(x, y), (CSR, dense(drawn(4, 2, seed=9)))),
    "matmul_coo": (lambda s, x, y: s.matmul(x, y), (COO, dense(drawn(4, 2, seed=9)))),
    "mv_csr": (lambda s, x, y: s.mv(x, y), (CSR, dense(drawn(4, seed=9)))),
}


def given(s: Any, to_tensor: Any, value: Given, grad: bool) -> Any:
    """The tensor for an input, in the library whose sparse functions `s` has."""
    if value.kind == "dense":
        return to_tensor(value.arrays[0])
    make = s.sparse_coo_tensor if value.kind == "coo" else s.sparse_csr_tensor
    return make(*value.arrays, stop_gradient=not grad)


def cotangent(shape: Any) -> np.ndarray:
    """The gradient with which all of a result's elements are weighted."""
    return np.cos(np.arange(int(np.prod(shape))) + 1).reshape(shape).astype(np.float32)


def parts(out: Any) -> Mapping[str, np.ndarray]:
    """The arrays of a result: those of its pattern and its values, or all elements of a dense one."""
    if out.is_sparse_coo():
        return {"indices": out.indices().numpy(), "values": out.values().numpy(), "shape": np.array(out.shape)}
    if out.is_sparse_csr():
        found = {"crows": out.crows(), "cols": out.cols(), "values": out.values()}
        return {k: v.numpy() for k, v in found.items()} | {"shape": np.array(out.shape)}
    return {"dense": out.numpy()}
