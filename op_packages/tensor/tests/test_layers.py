"""Layers of tensor, and indexing of variables, against NumPy."""

from __future__ import annotations

import numpy as np
import oprack
import pytest
from oprack import layers
from oprack.errors import InvalidArgumentError

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def run(build, **feed):
    """Arrays of what build(x=..., ...) returns, fed by name; inferred shapes and dtypes are checked."""
    main = oprack.Program()
    with oprack.program_guard(main), oprack.unique_name.guard():
        made = build(**{name: layers.data(name, [None, *a.shape[1:]], a.dtype) for name, a in feed.items()})
    found = made if isinstance(made, list | tuple) else [made]
    arrays = oprack.Executor().run(main, feed=feed, fetch_list=list(found), scope=oprack.Scope())
    for var, array in zip(found, arrays, strict=True):
        assert var.dtype == str(array.dtype) and len(var.shape) == array.ndim, var
        assert all(d in (-1, n) for d, n in zip(var.shape, array.shape, strict=True)), (var, array.shape)
    return arrays if isinstance(made, list | tuple) else arrays[0]


INDICES = [
    np.s_[0],
    np.s_[-1],
    np.s_[1, -2],
    np.s_[:, 1:3],
    np.s_[:, :, -2:],
    np.s_[..., 0],
    np.s_[0, ..., 1:2],
    np.s_[:, None, 2],
    np.s_[None, ..., None],
    np.s_[:, ::2],
    np.s_[:, 1, ::-1],
    np.s_[:, :, 3:0:-2],
    np.s_[:, 5:9],
    np.s_[:, :, :-3:-1],
    np.s_[:, :, 1:-9:-1],
    np.s_[:, ::-1, -1],
    np.s_[:],
]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_indexing(index):
    np.testing.assert_array_equal(run(lambda x: x[index], x=X), X[index])


def test_indexing_by_variables():
    i = np.array([1], np.int64)

    def build(x, i):
        return [x[:, i], x[i, 1:, 0], x[:, i : i + 1], x[0, 0:i]]

    for found, value in zip(run(build, x=X, i=i), [X[:, 1], X[1, 1:, 0], X[:, 1:2], X[0, 0:1]], strict=True):
        np.testing.assert_array_equal(found, value)


def test_iteration_over_a_known_dim():
    with oprack.program_guard(oprack.Program()):
        x = layers.data("x", [3, 2])
        assert len(x) == 3 and [v.shape for v in x] == [(2,)] * 3


BAD_INDICES = [
    (lambda x: x[:, 3], r"index 3 of variable 'x' is out of range for dim 1 of size 3; expected -3 to 2"),
    (lambda x: x[0, 0, 0, 0], r"index \[0, 0, 0, 0\] of variable 'x' of shape \[-1, 3, 4\]: expected at most 3"),
    (lambda x: x[..., ...], "one `...`"),
    (lambda x: x[[0, 1]], r"index of variable 'x' is list; expected int.*layers\.gather"),
    (lambda x: x[x], r"index of variable 'x' is float32 variable 'x'; expected int32 or int64"),
    (lambda x: x[:, ::0], "step of slice.None, None, 0."),
    (lambda x: x[:-1:-1], "a stop of -1 with step -1 in dim 0, whose size is not known"),
    (lambda x: x["a":], "has 'a'; expected an integer"),
]


@pytest.mark.parametrize(("build", "text"), BAD_INDICES)
def test_bad_indices(build, text):
    with oprack.program_guard(oprack.Program()):
        x = layers.data("x", [None, 3, 4])
        with pytest.raises(InvalidArgumentError, match=text):
            build(x)


