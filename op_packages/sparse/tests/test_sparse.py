"""Sparse tensors in use: eager calls, gradients that add up, modules, programs written by hand, and what is refused."""

from __future__ import annotations

import numpy as np
import oprack
import pytest
from oprack import Executor, Program, Scope, layers, program_guard, sparse
from oprack.errors import InvalidArgumentError, KernelNotFoundError, MemoryLimitError, NanInfError, OprackError
from oprack.tensor import SparseCooTensor
from oprack.types import VarType

INDICES, VALUES = [[0, 1, 2], [1, 2, 0]], [1.0, -2.0, 3.0]


def test_what_a_tensor_says() -> None:
    x = sparse.sparse_coo_tensor(INDICES, VALUES, [3, 4])
    assert x.is_sparse_coo() and not x.is_sparse_csr() and x.nnz() == 3 and x.shape == (3, 4) and x.dtype == "float32"
    assert x.indices().tolist() == INDICES and x.values().tolist() == VALUES
    rows = x.to_sparse_csr()
    assert rows.crows().tolist() == [0, 1, 2, 3] and rows.cols().tolist() == [1, 2, 0] and rows.is_sparse_csr()
    assert sparse.is_same_shape(x, rows) and "3 listed" in repr(x)
    assert x.to_dense().to_sparse_coo(2).indices().tolist() == INDICES
    with pytest.raises(InvalidArgumentError, match=r"crows: got tensor SparseCooTensor float32\[3, 4\]; expected a"):
        x.crows()
    assert sparse.sparse_coo_tensor(INDICES, VALUES).shape == (3, 3)
    assert sparse.sparse_csr_tensor([0, 1, 1], [0], [2], [2, 2], dtype="float64").to_dense().tolist() == [
        [2, 0],
        [0, 0],
    ]


def test_names_are_modules() -> None:
    import oprack.sparse.nn.functional as functional
    from oprack.sparse.nn import ReLU

    assert functional.relu is sparse.nn.functional.relu and ReLU is sparse.nn.ReLU
    assert {"SubmConv3D", "functional"} <= set(dir(sparse.nn)) and "attention" in dir(functional)
    with pytest.raises(AttributeError, match="has no attribute 'Relu'"):
        sparse.nn.Relu  # noqa: B018


def test_gradients_of_several_readers_add_up() -> None:
    x = sparse.sparse_coo_tensor(INDICES, VALUES, [3, 4], stop_gradient=False)
    for _ in range(2):  # the second call is generated code
        loss = (sparse.nn.functional.relu(x).to_dense() * 2).sum() + sparse.square(x).values().sum()
        loss.backward()
        want = np.array([2.0, 0.0, 2.0]) + 2 * np.array(VALUES)
        assert x.grad.is_sparse_coo() and x.grad.indices().tolist() == INDICES
        np.testing.assert_allclose(x.grad.values().numpy(), want)
        x.clear_grad()
    values = oprack.to_tensor(VALUES, requires_grad=True)
    y = sparse.sparse_coo_tensor(INDICES, values, [3, 4])
    y.backward(sparse.sparse_coo_tensor(INDICES, [1.0, 2.0, 3.0], [3, 4]))
    assert values.grad.tolist() == [1, 2, 3]


def test_sums_of_sparse_tensors_that_list_other_elements() -> None:
    x = sparse.sparse_coo_tensor(INDICES, VALUES, [3, 4])
    y = sparse.sparse_coo_tensor([[0, 0], [1, 3]], [5.0, 7.0], [3, 4])
    total = oprack.functional.sum([x, y, x])
    assert total.is_sparse_coo()
    np.testing.assert_array_equal(total.numpy(), 2 * x.numpy() + y.numpy())


def test_ops_of_other_packs_that_take_sparse_tensors() -> None:
    x = sparse.sparse_coo_tensor(INDICES, VALUES, [3, 4], stop_gradient=False)
    for y, factor in ((x.clone(), 1), (x * 3, 3), (x / 2, 0.5), (x.astype("float64"), 1)):
        x.clear_grad()
        y.values().sum().backward()
        assert y.is_sparse_coo() and x.grad.values().tolist() == [factor] * 3
        np.testing.assert_allclose(y.values().numpy(), np.array(VALUES) * factor)
    with pytest.raises(InvalidArgumentError, match="what is not listed would not stay zero"):
        x + 1
    with oprack.interpreter.check_finite(), pytest.raises(NanInfError):
        sparse.divide(x, x)


