"""Gradients of captured functions: what changed before them, twice, and of gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import oprack
import pytest
from jit_functions import eager_and_jit, scale_in_place, tensor_of, tripling
from oprack import functional as F
from oprack import nn
from oprack.errors import PreconditionNotMetError, UnimplementedError


@eager_and_jit
def test_a_changed_argument_is_refused(through: Any) -> None:
    w = tensor_of([1.0, 1.0], grad=True)
    f = through(lambda x: (x * w).sum())
    for _ in range(3):
        x = tensor_of([1.0, 2.0])
        x.detach()  # from here on its versions are counted
        loss = f(x)
        scale_in_place(x)
        with pytest.raises(PreconditionNotMetError, match=r"needs its input .* changed in place since by scale; use"):
            loss.backward()


@eager_and_jit
def test_a_changed_parameter_is_refused(through: Any) -> None:
    w = tensor_of([1.0, 1.0], grad=True)
    f = through(lambda x: (x * w).sum())
    x = tensor_of([1.0, 2.0], grad=True)
    loss = f(x)
    scale_in_place(w)
    with pytest.raises(PreconditionNotMetError, match=r"needs its input .* changed in place since by scale"):
        loss.backward()


@eager_and_jit
def test_a_changed_view_of_an_argument_is_refused(through: Any) -> None:
    f = through(lambda x, w: (x.reshape([2]) * w).sum())
    x, w = tensor_of([[1.0, 2.0]]), tensor_of([1.0, 1.0], grad=True)
    x.detach()
    loss = f(x, w)
    scale_in_place(x)
    with pytest.raises(PreconditionNotMetError, match="changed in place since by scale"):
        loss.backward()


@eager_and_jit
def test_a_changed_result_that_gradients_read_is_refused(through: Any) -> None:
    f = through(F.exp)
    x = tensor_of([0.0, 0.0], grad=True)
    y = f(x)
    y.add_(tensor_of([1.0, 1.0]))
    with pytest.raises(PreconditionNotMetError, match=r"needs its output .* changed in place since by"):
        y.sum().backward()


@eager_and_jit
def test_what_gradients_do_not_read_may_change(through: Any) -> None:
    f = through(lambda x, w: x * 2.0 + w)
    x, w = tensor_of([1.0, 2.0], grad=True), tensor_of([1.0, 1.0], grad=True)
    y = f(x, w)
    scale_in_place(x)
    scale_in_place(w)
    y.add_(tensor_of([1.0, 1.0]))
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]
    assert w.grad.tolist() == [1, 1]


@eager_and_jit
def test_backward_twice_and_accumulation(through: Any) -> None:
    net = tripling()
    f = through(net)
    x = tensor_of([[1.0, 2.0]])
    losses = [f(x).sum(), (f(x) * 2.0).sum()]
    losses[0].backward(retain_graph=True)
    losses[0].backward()
    losses[1].backward()
    assert net.weight.grad.tolist() == [[4, 4], [8, 8]]
    with pytest.raises(PreconditionNotMetError, match="a second time"):
        losses[1].backward()


@eager_and_jit
def test_batch_norm_twice_before_backward(through: Any) -> None:
    net = nn.Sequential(nn.BatchNorm1D(2), tripling())
    f = through(net)
    x = tensor_of([[1.0, 2.0], [3.0, 5.0]])
    total = f(x).sum() + f(x).sum()
    total.backward()
    np.testing.assert_allclose(net[1].bias.grad.numpy(), [4, 4])


def test_gradients_of_gradients_are_those_of_the_formula() -> None:
    x = tensor_of([1.0, 2.0], grad=True)
    (first,) = oprack.grad(oprack.jit(lambda x: x**4.0)(x).sum(), [x], create_graph=True)
    (second,) = oprack.grad(first.sum(), [x], create_graph=True)
    (third,) = oprack.grad(second.sum(), [x])
    np.testing.assert_allclose(first.numpy(), 4 * np.array([1.0, 8.0]), rtol=1e-6)
    np.testing.assert_allclose(second.numpy(), 12 * np.array([1.0, 4.0]), rtol=1e-6)
    np.testing.assert_allclose(third.numpy(), 24 * np.array([1.0, 2.0]), rtol=1e-6)


def test_a_penalty_of_gradients_trains_what_the_function_captures() -> None:
    """Loss = sum of g^2 for g = d sum((x w)^2) / dx = 2 x w^2, whose gradient by w is 8 x^2 w^3 2 = 16 x^2 w^3."""
    x, w = tensor_of([1.0, 2.0], grad=True), tensor_of([3.0, 0.5], grad=True)
    (g,) = oprack.grad(oprack.jit(lambda x: (x * w) * (x * w))(x).sum(), [x], create_graph=True)
    (g * g).sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), 16 * np.array([1.0, 4.0]) * np.array([27.0, 0.125]), rtol=1e-6)
    np.testing.assert_allclose(x.grad.numpy(), 8 * np.array([1.0, 2.0]) * np.array([81.0, 0.0625]), rtol=1e-6)


def test_gradients_flow_back_to_the_gradient_that_arrived() -> None:
    x, v = tensor_of([1.0, 2.0], grad=True), tensor_of([3.0, 4.0], grad=True)
    (g,) = oprack.grad(oprack.jit(lambda x: x * x)(x), [x], [v], create_graph=True)
    g.sum().backward()
    np.testing.assert_allclose(v.grad.numpy(), [2.0, 4.0])
    np.testing.assert_allclose(x.grad.numpy(), [6.0, 8.0])


def test_a_missing_gradient_is_zero_in_second_gradients() -> None:
    x = tensor_of([1.0, 2.0], grad=True)
    cube, _ = oprack.jit(lambda x: (x * x * x, x * x))(x)
    (g,) = oprack.grad(cube.sum(), [x], create_graph=True)
    (h,) = oprack.grad(g.sum(), [x])
    np.testing.assert_allclose(h.numpy(), [6.0, 12.0])


def test_second_gradients_leave_running_means_alone() -> None:
    nets = [nn.BatchNorm1D(2) for _ in range(2)]
    for net, f in zip(nets, (nets[0], oprack.jit(nets[1])), strict=True):
        for _ in range(2):
            x = tensor_of([[1.0, 2.0], [3.0, 5.0], [4.0, 1.0]], grad=True)
            y = f(x)
            (g,) = oprack.grad((y * y * y).sum(), [x], create_graph=True)
            (g * g).sum().backward()
        net.found = x.grad.numpy()
    eager, jitted = nets
    np.testing.assert_allclose(jitted.found, eager.found, rtol=1e-3, atol=1e-4)
    for name, value in eager.state_dict().items():
        np.testing.assert_allclose(jitted.state_dict()[name].numpy(), value.numpy(), rtol=1e-6)


def test_second_gradients_of_what_was_changed_since_are_an_error() -> None:
    x, b = tensor_of([1.0, 2.0], grad=True), tensor_of([3.0, 4.0])
    y = oprack.jit(lambda x: (x + b) * (x + b))(x)
    b.copy_(tensor_of([0.0, 0.0]))
    with pytest.raises(PreconditionNotMetError, match="changed in place since"):
        oprack.grad(y.sum(), [x], create_graph=True)


def test_second_gradients_of_random_numbers_are_refused_in_words() -> None:
    x = tensor_of([1.0, 2.0], grad=True)
    noisy = oprack.jit(lambda x: x * x * F.uniform_random(shape=[2], min=1.0, max=2.0))
    with pytest.raises(UnimplementedError, match="draws random numbers"):
        oprack.grad(noisy(x).sum(), [x], create_graph=True)