def test_constants():
    def build(x):
        return [
            layers.fill_constant([2, 3], "int64", 9007199254740993),
            layers.fill_constant([layers.shape(x)[1], 2], "float32", 0.1),
            layers.zeros([2], "float64"),
            layers.ones([2], "int32"),
            layers.zeros_like(x),
            layers.ones_like(x),
            layers.fill_constant_batch_size_like(x, [-1, 5], "float32", 2.5),
            layers.range(1, 10, 3, "int64"),
            layers.linspace(0.0, 1.0, 5),
            layers.eye(2, 3),
        ]

    expected = [
        np.full((2, 3), 9007199254740993),
        np.full((3, 2), 0.1, np.float32),
        np.zeros(2),
        np.ones(2, np.int32),
        X * 0,
        X * 0 + 1,
        np.full((2, 5), 2.5, np.float32),
        np.arange(1, 10, 3),
        np.linspace(0, 1, 5),
        np.eye(2, 3),
    ]
    found = run(build, x=X)
    for array, value in zip(found, expected, strict=True):
        np.testing.assert_array_equal(array, value)
    assert all(a.dtype == np.asarray(e).dtype for a, e in list(zip(found, expected, strict=True))[:8])


@pytest.mark.parametrize(
    "value",
    [np.array([[1, 2]], np.int64), np.array([True, False]), np.array([0.1]), np.float32(3), np.array([1], np.int32)],
    ids=lambda v: f"{v.dtype}{v.shape}",
)
def test_assign_arrays(value):
    found = run(lambda: layers.assign(value))
    np.testing.assert_array_equal(found, value)
    assert found.dtype == value.dtype


def test_assign_numbers_and_variables():
    def build(x):
        target = layers.create_tensor("float32")
        layers.assign(x, target)
        return [target, layers.assign([1.5, 2.5])]

    found = run(build, x=X)
    np.testing.assert_array_equal(found[0], X)
    assert found[1].dtype == np.float32 and found[1].tolist() == [1.5, 2.5]
    with pytest.raises(
        InvalidArgumentError, match="assign: input is list of dtype <U1; expected a Variable, or an array"
    ):
        layers.assign(["a"])


def test_shapes():
    n = np.array([4], np.int32)

    def build(x, n):
        return [
            layers.reshape(x, [-1, 4]),
            layers.reshape(x, [0, 12]),
            layers.reshape(x, [-1, n]),
            layers.reshape(x, [6, -1], actual_shape=layers.assign(np.array([6, 4], np.int32))),
            layers.transpose(x, [0, 2, 1]),
            layers.unsqueeze(x, [1, -1]),
            layers.squeeze(layers.unsqueeze(x, [1]), [1]),
            layers.flatten(x, axis=2),
            layers.reverse(x, 1),
            layers.expand(x, [1, 2, 3]),
            layers.expand_as(x[:, :1], x),
            layers.cast(x, "int32"),
            layers.shape(x),
        ]

    expected = [
        X.reshape(-1, 4),
        X.reshape(2, 12),
        X.reshape(-1, 4),
        X.reshape(6, 4),
        X.transpose(0, 2, 1),
        X[:, None, :, :, None],
        X,
        X.reshape(6, 4),
        X[:, ::-1],
        np.tile(X, (1, 2, 3)),
        np.broadcast_to(X[:, :1], X.shape),
        X.astype(np.int32),
        np.array([2, 3, 4], np.int32),
    ]
    for found, value in zip(run(build, x=X, n=n), expected, strict=True):
        np.testing.assert_array_equal(found, value)


