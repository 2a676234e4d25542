"""Ops of packs as functions of jax: values, memory, tracing, gradients and batches."""

from __future__ import annotations

import numpy as np
import oprack
import pytest

jax = pytest.importorskip("jax", reason="jax is not installed; `make bridges` runs this")
import jax.numpy as jnp  # noqa: E402
from jax.test_util import check_grads  # noqa: E402
from oprack.errors import InvalidLoDError, UnimplementedError  # noqa: E402
from oprack_jax import Sequences, ops  # noqa: E402

X = np.array([[-1.5, 0.5, 2.0], [3.0, -0.25, 1.0]])


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


def test_arguments_are_those_of_oprack_functional() -> None:
    assert ops.matmul_v2.__signature__ == oprack.functional.matmul_v2.__signature__
    assert ops.cast(X, in_dtype="float64", out_dtype=jnp.float32).dtype == jnp.float32
    values, indices = ops.top_k_v2(jnp.asarray(X), k=2)
    want = jax.lax.top_k(X, 2)
    np.testing.assert_array_equal(values, want[0])
    np.testing.assert_array_equal(indices, want[1])
    assert [p.shape for p in ops.split(jnp.asarray(X), num=3, axis=1)] == [(2, 1)] * 3
    with pytest.raises(AttributeError, match="no installed pack brings it"):
        _ = ops.relu_of_nobody
    with pytest.raises(TypeError, match="slope"):
        ops.leaky_relu(jnp.asarray(X), slope=0.1)


def test_inputs_go_to_their_slots_whatever_their_order() -> None:
    mean, variance, scale, bias = (jnp.asarray([float(i), i + 1.0, i + 2.0]) for i in range(1, 5))
    want = (X - mean) / np.sqrt(variance + 1e-5) * scale + bias

    def call(*arrays):
        return ops.batch_norm(*arrays, is_test=True, epsilon=1e-5)

    for function in (call, jax.jit(call)):
        np.testing.assert_allclose(function(jnp.asarray(X), mean, variance, scale, bias)[0], want, rtol=1e-6)


def test_nothing_is_copied_on_the_way_in() -> None:
    from oprack_jax.arrays import from_jax

    x = jnp.asarray(np.arange(64.0))
    assert from_jax(x)._value.ctypes.data == x.unsafe_buffer_pointer()


