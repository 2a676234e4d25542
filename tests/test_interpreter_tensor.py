"""Eager tensors: what they hold, operators, indexing, methods, and the ways to other libraries."""

from __future__ import annotations

import copy

import numpy as np
import oprack
import pytest
from oprack import LoDTensor, SelectedRows, Tensor, to_tensor
from oprack.errors import InvalidArgumentError, InvalidLoDError, PreconditionNotMetError

A = np.arange(12, dtype=np.float32).reshape(3, 4) - 5


def test_properties() -> None:
    x = to_tensor(A, name="x")
    assert (x.shape, x.ndim, x.size, x.dtype, len(x)) == ((3, 4), 2, 12, "float32", 3)
    assert x.place == oprack.CPUPlace() and x.lod == [] and x.is_leaf and not x.requires_grad and x.stop_gradient
    assert "shape=[3, 4], dtype=float32" in repr(x)
    np.testing.assert_array_equal(x.numpy(), A)
    assert to_tensor([1.5, 2]).dtype == "float32" and to_tensor([1, 2]).dtype == "int64"
    assert to_tensor(np.zeros(2)).dtype == "float64" and to_tensor(2.5, dtype="float16").dtype == "float16"
    assert float(to_tensor([2.5])) == 2.5 and int(to_tensor(3)) == 3 and bool(to_tensor([True]))
    assert [1, 2, 3][to_tensor(1)] == 2 and to_tensor([[1, 2]]).tolist() == [[1, 2]]


def test_data_is_copied_and_read_only_from_outside() -> None:
    array = A.copy()
    x = to_tensor(array)
    array[0, 0] = 100
    assert x.numpy()[0, 0] == A[0, 0]
    view = np.asarray(x)
    assert np.shares_memory(view, x._value) and not view.flags.writeable
    assert np.shares_memory(np.from_dlpack(x), x._value)
    assert np.asarray(x, dtype=np.float64).dtype == np.float64


def test_lod_is_kept_and_checked() -> None:
    x = to_tensor(A, lod=[[0, 1, 3]])
    assert x.lod == [[0, 1, 3]] and (x * 2).lod == [[0, 1, 3]] and x.relu().lod == [[0, 1, 3]]
    assert to_tensor(LoDTensor(A, [[0, 1, 3]])).lod == [[0, 1, 3]]
    assert x.value.lod == [[0, 1, 3]]
    with pytest.raises(InvalidLoDError, match="expected 3"):
        to_tensor(A, lod=[[0, 2]])


def test_sparse_rows() -> None:
    x = to_tensor(SelectedRows([2, 0], np.ones((2, 3), np.float32), 4))
    assert x.is_sparse and x.shape == (4, 3) and x.numpy().sum() == 6
    assert "SelectedRows" in repr(x)


@pytest.mark.parametrize(
    "f",
    [
        lambda x, y: x + y,
        lambda x, y: x - y,
        lambda x, y: x * y,
        lambda x, y: x / (y * y + 1),
        lambda x, y: (x * x) ** 2.0,
        lambda x, y: x @ y.T,
        lambda x, y: -x + 1,
        lambda x, y: 2 - x,
        lambda x, y: 3 / (x * x + 1),
        lambda x, y: x + y[0],
        lambda x, y: x * 2 - 0.5,
        lambda x, y: x < y,
        lambda x, y: x >= 0,
        lambda x, y: x == y,
        lambda x, y: x != 3,
        lambda x, y: x // 2,
        lambda x, y: x % 3,
        lambda x, y: x.reshape([4, 3]) if isinstance(x, Tensor) else x.reshape(4, 3),
    ],
)
def test_operators_are_numpys(f) -> None:
    b = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_allclose(f(to_tensor(A), to_tensor(b)).numpy(), f(A, b), rtol=1e-5, atol=1e-6)


def test_arrays_and_numbers_beside_tensors() -> None:
    x = to_tensor(A)
    for found in (x + A, A + x, x + A.tolist()):
        assert isinstance(found, Tensor)
        np.testing.assert_allclose(found.numpy(), A + A)
    assert (np.float64(2) * x).dtype == "float32"
    assert (to_tensor([1, 2]) + 1).numpy().tolist() == [2, 3]
    assert (to_tensor([1, 2]) / 2).numpy().tolist() == [0.5, 1.0]
    assert (to_tensor([1, 2]) + to_tensor([0.5, 0.5])).dtype == "float32"
    with pytest.raises(TypeError):
        x + "y"  # type: ignore[operator]