def test_parts():
    i = np.array([2, 0], np.int64)

    def build(x, i):
        flat = layers.reshape(x, [-1, 4])
        return [
            layers.concat([x, x * 2], axis=1),
            *layers.split(x, 2, dim=2),
            *layers.split(x, [1, -1], dim=1),
            layers.stack([x, x], axis=1),
            *layers.unstack(x, axis=1),
            layers.slice(x, [1, 2], [0, -2], [2, 9]),
            layers.strided_slice(x, [2], [0], [4], [2]),
            layers.gather(flat, i),
            layers.gather_nd(flat, layers.unsqueeze(i, [1])),
            layers.scatter(flat, i, layers.zeros([2, 4], "float32")),
            layers.scatter_nd_add(flat, layers.unsqueeze(i, [1]), layers.ones([2, 4], "float32")),
            layers.where(x > 5.0, x, -x),
            layers.where(flat > 21.0),
        ]

    flat = X.reshape(-1, 4)
    zeroed, added = flat.copy(), flat.copy()
    zeroed[[2, 0]] = 0
    added[[2, 0]] += 1
    expected = [
        np.concatenate([X, X * 2], 1),
        *np.split(X, 2, 2),
        *np.split(X, [1], 1),
        np.stack([X, X], 1),
        *(X[:, k] for k in range(3)),
        X[:, 0:2, -2:],
        X[:, :, ::2],
        flat[[2, 0]],
        flat[[2, 0]],
        zeroed,
        added,
        np.where(X > 5, X, -X),
        np.argwhere(flat > 21),
    ]
    for found, value in zip(run(build, x=X, i=i), expected, strict=True):
        np.testing.assert_array_equal(found, value)


def test_order():
    x = np.array([[3.0, 1.0, 2.0]], np.float32)
    found = run(lambda x: [*layers.topk(x, 2), *layers.argsort(x, descending=True)], x=x)
    expected = [[[3, 2]], [[0, 2]], [[3, 2, 1]], [[0, 2, 1]]]
    assert [array.tolist() for array in found] == expected


BAD_CALLS = [
    (lambda x: layers.reshape(x, [5, 5.5]), r"reshape2: shape is \[5, 5.5\]; expected a list of ints"),
    (lambda x: layers.reshape(layers.zeros([2, 3], "int32"), [7, 7]), "op reshape2"),
    (lambda x: layers.concat([]), "concat: input is empty"),
    (lambda x: layers.cast(x, "string"), "string"),
    (lambda x: layers.gather(x, x), r"gather: index \(variable 'x'\) is float32; expected int32 or int64"),
    (lambda x: layers.unstack(x), r"dim 0 of x has size -1.*pass num"),
    (lambda x: layers.transpose(x, [0, 1]), "op transpose2"),
]


@pytest.mark.parametrize(("build", "text"), BAD_CALLS)
def test_bad_calls(build, text):
    with oprack.program_guard(oprack.Program()):
        x = layers.data("x", [None, 3, 4])
        with pytest.raises(InvalidArgumentError, match=text):
            build(x)


@pytest.mark.parametrize(
    ("dtype", "start", "end", "step"),
    [
        ("uint64", 0, 2**63 + 5, 2**61),
        ("uint64", 2**64 - 9, 2**64 - 1, 3),
        ("int64", 2**60, 2**60 + 7, 3),
        ("int64", -(2**63), 2**63 - 1, 2**61),
        ("int64", 2**63 - 1, -(2**63), -(2**62)),
        ("int8", -128, 127, 1),
        ("uint8", 7, 7, 1),
    ],
)
def test_ranges_of_integers_are_exact(dtype: str, start: int, end: int, step: int) -> None:
    """As Python's own range has them, also where float64 would round."""
    ends = [oprack.to_tensor(np.array([v], dtype)) for v in (start, end, step)]
    found = oprack.functional.range(*ends).numpy()
    assert found.dtype == dtype
    assert found.tolist() == list(range(start, end, step))


def test_a_range_without_an_end_is_refused() -> None:
    ends = [oprack.to_tensor(np.array([v], "float32")) for v in (0, np.inf, 1)]
    with pytest.raises(InvalidArgumentError, match=r"op range: Start is 0.0, End inf .* expected finite numbers"):
        oprack.functional.range(*ends)


def test_an_axis_of_unknown_size_that_is_named_is_squeezed() -> None:
    """As Paddle's rule has it at build time, whereas without axes only sizes that are 1 go."""
    with oprack.program_guard(oprack.Program()):
        x = layers.data("x", [-1, 1, -1], "float32")
        assert layers.squeeze(x, [0]).shape == (1, -1)
        assert layers.squeeze(x, []).shape == (-1, -1)