def test_results_lie_on_the_kernel_s_memory_where_jax_takes_it() -> None:
    from oprack_jax.arrays import to_jax

    memory = np.zeros(64 + 8)
    at = (-memory.ctypes.data // 8) % 8  # jax asks for 64 bytes
    value = memory[at : at + 64]
    own = oprack.to_tensor(np.ones(4))
    own._value = value
    assert to_jax(own).unsafe_buffer_pointer() != value.ctypes.data  # a view is somebody else's as well
    assert np.array_equal(to_jax(oprack.to_tensor(np.arange(64.0))), np.arange(64.0))


def test_shapes_without_values_and_jit() -> None:
    a, b = (jax.ShapeDtypeStruct(shape, "float64") for shape in ((5, 3), (3, 2)))
    found = jax.eval_shape(ops.matmul_v2, a, b)
    assert (found.shape, found.dtype) == ((5, 2), np.float64)
    np.testing.assert_allclose(jax.jit(lambda x: ops.softmax(ops.relu(x)) * 2)(X), 2 * jax.nn.softmax(np.maximum(X, 0)))
    with pytest.raises(UnimplementedError, match="depends on values"):
        jax.jit(ops.where_index)(jnp.asarray(X > 0))
    np.testing.assert_array_equal(ops.where_index(jnp.asarray(X > 0)), np.argwhere(X > 0))


def test_gradients_of_first_and_second_order() -> None:
    check_grads(ops.tanh, (X,), order=2, modes=["rev"])
    check_grads(lambda x, w: ops.softmax(ops.matmul_v2(x, w)), (X, X.T.copy()), order=1, modes=["rev"])
    want = jax.jacrev(jax.grad(lambda x: jnp.tanh(x).sum()))(X[0])
    np.testing.assert_allclose(jax.jacrev(jax.grad(lambda x: ops.tanh(x).sum()))(X[0]), want, rtol=1e-9)
    picked = jax.grad(lambda x: ops.gather(x, jnp.asarray([1, 1])).sum())(jnp.asarray(X))
    np.testing.assert_array_equal(picked, [[0, 0, 0], [2, 2, 2]])
    z = jnp.asarray(X) + 1j
    want = jax.grad(lambda z: (jnp.conj(z) * z).real.sum())(z)
    found = jax.grad(lambda z: ops.real(ops.conj(z) * z).sum())(z)
    np.testing.assert_allclose(found, want)


def test_batches_go_one_by_one() -> None:
    batch = jnp.asarray(np.stack([X, 2 * X]))
    np.testing.assert_allclose(jax.vmap(ops.tanh)(batch), np.tanh(batch))
    found = jax.jit(jax.vmap(jax.grad(lambda x: ops.tanh(x).sum())))(batch)
    np.testing.assert_allclose(found, 1 - np.tanh(batch) ** 2)
    w = jnp.asarray(X.T.copy())
    np.testing.assert_allclose(jax.vmap(ops.matmul_v2, in_axes=(0, None))(batch, w), batch @ w)


def test_without_x64_dtypes_are_those_of_jax() -> None:
    with jax.enable_x64(False):
        x = jnp.asarray([2, 3])
        assert ops.shape(x).dtype == jnp.int32 and jax.jit(ops.relu)(jnp.ones(2)).dtype == jnp.float32


def test_a_batch_is_one_call_where_any_dim_may_be_split(monkeypatch: pytest.MonkeyPatch) -> None:
    from oprack_jax import calls

    seen, run = [], calls.run
    monkeypatch.setattr(calls, "run", lambda expr, tensors: seen.append(expr.type) or run(expr, tensors))
    batch = jnp.asarray(np.stack([X] * 5))
    for function, want, number in (
        (lambda x: ops.elu(x, alpha=0.25), jax.nn.elu(batch, 0.25), 1),
        (lambda x: ops.softmax(x, axis=0), jax.nn.softmax(batch, axis=1), 5),
        (lambda x: ops.elementwise_add(x, jnp.asarray(X)), 2 * batch, 1),
    ):
        seen.clear()
        np.testing.assert_allclose(jax.block_until_ready(jax.vmap(function)(batch)), want)
        assert len(seen) == number


LENGTHS = Sequences(np.arange(12.0).reshape(4, 3), ((0, 2, 2, 4),))


def test_sequences_keep_their_offsets_under_jit() -> None:
    for function in (ops.relu, jax.jit(ops.relu)):
        found = function(LENGTHS)
        assert isinstance(found, Sequences) and found.offsets == LENGTHS.offsets
        np.testing.assert_array_equal(found.values, LENGTHS.values)
    for function in (ops.sequence_pool, jax.jit(ops.sequence_pool, static_argnames="pooltype")):
        found = function(LENGTHS, pooltype="SUM")
        found = found[0] if isinstance(found, tuple) else found
        np.testing.assert_array_equal(found, [[3, 5, 7], [0, 0, 0], [15, 17, 19]])
    again = Sequences.of([np.ones((2, 3)), np.ones((1, 3))])
    assert again.offsets == ((0, 2, 3),) and [len(s) for s in again.split()] == [2, 1]
    assert jax.jit(ops.relu)(again).offsets == again.offsets  # compiled anew, as for another shape
    with pytest.raises(InvalidLoDError, match="at least one"):
        Sequences.of([])
    with pytest.raises(InvalidLoDError, match="offsets that jax traces"):
        jax.jit(lambda o: ops.relu(Sequences(X, (o,))))(jnp.asarray([0, 2]))


def test_gradients_of_sequences() -> None:
    def softmax(column):
        return ops.sequence_softmax(Sequences(column, LENGTHS.offsets)).values

    check_grads(softmax, (LENGTHS.values[:, :1] / 10,), order=1, modes=["rev"])
    slope = jax.jit(jax.grad(lambda s: (jax.tree.leaves(ops.sequence_pool(s, pooltype="SUM"))[0] ** 2).sum()))(LENGTHS)
    assert isinstance(slope, Sequences)
    sums = np.array([[3, 5, 7], [15, 17, 19]])
    np.testing.assert_allclose(slope.values, 2 * sums[[0, 0, 1, 1]])


def test_sizes_that_offsets_and_values_say_are_refused_in_traces() -> None:
    tokens = Sequences(np.array([[0], [1]]), ((0, 2),))
    assert ops.sequence_erase(tokens, tokens=[0]).offsets == ((0, 1),)
    with pytest.raises(UnimplementedError, match="depends on values"):
        jax.jit(lambda t: ops.sequence_erase(t, tokens=[0]))(tokens)


def test_calls_of_compiled_functions_read_xla_s_memory_and_say_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    from oprack_jax import calls, ffi

    assert ffi.usable()
    seen, run = [], calls.run
    monkeypatch.setattr(calls, "run", lambda expr, tensors: seen.extend(tensors) or run(expr, tensors))
    x = jnp.asarray(np.arange(64.0))
    np.testing.assert_array_equal(jax.jit(lambda a: ops.square(a))(x), np.arange(64.0) ** 2)
    assert seen[0]._value.ctypes.data == x.unsafe_buffer_pointer() and not seen[0]._value.flags.writeable
    empty = jax.jit(ops.relu)(jnp.ones((0, 3)))
    assert empty.shape == (0, 3) and jax.jit(ops.relu)(jnp.float64(-2.0)) == 0
    assert jax.jit(ops.relu)(jnp.ones(3, jnp.bfloat16)).dtype == jnp.bfloat16
    with pytest.raises(Exception, match="expected 0 <= value < 2"):
        jax.block_until_ready(jax.jit(ops.gather)(jnp.asarray(X), jnp.asarray([0, 7])))


def test_without_the_interface_a_callback_does_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    from oprack_jax import ffi

    monkeypatch.setattr(ffi, "usable", lambda: False)
    np.testing.assert_allclose(jax.jit(lambda x: ops.tanh(ops.square(x)))(X), np.tanh(X**2))
