"""Recording and the walk back: grad, backward, hooks, higher orders, in-place writes, what is kept."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import oprack
import pytest
from oprack import functional as F
from oprack import no_grad, to_tensor
from oprack.errors import InvalidArgumentError, NotDifferentiableError, PreconditionNotMetError
from oprack.interpreter.call_generator import CallGenerator
from oprack.kernel import kernel
from oprack.op import GradOp, Input, OpDef, Output
from oprack.packs import PackManager, use_manager

A = np.random.default_rng(0).standard_normal((3, 4))


def _leaf(array=A, **options):
    return to_tensor(array, requires_grad=True, **options)


def test_gradients_add_up_in_leaves() -> None:
    x = _leaf()
    for k in (1, 2):
        (x * x).sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), 2 * k * A)
    x.clear_grad()
    y = x * 2
    (y + y * 3 + x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.full((3, 4), 9.0))
    assert not x.grad.requires_grad


def test_grad_leaves_leaves_alone() -> None:
    x, y = _leaf(), _leaf(A[0])
    z = x * y
    gx, gz = oprack.grad((z * z).sum(), [x, z])
    np.testing.assert_allclose(gz.numpy(), 2 * A * A[0])
    np.testing.assert_allclose(gx.numpy(), 2 * A * A[0] ** 2)
    assert x.grad is None and y.grad is None
    (g,) = oprack.grad([x * 2, x * 3], [x], [np.ones((3, 4)), np.full((3, 4), 10.0)])
    np.testing.assert_allclose(g.numpy(), np.full((3, 4), 32.0))
    with pytest.raises(PreconditionNotMetError, match="do not depend on input 0"):
        oprack.grad((x * 2).sum(), [y])
    assert oprack.grad((x * 2).sum(), [y], allow_unused=True) == [None]


@pytest.mark.parametrize(
    "f",
    [
        lambda x, y: F.tanh(x * y),
        lambda x, y: F.matmul_v2(x, x.T) * x.sum(),
        lambda x, y: F.sigmoid(x) / (y * y + 1.0),
        lambda x, y: (x - y) ** 2.0,
        lambda x, y: F.concat([x, x * y], axis=1).reshape([-1])[2:9],
        lambda x, y: F.tanh(F.elementwise_sub(x, x.mean(axis=1, keepdim=True))),
        lambda x, y: F.sqrt(x * x + 1.0).sum(axis=0) * y,
        lambda x, y: F.leaky_relu(x * y, alpha=0.1),
    ],
)
def test_second_order(f) -> None:
    assert oprack.gradcheck(f, [A, A[0] + 2], order=2) == []


def test_gradcheck_finds_wrong_gradients() -> None:
    found = oprack.gradcheck(lambda x: x.detach() * x, [A])
    assert len(found) == 1 and "gradient of input 0" in found[0]
    with pytest.raises(InvalidArgumentError, match="floating"):
        oprack.gradcheck(lambda x: x, [np.arange(3)])


def test_third_order() -> None:
    x = _leaf(np.array([2.0]))
    y = x * x * x * x
    for expected in (32.0, 48.0, 48.0):
        (y,) = oprack.grad(y, [x], create_graph=True)
        np.testing.assert_allclose(y.numpy(), [expected])


def test_modes() -> None:
    x = _leaf()
    with no_grad():
        y = x * 2
        assert not oprack.is_grad_enabled() and not y.requires_grad
        with oprack.enable_grad():
            assert (x * 2).requires_grad
    assert (x * 2).requires_grad

    @no_grad()
    def f(v):
        return v * 2

    assert not f(x).requires_grad and f.__name__ == "f"
    assert not x.detach().requires_grad and not (x > 0).requires_grad and not x.argmax().requires_grad


def test_leaves() -> None:
    x = _leaf()
    y = x * 2
    assert x.is_leaf and not y.is_leaf
    x.stop_gradient = True
    assert not x.requires_grad
    with pytest.raises(InvalidArgumentError, match="detach"):
        y.requires_grad = False
    with pytest.raises(InvalidArgumentError, match="only floating"):
        to_tensor([1, 2], requires_grad=True)


def test_hooks() -> None:
    x, seen = _leaf(), []
    y = x * 2
    y.register_hook(lambda g: seen.append(g.numpy().copy()))
    remove = x.register_hook(lambda g: g * 10)
    (y * 3).sum().backward()
    np.testing.assert_allclose(seen[0], np.full((3, 4), 3.0))
    np.testing.assert_allclose(x.grad.numpy(), np.full((3, 4), 60.0))
    remove()
    (x * 1).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.full((3, 4), 61.0))
    with pytest.raises(InvalidArgumentError, match="requires_grad"):
        to_tensor(A).register_hook(print)


def test_saved_tensors_are_let_go_of() -> None:
    x = _leaf()
    y = F.tanh(x)
    loss = (y * y).sum()
    loss.backward(retain_graph=True)
    loss.backward()
    with pytest.raises(PreconditionNotMetError, match=r"second time through op (reduce_sum|elementwise_mul|tanh)"):
        loss.backward()


def test_nothing_is_kept_that_no_gradient_reads() -> None:
    x = _leaf(np.ones((4, 4)))
    big = x * 2.0
    memory = weakref.ref(big._value.base if big._value.base is not None else big._value)
    y = big + big  # its gradient reads shapes only
    del big
    gc.collect()
    assert memory() is None
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.full((4, 4), 4.0))


def test_no_reference_cycles() -> None:
    x = _leaf()
    F.exp(F.tanh(x)).sum().backward()
    gc.collect()
    gc.disable()
    try:
        y = F.exp(F.tanh(x)).sum()
        y.backward()
        del y
        F.split(x, num=2, axis=1)
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_errors_of_starting() -> None:
    x = _leaf()
    with pytest.raises(InvalidArgumentError, match="expected one element"):
        (x * 2).backward()
    with pytest.raises(InvalidArgumentError, match="does not depend"):
        to_tensor(A).sum().backward()
    with pytest.raises(InvalidArgumentError, match="same shape"):
        (x * 2).backward(np.ones(3))
    (x * 2).backward(np.ones((3, 4)))
    np.testing.assert_allclose(x.grad.numpy(), np.full((3, 4), 2.0))


def test_ops_without_gradient() -> None:
    x = _leaf()
    y = F.hard_swish(x)
    (g,) = oprack.grad((y * y).sum(), [x], create_graph=True)
    assert g.requires_grad
    with pytest.raises(NotDifferentiableError, match="hard_swish_grad"):
        (g * g).sum().backward()


@pytest.mark.parametrize("other", [lambda y: y.detach(), lambda y: y.reshape([-1]).detach(), lambda y: y.unsqueeze(0)])
@pytest.mark.parametrize("write", [lambda t: t.scale_(2.0), lambda t: t.fill_(0.5), lambda t: t.__setitem__(0, 1.0)])
def test_writes_through_what_lies_on_a_saved_output_are_noticed(other, write) -> None:
    x = _leaf()
    y = F.exp(x)
    twin = other(y)
    with no_grad():
        write(twin)
    with pytest.raises(PreconditionNotMetError, match="op exp needs its output Out, which was changed in place since"):
        y.sum().backward()
    y = F.exp(x)
    other(y)
    y.sum().backward()  # nobody wrote
    np.testing.assert_allclose(x.grad.numpy(), np.exp(A))


def test_writes_after_a_recorded_write_are_noticed() -> None:
    x = _leaf()
    y = x * 2.0
    twin = y.detach()
    y = F.tanh(y, in_place={"X": "Out"})
    twin.scale_(2.0)
    with pytest.raises(
        PreconditionNotMetError, match="op tanh needs its output X, which was changed in place since by scale"
    ):
        y.sum().backward()


def test_writes_in_place_are_noticed() -> None:
    x = _leaf()
    y = F.exp(x)
    y.scale_(2.0)
    with pytest.raises(
        PreconditionNotMetError, match="op exp needs its output Out, which was changed in place since by scale"
    ):
        y.sum().backward()
    a = x * 1.0
    a.name = "a"
    z = a * a
    a.add_(x)
    with pytest.raises(PreconditionNotMetError, match=r"op elementwise_mul needs its input X \('a'\).*elementwise_add"):
        z.sum().backward()
    with pytest.raises(PreconditionNotMetError, match="in place, which has requires_grad"):
        x.scale_(2.0)
    with no_grad():
        x.scale_(2.0)
    np.testing.assert_allclose(x.numpy(), 2 * A)


def test_writes_to_views_are_noticed() -> None:
    x = _leaf()
    y = x * 1.0
    z = y * y
    y.reshape([12]).scale_(3.0)
    with pytest.raises(PreconditionNotMetError, match="changed in place"):
        z.sum().backward()


def test_gradients_flow_through_writes_in_place() -> None:
    x = _leaf()
    y = x * 1.0
    y.scale_(3.0)
    y.add_(x)
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.full((3, 4), 4.0))


def test_sparse_gradients_add_up() -> None:
    w, ids = _leaf(np.ones((6, 2))), to_tensor([1, 3, 3])
    for _ in range(2):
        F.lookup_table_v2(ids, w, is_sparse=True).sum().backward()
        assert w.grad.is_sparse
    np.testing.assert_allclose(w.grad.numpy().sum(1), [0, 4, 0, 8, 0, 0])
    (w * 1.0).sum().backward()
    np.testing.assert_allclose(w.grad.numpy().sum(1), [2, 6, 2, 10, 2, 2])


def test_outputs_that_nothing_flows_into_count_as_zero() -> None:
    x = _leaf()
    first, *_ = F.split(x, num=2, axis=1)
    first.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [[1, 1, 0, 0]] * 3)


def test_lod_of_gradients() -> None:
    x = _leaf(lod=[[0, 1, 3]])
    F.sequence_pool(x, pooltype="SUM").sum().backward()
    assert x.grad.shape == (3, 4)
    np.testing.assert_allclose(x.grad.numpy(), np.ones((3, 4)))


def test_generated_code_can_be_read() -> None:
    x = _leaf()
    F.relu(x)
    bound = next(
        bound
        for expr in oprack.functional.op_function.op_function("relu")._exprs.values()
        for bound in expr.bound.values()
    )
    assert "def call(_a0, values=None):" in CallGenerator(bound, None).generate().source


def test_ops_of_one_gradient_maker_that_share_an_input_are_summed() -> None:
    """Out = X + X Y: two gradient ops each give a part of the gradient of X, as a product rule writes them."""

    class PlusProduct(OpDef, type="plus_product"):
        """$$Out = X + X Y$$"""

        X, Y, Out = Input("Any shape."), Input("Shape of X."), Output("Shape of X.")

        def infer_shape(ctx):  # type: ignore[no-untyped-def]
            ctx.set_dim("Out", ctx.dim("X"))

        def make_grad(fwd):  # type: ignore[no-untyped-def]
            d = fwd.output_grad("Out")
            product = {"X": fwd.input("X"), "Y": fwd.input("Y"), "Out@GRAD": d}
            results = {"X@GRAD": fwd.input_grad("X"), "Y@GRAD": fwd.input_grad("Y")}
            return [
                GradOp("scale", X=d, Out=fwd.input_grad("X"), attrs={"scale": 1.0}),
                GradOp("elementwise_mul_grad", inputs=product, outputs=results),
            ]

    @kernel("plus_product")
    def plus_product(X, Y):  # type: ignore[no-untyped-def]
        return X + X * Y

    with use_manager(PackManager()) as manager:
        oprack.register_operator(PlusProduct)
        manager.register_kernel(plus_product)
        a, b = np.array([2.0, -3.0]), np.array([5.0, 7.0])
        for _ in range(2):
            x, y = (oprack.to_tensor(v, requires_grad=True) for v in (a, b))
            F.plus_product(x, y).sum().backward()
            np.testing.assert_array_equal(x.grad.numpy(), 1 + b)
            np.testing.assert_array_equal(y.grad.numpy(), a)
        x, y = (oprack.to_tensor(v, requires_grad=True) for v in (a, b))
        (dx,) = oprack.grad([(F.plus_product(x, y) * F.plus_product(x, y)).sum()], [x], create_graph=True)
        (ddx,) = oprack.grad([dx.sum()], [x])
        np.testing.assert_allclose(dx.numpy(), 2 * a * (1 + b) ** 2)
        np.testing.assert_allclose(ddx.numpy(), 2 * (1 + b) ** 2)
        program = oprack.Program()
        with oprack.program_guard(program, oprack.Program()):
            u, v = (oprack.layers.data(n, [2], dtype="float64") for n in "uv")
            u.stop_gradient = False
            (du,) = oprack.gradients([F.plus_product(u, v)], [u])
        (found,) = oprack.Executor().run(program, {"u": a, "v": b}, [du.name])
        np.testing.assert_array_equal(found, 1 + b)
