"""Sparse tensors as values of variables: what they hold and refuse, and their way through scope, feeds and fetches."""

from __future__ import annotations

import numpy as np
import oprack
import pytest
from oprack import Executor, Program
from oprack.errors import FeedDtypeError, FeedError, InvalidArgumentError
from oprack.kernel.signature import CONTAINERS
from oprack.runtime.feed_fetch import as_fed_value
from oprack.runtime.operator import describe_value
from oprack.runtime.plan.record import hollow, signature
from oprack.tensor import Scope, SelectedRows, SparseCooTensor, SparseCsrTensor
from oprack.tensor.kinds import KINDS, LISTED, kind_of
from oprack.types import VarType

COO = SparseCooTensor([[0, 2, 0], [1, 3, 1]], [1.0, 2.0, 3.0], [3, 4])
CSR = SparseCsrTensor([0, 1, 1, 0, 0, 2], [2, 0, 1], np.array([1, 2, 3], np.int32), [2, 2, 3])


def test_coo() -> None:
    assert (COO.shape, COO.dtype, COO.nnz, COO.sparse_dim) == ((3, 4), "float32", 3, 2)
    want = np.zeros((3, 4), np.float32)
    want[0, 1], want[2, 3] = 4, 2
    np.testing.assert_array_equal(COO.to_dense(), want)
    blocks = SparseCooTensor(np.array([[1]], np.int32), np.ones((1, 2), np.float16), [2, 2])
    assert blocks.indices.dtype == np.int32 and blocks.to_dense().tolist() == [[0, 0], [1, 1]]
    assert SparseCooTensor([[1, 1]], np.array([True, False]), [2]).to_dense().tolist() == [False, True]
    assert COO.with_values(np.ones((3, 5))).shape == (3, 4, 5)


def test_csr() -> None:
    assert CSR.coordinates().tolist() == [[0, 1, 1], [0, 1, 1], [2, 0, 1]]
    assert CSR.to_dense().tolist() == [[[0, 0, 1], [0, 0, 0]], [[0, 0, 0], [2, 3, 0]]]
    empty = SparseCsrTensor([0, 0, 0], [], np.zeros(0, np.float32), [2, 3])
    assert empty.to_dense().tolist() == [[0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: SparseCooTensor([0, 1], [1.0, 2.0], [3]), r"expected indices \[sparse dims, n\]"),
        (lambda: SparseCooTensor([[0, 1]], [1.0], [3]), r"expected indices \[sparse dims, n\]"),
        (lambda: SparseCooTensor([[0, 3]], [1.0, 2.0], [3]), r"dim 0 lie in \[0, 3\]; expected 0 <= index < 3"),
        (lambda: SparseCooTensor([[-1]], [1.0], [3]), r"dim 0 lie in \[-1, -1\]"),
        (lambda: SparseCooTensor([[0.5]], [1.0], [3]), "indices is float64; expected integers"),
        (lambda: SparseCooTensor([[0]], [[1.0, 2.0]], [3, 3]), r"and then the dims \[2\]"),
        (lambda: SparseCooTensor(np.zeros((1, 0), int), [], [-1]), "expected dims of at least 0"),
        (lambda: SparseCsrTensor([0, 1], [0], [1.0], [2, 2]), "expected 3 offsets for each matrix"),
        (lambda: SparseCsrTensor([1, 1, 1], [0], [1.0], [2, 2]), "offsets that start at 0 and never fall"),
        (lambda: SparseCsrTensor([0, 1, 0], [0], [1.0], [2, 2]), "offsets that start at 0 and never fall"),
        (lambda: SparseCsrTensor([0, 1, 2], [0], [1.0], [2, 2]), "expected the number of columns"),
        (lambda: SparseCsrTensor([0, 0, 1], [2], [1.0], [2, 2]), r"cols lie in \[2, 2\]; expected 0 <= col < 2"),
        (lambda: SparseCsrTensor([0, 1], [[0]], [1.0], [1, 1]), "expected three lists"),
        (lambda: SparseCsrTensor([0], [0], [1.0], [1]), "expected the shape of a matrix"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(make, text) -> None:
    with pytest.raises(InvalidArgumentError, match=text):
        make()


def test_kinds() -> None:
    assert kind_of(COO) is VarType.SPARSE_COO and kind_of(CSR) is VarType.SPARSE_CSR and kind_of(3) is VarType.RAW
    assert {VarType.SPARSE_COO, VarType.SPARSE_CSR, VarType.SELECTED_ROWS} == LISTED
    for name, taken in CONTAINERS.items():  # what kernels may ask for
        assert taken == {kind.__name__ for kind in KINDS if issubclass(kind, getattr(oprack.tensor, name))}
    assert {kind.__name__ for kind in KINDS} == CONTAINERS.keys() - {"SparseTensor"}


@pytest.mark.parametrize("value", [COO, CSR, SelectedRows([1, 1], np.ones((2, 3), np.float32), 4)])
def test_what_the_core_does_with_any_sparse_value(value) -> None:
    scope = Scope()
    scope.var("x").set(value)
    assert scope.find_var("x").get() is value
    shell = hollow(value)
    assert signature(shell) == signature(value) and not shell.elements.size and not shell.pattern[-1].size
    again = value.rebuilt(value.pattern, value.elements * 2)
    np.testing.assert_array_equal(again.to_dense(), value.to_dense() * 2)
    assert type(value).__name__ in describe_value(value) and value.listed in describe_value(value)
    x = oprack.to_tensor(value)
    assert x.shape == value.shape and type(value).__name__ in x.describe()
    np.testing.assert_array_equal(x.numpy(), value.to_dense())
    strided = value.rebuilt([np.repeat(a, 2, -1)[..., ::2] for a in value.pattern], value.elements)
    scope.var("x").set(strided)
    assert all(a.flags.c_contiguous for a in scope.find_var("x").get().pattern)


def test_feed_and_fetch() -> None:
    program = Program()
    block = program.global_block()
    x = block.create_var("x", type=VarType.SPARSE_COO, dtype="float32", shape=[-1, 4])
    (got,) = Executor().run(program, {"x": COO}, ["x"])
    assert isinstance(got, SparseCooTensor) and got.indices.tolist() == COO.indices.tolist()
    assert isinstance(as_fed_value("x", oprack.to_tensor(CSR), None), SparseCsrTensor)
    with pytest.raises(FeedDtypeError, match="feed 'x': got a SparseCooTensor of int64; the program expects float32"):
        as_fed_value("x", COO.with_values(np.arange(3)), x)
    with pytest.raises(FeedError, match="got a LoDTensor; the program expects a SPARSE_COO"):
        as_fed_value("x", np.zeros((3, 4), np.float32), x)
    with pytest.raises(FeedError, match="got a SparseCooTensor; the program expects a LOD_TENSOR"):
        as_fed_value("y", COO, block.create_var("y", type=VarType.LOD_TENSOR, dtype="float32", shape=[3, 4]))
    assert Program.parse(program.serialize()).global_block().vars["x"].type is VarType.SPARSE_COO