def test_a_network_over_points_learns() -> None:
    oprack.seed(1)
    draw = np.random.default_rng(0)
    points = np.unique(draw.integers(0, 4, (12, 3)), axis=0)
    indices = np.concatenate([np.zeros((1, len(points)), np.int64), points.T])
    x = sparse.sparse_coo_tensor(indices, draw.normal(size=(len(points), 2)).astype("float32"), [1, 4, 4, 4, 2])
    S = sparse.nn
    net = oprack.nn.Sequential(S.SubmConv3D(2, 4, 3), S.BatchNorm(4), S.ReLU(), S.Conv3D(4, 3, 2, stride=2))
    adam, losses = oprack.optimizer.Adam(0.05, parameters=net.parameters()), []
    for _ in range(8):
        loss = (S.MaxPool3D(2)(net(x)).values() - 1.0).square().mean()
        loss.backward()
        adam.step()
        adam.clear_grad()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2
    assert float(np.abs(net[1]._mean.numpy()).max()) > 0, "running statistics are written in place"
    assert S.SubmConv2D(1, 2, 3).weight.shape == (3, 3, 1, 2) and S.SyncBatchNorm(4)(net[0](x)).nnz() == len(points)


def test_attention_over_all_places_is_that_of_dense_matrices() -> None:
    q, k, v = (oprack.to_tensor(np.random.default_rng(i).normal(size=(2, 2, 3, 4)).astype("float32")) for i in range(3))
    mask = oprack.to_tensor(np.ones((4, 3, 3), "float32")).to_sparse_csr()
    got = sparse.nn.functional.attention(q, k, v, mask).numpy()
    scores = np.exp(q.numpy() @ k.numpy().swapaxes(-1, -2) / 2)
    np.testing.assert_allclose(got, scores / scores.sum(-1, keepdims=True) @ v.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("prepared", [False, True])
def test_a_program_with_sparse_tensors_trains(prepared: bool) -> None:
    main, startup = Program(), Program()
    with program_guard(main, startup):
        values = layers.data("values", [None])
        x = sparse.sparse_coo_tensor(layers.data("indices", [2, None], "int64"), values, [3, 4])
        w = layers.create_parameter([4, 2], "float32", name="w")
        product = sparse.matmul(sparse.nn.functional.softmax(x), w)
        loss = layers.mean(product * product)
        again = Program.parse(main.serialize())
        oprack.optimizer.SGD(0.5).minimize(loss)
    scope, executor = Scope(), Executor(seed=1, prepared=prepared)
    executor.run(startup, scope=scope)
    feed = {"values": np.array([1.0, 2.0, 3.0, 4.0], "float32"), "indices": np.array([[0, 0, 1, 2], [0, 1, 2, 3]])}
    (before,) = executor.run(again, feed, [loss.name], scope)
    losses = [float(executor.run(main, feed, [loss], scope)[0]) for _ in range(4)]
    assert losses[0] == pytest.approx(float(before)) and losses[-1] < losses[0]
    feed = {"values": feed["values"][:2], "indices": feed["indices"][:, :2]}
    assert np.isfinite(executor.run(main, feed, [loss], scope)[0]), "other sizes run by the same plan"


def test_a_function_that_jit_captured() -> None:
    def f(values: oprack.Tensor, w: oprack.Tensor) -> oprack.Tensor:
        return sparse.matmul(sparse.tanh(sparse.sparse_coo_tensor(INDICES, values, [3, 4])), w).sum()

    values, w = oprack.to_tensor(VALUES, requires_grad=True), oprack.to_tensor(np.ones((4, 2), "float32"))
    for call in (f, oprack.jit(f)):
        call(values, w).backward()
        np.testing.assert_allclose(values.grad.numpy(), 2 * (1 - np.tanh(VALUES) ** 2), rtol=1e-5)
        values.clear_grad()
    x = sparse.sparse_coo_tensor(INDICES, VALUES, [3, 4])
    whole = oprack.to_program(lambda a: sparse.tanh(a).to_dense(), [x])
    assert whole.program.global_block().vars[whole.feed_names[0]].type is VarType.SPARSE_COO
    np.testing.assert_allclose(oprack.jit(lambda a: sparse.tanh(a))(x).numpy(), np.tanh(x.numpy()), rtol=1e-6)


def test_principal_components() -> None:
    draw = np.random.default_rng(3)
    dense = (draw.normal(size=(8, 2)) @ draw.normal(size=(2, 5))).astype("float32")
    dense[draw.random(8) < 0.4] = 0
    for x in (oprack.to_tensor(dense).to_sparse_csr(), oprack.to_tensor(dense).to_sparse_coo(2)):
        for center in (False, True):
            want = dense - dense.mean(axis=0) * center
            u, s, v = (part.numpy() for part in sparse.pca_lowrank(x, q=4, center=center))
            np.testing.assert_allclose(u * s @ v.T, want, atol=1e-4)
            np.testing.assert_allclose(s, np.linalg.svd(want)[1][:4], atol=1e-4)
            np.testing.assert_allclose(v.T @ v, np.eye(4), atol=1e-4)
    with pytest.raises(InvalidArgumentError, match="q is 9"):
        sparse.pca_lowrank(x, q=9)


def test_dims_of_a_sparse_tensor_take_no_memory() -> None:
    huge = [1 << 31, 1 << 31, 1 << 31]
    x = sparse.sparse_coo_tensor([[0, 5], [7, 7], [1, 1 << 30]], [1.0, 2.0], huge, stop_gradient=False)
    y = sparse.add(sparse.nn.functional.relu(x), sparse.transpose(x, [0, 1, 2]))
    y.values().sum().backward()
    assert y.values().tolist() == [2, 4] and x.grad.values().tolist() == [2, 2]
    with pytest.raises(OprackError, match="this machine has"):
        x.to_dense()
    program = Program()
    with program_guard(program):
        out = sparse.sparse_coo_tensor(layers.data("i", [3, None], "int64"), layers.data("v", [None]), huge).values()
    feed = {"i": np.array([[0], [1], [2]]), "v": np.ones(1, "float32")}
    limited = Executor(memory_limit=1000)
    assert limited.run(program, feed, [out])[0].tolist() == [1]
    with program_guard(program):
        dense = sparse.sparse_coo_tensor(layers.data("j", [2, None], "int64"), layers.data("u", [None]), [99, 99])
        dense = dense.to_dense()
    with pytest.raises(MemoryLimitError):
        limited.run(program, feed | {"j": feed["i"][:2], "u": feed["v"]}, [dense])


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x, c: oprack.functional.relu(x), "X is a SparseCooTensor, but this kernel takes a LoDTensor"),
        (lambda x, c: sparse.sin(x.to_dense()), "x is a LoDTensor, but this kernel takes a SparseTensor"),
        (lambda x, c: sparse.add(x, c), "expected one layout"),
        (lambda x, c: sparse.sum(c, axis=0), "expected -1 or none of CSR"),
        (lambda x, c: sparse.nn.functional.softmax(c, axis=0), "expected -1, since CSR lists row by row"),
        (lambda x, c: sparse.matmul(x, c.to_dense()), "as many columns of x as rows of y"),
        (lambda x, c: sparse.reshape(x, [5, 5]), "expected as many elements"),
        (lambda x, c: sparse.transpose(x, [0, 0]), "expected each dim once"),
        (lambda x, c: c.to_sparse_coo(1), "CSR has no dense dims"),
        (lambda x, c: c.to_sparse_coo(5), "expected one to its rank"),
    ],
)
def test_calls_that_are_refused(call, text) -> None:
    x = sparse.sparse_coo_tensor(INDICES, VALUES, [3, 4])
    with pytest.raises((InvalidArgumentError, KernelNotFoundError, OprackError), match=text):
        call(x, x.to_sparse_csr())


def test_other_patterns_in_the_second_call() -> None:
    for n in (3, 1, 0, 3):
        x = SparseCooTensor(np.array(INDICES)[:, :n], np.array(VALUES[:n], np.float32), [3, 4])
        np.testing.assert_allclose(sparse.tanh(oprack.to_tensor(x)).numpy(), np.tanh(x.to_dense()), rtol=1e-6)


def test_a_program_can_not_declare_a_dense_output_sparse_to_escape_the_limits() -> None:
    program = Program()
    with program_guard(program):
        out = layers.fill_constant([1 << 20, 1 << 20], "float32", 1.0)
    program.global_block().vars[out.name].type = VarType.SPARSE_COO
    with pytest.raises(OprackError, match="this machine has"):
        Executor().run(program, fetch_list=[out])
    with pytest.raises(MemoryLimitError):
        small = Program()
        with program_guard(small):
            out = layers.fill_constant([64, 64], "float32", 1.0)
        small.global_block().vars[out.name].type = VarType.SPARSE_COO
        Executor(memory_limit=1000).run(small, fetch_list=[out])
