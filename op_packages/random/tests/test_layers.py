"""Layers of random, and initializers: distribution, shapes, and that a seed decides the numbers."""

from __future__ import annotations

import numpy as np
import oprack
import pytest
from oprack import layers
from oprack.errors import InvalidArgumentError
from oprack.initializer import MSRA, Constant, Normal, NumpyArrayInitializer, TruncatedNormal, Uniform, Xavier


def run(build, seed=1, **feed):
    main = oprack.Program()
    with oprack.program_guard(main), oprack.unique_name.guard():
        made = build(**{name: layers.data(name, [None, *a.shape[1:]], a.dtype) for name, a in feed.items()})
    return oprack.Executor(seed=seed).run(main, feed=feed, fetch_list=list(made), scope=oprack.Scope())


def draws():
    n = layers.fill_constant([1], "int32", 3)
    return [
        layers.uniform_random([4000], min=2.0, max=4.0),
        layers.gaussian_random([4000], mean=3.0, std=0.5, dtype="float64"),
        layers.randint(5, shape=[4000]),
        layers.randperm(10),
        layers.uniform_random([n, 2]),
        layers.uniform_random_batch_size_like(layers.zeros([5, 2], "float32"), [-1, 3]),
    ]


def test_draws():
    uniform, normal, integers, order, mixed, like = run(draws)
    assert 2 <= uniform.min() and uniform.max() < 4 and uniform.mean() == pytest.approx(3, abs=0.05)
    assert (normal.mean(), normal.std()) == pytest.approx((3, 0.5), abs=0.05) and normal.dtype == np.float64
    assert set(integers) == set(range(5)) and sorted(order) == list(range(10))
    assert mixed.shape == (3, 2) and like.shape == (5, 3)


def test_seed_decides_and_ops_are_independent():
    first, again, other = run(draws, seed=3), run(draws, seed=3), run(draws, seed=4)
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(first[0], other[0])
    two = run(lambda: [layers.uniform_random([5]), layers.uniform_random([5])])
    assert not np.array_equal(*two)
    fixed = [run(lambda: [layers.uniform_random([5], seed=9)], seed=s)[0] for s in (1, 2)]
    np.testing.assert_array_equal(*fixed)


INITIALIZERS = {
    "constant": (Constant(2.5), lambda w: (w == 2.5).all()),
    "uniform": (Uniform(1, 3), lambda w: 1 <= w.min() and w.max() < 3 and abs(w.mean() - 2) < 0.1),
    "normal": (Normal(1, 2), lambda w: abs(w.mean() - 1) < 0.1 and abs(w.std() - 2) < 0.1),
    "truncated": (TruncatedNormal(0, 1), lambda w: abs(w).max() <= 2 and abs(w.std() - 0.88) < 0.05),
    "xavier": (Xavier(), lambda w: abs(w).max() <= (6 / 140) ** 0.5 and abs(w.std() - (2 / 140) ** 0.5) < 0.01),
    "msra": (MSRA(uniform=False), lambda w: abs(w.std() - (2 / 100) ** 0.5) < 0.01),
    "array": (NumpyArrayInitializer(np.arange(4000).reshape(100, 40)), lambda w: w[-1, -1] == 3999),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", INITIALIZERS)
def test_initializers(name, dtype):
    initializer, holds = INITIALIZERS[name]
    startup, scope = oprack.Program(), oprack.Scope()
    with oprack.program_guard(oprack.Program(), startup):
        w = layers.create_parameter([100, 40], dtype, default_initializer=initializer)
    oprack.Executor(seed=5).run(startup, scope=scope, fetch_list=[])
    value = np.asarray(scope.find_var(w.name).get())
    assert value.shape == (100, 40) and value.dtype == dtype and holds(value)


def test_startup_fills_parameters_by_seed():
    def parameters(seed):
        startup, scope = oprack.Program(), oprack.Scope()
        with oprack.program_guard(oprack.Program(), startup), oprack.unique_name.guard():
            names = [layers.create_parameter([4, 4]).name for _ in range(2)]
        oprack.Executor(seed=seed).run(startup, scope=scope, fetch_list=[])
        return [np.asarray(scope.find_var(name).get()) for name in names]

    first, again, other = parameters(1), parameters(1), parameters(2)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other) and not np.array_equal(*first)


def test_bad_calls():
    with oprack.program_guard(oprack.Program()):
        with pytest.raises(InvalidArgumentError, match="uniform_random: dtype is int64; expected float32 or float64"):
            layers.uniform_random([2], dtype="int64")
        with pytest.raises(InvalidArgumentError, match="gaussian_random: shape is 'a'"):
            layers.gaussian_random("a")
