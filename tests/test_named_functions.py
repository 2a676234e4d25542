"""Functions of tensors under the names of Paddle 2 and NumPy: what they compute, by NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import oprack
import pytest
from oprack import to_tensor
from oprack.errors import InvalidArgumentError

a = np.random.default_rng(0).normal(size=(3, 4)).astype("float32")
b = np.random.default_rng(1).normal(size=(2, 3, 4)).astype("float32")
c = np.random.default_rng(2).normal(size=(4, 5)).astype("float32")
x, y, w = to_tensor(a), to_tensor(b), to_tensor(c)
places = np.array([[0, 1, 2, 0]])
i = to_tensor(places)


def _put(array: np.ndarray, value: float) -> np.ndarray:
    out = array.copy()
    np.put_along_axis(out, places, value, 0)
    return out


CASES: dict[str, Any] = {
    "oprack.zeros([2, 3])": np.zeros((2, 3), "float32"),
    "oprack.ones(2, 'int64')": np.ones(2, "int64"),
    "oprack.full([2, 2], 7)": np.full((2, 2), 7, "float32"),
    "oprack.full([2, 2], 7, 'int64')": np.full((2, 2), 7),
    "oprack.full([2], 1.5)": np.full(2, 1.5, "float32"),
    "oprack.full([], True, 'bool')": np.array(True),
    "oprack.full_like(x, 2, 'int64')": np.full((3, 4), 2),
    "oprack.arange(5)": np.arange(5),
    "oprack.arange(0, 1, 0.25)": np.arange(0, 1, 0.25, "float32"),
    "oprack.arange(5, 0, -2, dtype='int32')": np.arange(5, 0, -2, "int32"),
    "oprack.linspace(0, 1, 5)": np.linspace(0, 1, 5, dtype="float32"),
    "oprack.logspace(0, 2, 3)": np.logspace(0, 2, 3, dtype="float32"),
    "oprack.eye(2, 3)": np.eye(2, 3, dtype="float32"),
    "oprack.tril(x)": np.tril(a),
    "oprack.triu(x, 1)": np.triu(a, 1),
    "oprack.diag(to_tensor([1.0, 2.0]))": np.diag([1, 2]).astype("float32"),
    "oprack.meshgrid(oprack.arange(2), oprack.arange(3))[1]": np.meshgrid(np.arange(2), np.arange(3), indexing="ij")[1],
    "oprack.concat([x, x], 1)": np.concatenate([a, a], 1),
    "oprack.stack([x, x], 1)": np.stack([a, a], 1),
    "x.chunk(3, 1)[1]": a[:, 2:4],
    "x.unstack(1)[3]": a[:, 3],
    "x.t()": a.T,
    "y.moveaxis(0, 2)": np.moveaxis(b, 0, 2),
    "y.moveaxis([0, 1], [2, 0])": np.moveaxis(b, [0, 1], [2, 0]),
    "y.swapaxes(0, -1)": np.swapaxes(b, 0, -1),
    "x.expand_as(y)": np.broadcast_to(a, b.shape),
    "x.repeat_interleave(2)": a.reshape(-1).repeat(2),
    "x.repeat_interleave(2, 0)": a.repeat(2, 0),
    "x.repeat_interleave(to_tensor([1, 0, 2]), 0)": a.repeat([1, 0, 2], 0),
    "x.flip(0)": a[::-1],
    "x.roll(1)": np.roll(a, 1),
    "x.roll([1, 2], [0, 1])": np.roll(a, [1, 2], [0, 1]),
    "x.masked_fill(x > 0, 0.0)": np.where(a > 0, np.float32(0), a),
    "x.take_along_axis(i, 0)": np.take_along_axis(a, places, 0),
    "x.put_along_axis(i, 9.0, 0)": _put(a, 9),
    "oprack.where(x > 0, x, -x)": np.abs(a),
    "oprack.where(x > 0, 1.0, 0)": (a > 0).astype("float32"),
    "oprack.where(x > 0, x, 0)": a * (a > 0),
    "oprack.where(x > 0, x[0], y)": np.where(a > 0, a[0], b),
    "oprack.where(x > 0)[0]": np.where(a > 0)[0],
    "oprack.nonzero(x > 0)": np.argwhere(a > 0),
    "oprack.unique(to_tensor([3, 1, 3]))": np.array([1, 3]),
    "oprack.unique(to_tensor([3, 1, 3]), return_inverse=True, return_counts=True)[2]": np.array([1, 2]),
    "oprack.one_hot(to_tensor([0, 2]), 3)": np.eye(3, dtype="float32")[[0, 2]],
    "x.topk(2)[0]": -np.sort(-a, 1)[:, :2],
    "x.topk(2)[1]": np.argsort(-a, 1)[:, :2],
    "x.sort()": np.sort(a),
    "x.sort(0, descending=True)": -np.sort(-a, 0),
    "x.argsort(0)": np.argsort(a, 0),
    "x.kthvalue(2)[0]": np.sort(a)[:, 1],
    "x.std()": a.std(ddof=1),
    "x.var(1)": a.var(1, ddof=1),
    "x.var([0, 1], unbiased=False, keepdim=True)": a.var(keepdims=True),
    "x.median()": np.median(a),
    "x.median(1)": np.median(a, 1),
    "x.median(0, True)": np.median(a, 0, keepdims=True),
    "oprack.median(to_tensor([1.0, float('nan')]))": np.float32("nan"),
    "(x > 0).any()": np.array(True),
    "(x > 0).all(1)": (a > 0).all(1),
    "x.count_nonzero()": np.array(12),
    # as Paddle, which casts to bool; x != 0 has a tolerance
    "to_tensor([1e-9, 0.0]).any()": np.array(True),
    "to_tensor([1e-9, 1e-12]).all()": np.array(True),
    "to_tensor([1e-9, 0.0, -1e-12]).count_nonzero()": np.array(2),
    "to_tensor([1e-9, 0.0]).norm(0)": np.float32(1),
    "oprack.zeros([0, 3]).var(0)": np.full(3, np.nan, "float32"),
    "oprack.zeros([0, 3]).std()": np.float32("nan"),
    "to_tensor(2.5).median(0)": np.float32(2.5),
    "to_tensor([4, 1, 3, 2]).median()": np.float32(2.5),
    "to_tensor(2.5).var(0, False)": np.float32(0),
    "to_tensor(2.5).max(-1)": np.float32(2.5),
    "to_tensor(2.5).flip(0)": np.float32(2.5),
    "oprack.logit(to_tensor([1e-7, 0.25, 2.0]))": np.float32([np.log(1e-7 / (1 - 1e-7)), np.log(1 / 3), np.nan]),
    "oprack.logit(to_tensor([1e-7, 0.25, 2.0]), 0.25)": np.float32([np.log(1 / 3), np.log(1 / 3), np.log(3)]),
    "x.cumsum(0)": a.cumsum(0),
    "x.cumsum()": a.cumsum(),
    "x.cumprod(1)": a.cumprod(1),
    "x.logsumexp(1)": np.log(np.exp(a).sum(1)),
    "x.argmax()": a.argmax(),
    "x.argmin(1, True)": a.argmin(1)[:, None],
    "x.sum(1, dtype='float64')": a.astype("float64").sum(1),
    "x.norm()": np.linalg.norm(a),
    "x.norm(1, 1)": np.abs(a).sum(1),
    "x.norm(float('inf'))": np.abs(a).max(),
    "x.norm(3.0)": (np.abs(a) ** 3).sum() ** np.float32(1 / 3),
    "x.norm(0, 0)": np.full(4, 3, "float32"),
    "oprack.einsum('ij, jk -> ik', x, w)": a @ c,
    "x.mm(w)": a @ c,
    "oprack.matmul(x, x, transpose_y=True)": a @ a.T,
    "oprack.outer(x[0], x[1])": np.outer(a[0], a[1]),
    "oprack.inner(x, x)": np.inner(a, a),
    "x.allclose(x + 1e-9)": np.array(True),
    "oprack.maximum(x, 0)": np.maximum(a, 0),
    "oprack.minimum(x, -x)": np.minimum(a, -a),
    "oprack.lerp(x, -x, 0.25)": a + (-a - a) * np.float32(0.25),
    "oprack.mod(x, 0.5)": np.mod(a, np.float32(0.5)),
}


@pytest.mark.parametrize("line", CASES)
def test_value(line: str) -> None:
    found, wanted = eval(line), np.asarray(CASES[line])  # the lines stand above
    assert found.dtype == wanted.dtype.name and found.shape == wanted.shape
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5, atol=1e-6)


def test_random_tensors_follow_the_seed() -> None:
    for line in (
        "randn([2, 3])",
        "rand([4])",
        "randint(0, 9, [5])",
        "randperm(7)",
        "uniform([3])",
        "normal(1., 2., [2])",
    ):
        oprack.seed(3)
        first = eval(f"oprack.{line}").numpy()
        oprack.seed(3)
        assert np.array_equal(first, eval(f"oprack.{line}").numpy())
    assert sorted(oprack.randperm(7).tolist()) == list(range(7))
    drawn = oprack.rand([10_000]).numpy()
    assert 0 <= drawn.min() and drawn.max() < 1 and abs(drawn.mean() - 0.5) < 0.02
    assert abs(oprack.randn([10_000]).numpy().std() - 1) < 0.03


@pytest.mark.parametrize("name", ["std", "median", "norm", "logsumexp"])
def test_gradients_of_compositions(name: str) -> None:
    assert not oprack.gradcheck(lambda t: getattr(t, name)(), [to_tensor(a.astype("float64"), requires_grad=True)])


@pytest.mark.parametrize("name", ["zeros", "ones", "randn", "rand"])
def test_sizes_one_by_one_say_what_to_write(name: str) -> None:
    with pytest.raises(ValueError, match=rf"oprack\.{name}\(\[2, 3\]\)"):
        getattr(oprack, name)(2, 3)


def test_functions_write_programs_too() -> None:
    traced = oprack.to_program(lambda t: (t.std(), oprack.where(t > 0, t, 0), t.topk(2)[0]), [oprack.InputSpec([3, 4])])
    found = oprack.Executor().run(traced.program, {traced.feed_names[0]: a}, traced.fetch_names, traced.scope)
    for value, wanted in zip(found, (a.std(ddof=1), a * (a > 0), -np.sort(-a, 1)[:, :2]), strict=True):
        np.testing.assert_allclose(np.asarray(value).reshape(wanted.shape), wanted, rtol=1e-5)


@pytest.mark.parametrize("axis", [5, 1, -2])
@pytest.mark.parametrize(
    "name", "sum mean max min prod amax amin all any count_nonzero var std logsumexp median argmax cumsum".split()
)
def test_a_tensor_without_dims_has_no_dim_but_0(name: str, axis: int) -> None:
    with pytest.raises(InvalidArgumentError, match=rf"(axis|dim) (is )?{axis}\b"):
        getattr(oprack, name)(to_tensor(2.5), axis)
    with pytest.raises(InvalidArgumentError, match=r"(axis|dim) (is )?7\b"):
        getattr(oprack, name)(x, 7)


def test_there_is_no_median_of_nothing() -> None:
    with pytest.raises(InvalidArgumentError, match=r"median: x has shape \[0, 3\].*at least one element"):
        oprack.median(oprack.zeros([0, 3]))
    with pytest.raises(InvalidArgumentError, match="axis is 5"):
        to_tensor(2.5).topk(1, axis=5)
