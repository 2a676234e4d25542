"""Where results of captured functions lie, and what they and their callers write to."""

from __future__ import annotations

from typing import Any

import numpy as np
import oprack
import pytest
from jit_functions import eager_and_jit, scale_in_place, tensor_of
from oprack import functional as F
from oprack import nn, to_tensor
from oprack.errors import PreconditionNotMetError, UnimplementedError

A = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.reshape([-1]),
        lambda x: x[1:],
        lambda x: x[0],
        lambda x: x[:, 0],
        lambda x: x[0:2].reshape([-1]),
        lambda x: x.T,
        lambda x: x.unsqueeze(0),
        lambda x: x.unsqueeze(0).squeeze(0),
        lambda x: x.flatten(),
        lambda x: x.split(2)[1],
        lambda x: x.unbind(0)[1],
        lambda x: x.clone(),
        lambda x: x + 0.0,
        lambda x: x.astype("float32"),
        lambda x: x,
        lambda x: (x, x.T)[1],
    ],
)
def test_results_lie_on_memory_as_those_of_eager_calls(f: Any) -> None:
    fast = oprack.jit(f)
    for _ in range(4):  # the first calls of anything go another way
        found = []
        for call in (f, fast):
            x = to_tensor(A.copy())
            y = call(x)
            assert y.numpy().size
            found.append((y is x, np.may_share_memory(x._value, y._value)))
    assert found[0] == found[1]


def test_the_first_call_in_place_writes_where_later_ones_do() -> None:
    for _ in range(3):
        x = to_tensor(A.copy())
        y = x.reshape([-1])
        with oprack.no_grad():
            x.scale_(3.0, 0.34375)  # a pair that no other test calls with
        assert y.tolist() == (A.ravel() * 3 + 0.34375).tolist()


def test_what_is_returned_as_it_came_is_the_argument() -> None:
    w = tensor_of([1.0], grad=True)
    f = oprack.jit(lambda x: {"x": x, "w": w, "y": x * w})
    x = tensor_of([2.0], grad=True)
    found = f(x)
    assert found["x"] is x
    assert found["w"] is w
    (found["y"] + found["x"] + found["w"]).sum().backward()
    assert (x.grad.item(), w.grad.item()) == (2, 3)


def test_results_on_one_memory_know_of_each_other() -> None:
    def f(x: Any) -> Any:
        y = x * 2.0
        return y, y.T

    for call in (f, oprack.jit(f), oprack.jit(f)):
        for _ in range(3):
            y, turned = call(to_tensor(A.copy()))
            w = tensor_of(A, grad=True)
            z = (turned * w).sum()
            scale_in_place(y)
            with pytest.raises(PreconditionNotMetError, match="changed in place"):
                z.backward()


@eager_and_jit
def test_an_argument_that_the_function_changes_in_place(through: Any) -> None:
    def f(x: Any) -> Any:
        F.scale(x, scale=3.0, in_place=True)
        return x + 1.0

    call = through(f)
    for _ in range(3):
        x = tensor_of([1.0, 2.0])
        assert call(x).tolist() == [4, 7]
        assert x.tolist() == [3, 6]


@pytest.mark.parametrize(
    ("write", "values"),
    [
        (lambda c, x: c.fill_(3.0), (3.0, 3.0)),
        (lambda c, x: c.zero_(), (0.0, 0.0)),
        (lambda c, x: c.set_value(np.array([5.0])), (5.0, 5.0)),
        (lambda c, x: c.set_value(oprack.ones([1])), (1.0, 1.0)),
        (lambda c, x: c.copy_(x[:1] * 2.0), (2.0, 2.0)),
        (lambda c, x: c.add_(oprack.ones([1])), (2.0, 21.0)),
        (lambda c, x: c.sub_(x[1:]), (-1.0, -12.0)),
    ],
)
@eager_and_jit
def test_buffers_that_calls_write_to(through: Any, write: Any, values: Any) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("c", np.ones(1, np.float32))

        def forward(self, x: Any) -> Any:
            with oprack.no_grad():
                write(self.c, x)
            return x + self.c

    net = Net()
    call = through(net)
    for value in values:  # ten times what the call before left is what the second one begins with
        np.testing.assert_allclose(call(tensor_of([1.0, 2.0])).numpy(), [1.0 + value, 2.0 + value])
        assert net.c.item() == value
        net.c.scale_(10.0)


def test_writes_to_parameters_in_captured_functions_are_refused() -> None:
    weight = to_tensor(np.ones(2, np.float32), requires_grad=True)

    def f(x: Any) -> Any:
        weight.set_value(np.zeros(2, np.float32))
        return x * weight

    with pytest.raises(UnimplementedError, match="has requires_grad; do it outside"):
        oprack.jit(f)(tensor_of([1.0, 2.0]))