INDICES = [
    1,
    -1,
    slice(1, None),
    (slice(None), 2),
    (Ellipsis, -1),
    None,
    (0, slice(None, None, 2)),
    slice(None, None, -1),
    ([0, 2],),
    ([0, 2], [1, 3]),
    (np.array([[0, 1], [2, 0]]),),
    (slice(None), np.array([3, 0])),
    A > 0,
]


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_indexing_is_numpys(index) -> None:
    x = to_tensor(A)
    np.testing.assert_array_equal(x[index].numpy(), A[index])
    changed, expected = x.clone(), A.copy()
    changed[index] = 7.0
    expected[index] = 7.0
    np.testing.assert_array_equal(changed.numpy(), expected)


def test_tensors_as_indices() -> None:
    x = to_tensor(A)
    np.testing.assert_array_equal(x[to_tensor(1)].numpy(), A[1])
    np.testing.assert_array_equal(x[to_tensor([2, 0])].numpy(), A[[2, 0]])
    np.testing.assert_array_equal(x[x > 0].numpy(), A[A > 0])
    with pytest.raises(InvalidArgumentError, match="out of range"):
        x[3]
    with pytest.raises(InvalidArgumentError, match="out of bounds"):
        x[[5]]


def test_gradients_of_writing_a_part() -> None:
    x, v = to_tensor(A, requires_grad=True), to_tensor(np.ones(4, np.float32), requires_grad=True)
    y = x * 2
    y[1] = v * 3
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [[2] * 4, [0] * 4, [2] * 4])
    np.testing.assert_array_equal(v.grad.numpy(), [3] * 4)
    with pytest.raises(PreconditionNotMetError, match="no_grad"):
        x[0] = 0.0


def test_methods() -> None:
    x = to_tensor(A)
    assert x.sum().numpy() == A.sum() and x.sum(axis=1, keepdim=True).shape == (3, 1)
    np.testing.assert_allclose(x.mean(axis=0).numpy(), A.mean(0))
    assert x.max().item() == A.max() and x.min(axis=[0, 1]).item() == A.min()
    assert x.argmax(axis=1).numpy().tolist() == A.argmax(1).tolist() and x.argmax().dtype == "int64"
    assert x.T.shape == (4, 3) and x.transpose([1, 0]).shape == (4, 3) and x.reshape(2, -1).shape == (2, 6)
    assert (
        x.unsqueeze(0).shape == (1, 3, 4) and x.unsqueeze(0).squeeze(0).shape == (3, 4) and x.flatten().shape == (12,)
    )
    assert x.astype("int64").dtype == "int64" and x.softmax(axis=0).shape == (3, 4)
    assert [row.shape for row in x] == [(4,)] * 3
    with pytest.raises(AttributeError, match="no attribute or op 'softmacks'"):
        x.softmacks()  # type: ignore[attr-defined]
    with pytest.raises(InvalidArgumentError, match="expected one"):
        x.item()


def test_tensors_in_programs_and_numpy() -> None:
    main = oprack.Program()
    with oprack.program_guard(main, oprack.Program()):
        x = oprack.layers.data("x", [None, 4], lod_level=1)
        y = oprack.layers.relu(x)
    fed = to_tensor(A, lod=[[0, 1, 3]])
    (found,) = oprack.Executor().run(main, {"x": fed}, [y], return_numpy=False)
    np.testing.assert_array_equal(found.array, np.maximum(A, 0))
    assert found.lod == fed.lod
    scope = oprack.Scope()
    scope.var("x").set(fed)
    assert isinstance(scope.var("x").get(), LoDTensor) and scope.var("x").get().lod == fed.lod
    assert np.sum(fed) == A.sum() and np.concatenate([fed, fed]).shape == (6, 4)
    weight = to_tensor(A, requires_grad=True, name="w")
    with pytest.raises(InvalidArgumentError, match=r"call loss\.backward"):
        oprack.optimizer.SGD(0.1, parameter_list=[weight]).minimize((weight * weight).sum())


def test_copies_of_leaves() -> None:
    x = to_tensor(A, requires_grad=True, name="x")
    y = copy.deepcopy(x)
    assert y.requires_grad and y.name == "x" and not np.shares_memory(y._value, x._value)
    with pytest.raises(PreconditionNotMetError, match="detach"):
        copy.deepcopy(x * 2)


def test_set_value_writes_into_the_memory() -> None:
    x = to_tensor(A)
    memory = x._value
    x.set_value(np.zeros((3, 4)))
    assert x._value is memory and not memory.any() and x.inplace_version == 1
    with pytest.raises(InvalidArgumentError, match=r"shape \[2\]"):
        x.set_value(np.zeros(2))
