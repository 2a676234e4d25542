"""What jit does with threads, many shapes, operands of other kinds, and an interruption; what it refuses in words."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import numpy as np
import oprack
import pytest
from jit_functions import Normed, counted, tensor_of
from oprack import nn, to_tensor
from oprack.errors import InvalidArgumentError
from oprack.testing.fuzz.lives.subjects import in_threads


def test_threads_share_a_function() -> None:
    net = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.BatchNorm1D(8, momentum=0.9), nn.Linear(8, 8))
    net[2].eval()
    f = oprack.jit(net)
    inputs = [np.random.default_rng(i).normal(size=(4 + i % 2, 8)).astype(np.float32) for i in range(4)]
    expected = [net(to_tensor(a)).numpy() for a in inputs]
    slopes = []
    for a in inputs:
        t = to_tensor(a, requires_grad=True)
        slopes.append(oprack.grad([net(t).sum()], [t])[0].numpy())

    def work(i: int) -> None:
        for _ in range(40):
            t = to_tensor(inputs[i], requires_grad=True)
            y = f(t)
            (g,) = oprack.grad([y.sum()], [t])
            np.testing.assert_allclose(y.numpy(), expected[i], rtol=1e-4, atol=1e-6)
            np.testing.assert_allclose(g.numpy(), slopes[i], rtol=1e-4, atol=1e-6)
            with oprack.no_grad():
                np.testing.assert_allclose(f(inputs[i]).numpy(), expected[i], rtol=1e-4, atol=1e-6)

    in_threads([partial(work, i) for i in range(4)])


def test_the_program_that_was_used_least_lately_goes() -> None:
    f, calls = counted(lambda x: x * 2.0)
    f(tensor_of(np.ones(1)))
    for size in range(2, 40):
        f(tensor_of(np.ones(size)))
        f(tensor_of(np.ones(1)))
    assert len(calls) == 39


def test_arguments_that_can_not_be_compared() -> None:
    for k, has in ((bytearray(), "is"), ([bytearray()], "has"), ({"k": (bytearray(),)}, "has")):
        with pytest.raises(InvalidArgumentError, match=f"argument k {has} a bytearray"):
            oprack.jit(lambda x, k: x)(tensor_of([1.0]), k=k)


@pytest.mark.parametrize("value", [np.float64(0.1), np.float32(0.1), np.int64(3), np.array(0.5), np.array([0.5, 1.0])])
@pytest.mark.parametrize(
    "f",
    [
        *(lambda x, v: v * x, lambda x, v: x * v, lambda x, v: v - x, lambda x, v: v / x, lambda x, v: v**x),
        *(lambda x, v: v < x, lambda x, v: x > v, lambda x, v: v // x),
    ],
)
def test_numbers_and_arrays_of_numpy_as_operands(f: Any, value: Any) -> None:
    x = tensor_of([1.0, 2.0])
    found, wanted = oprack.jit(lambda t: f(t, value))(x), f(x, value)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found.numpy(), wanted.numpy())
    np.testing.assert_allclose(found.numpy(), f(np.array([1.0, 2.0]), value), rtol=1e-6)


def test_a_capture_that_is_interrupted_at_any_line_leaves_guards_as_they_were() -> None:
    from oprack.capture import guards
    from oprack.testing.fuzz.injection import leaves_block

    class StopHere(Exception):
        pass

    watched = {f.__code__ for f in (guards._noted.__wrapped__, guards._note_reads, guards._note_nothing)}  # type: ignore[attr-defined]
    lines = 0
    while True:
        left = lines

        def trace(frame: Any, event: str, argument: Any) -> Any:
            nonlocal left
            if frame.f_code not in watched:
                return None
            if event == "line" and not leaves_block(frame):
                left -= 1
                if left == -1:
                    raise StopHere
            return trace

        net = Normed()
        net.forward = lambda x, net=net: x * (float(net.mean.numpy()[0]) + 1.0)
        sys.settrace(trace)
        try:
            oprack.jit(net)(tensor_of([1.0, 2.0]))
        except StopHere:
            pass
        finally:
            sys.settrace(None)
        if left >= 0:
            break
        f = oprack.jit(net)
        assert f(tensor_of([1.0, 2.0])).tolist() == [1.0, 2.0]
        with oprack.no_grad():
            net.mean.add_(tensor_of([1.0, 1.0]))
        assert f(tensor_of([1.0, 2.0])).tolist() == [2.0, 4.0], lines
        lines += 1
    assert lines > 20
    # Where it was interrupted while it let go, reads go on being noted, which only makes them slower.
    guards._reads.set(None)
    guards._under_way.clear()
    guards._note_nothing()
