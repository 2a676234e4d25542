"""Stretches: several ops of a predictor's plan run by one native call, with the numbers of the reference path."""

from __future__ import annotations

import gc
import logging
import threading
import weakref

import numpy as np
import oprack
import pytest
from oprack_onednn.c.runner import RUNNER, NativeStretch, _Stretch
from oprack_onednn.chain.thread import THREAD, PerThread
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.kernel_library import KERNEL_LIBRARY
from oprack_onednn.stretch import bound_stretch, stretch
from served_nets import CLOSE, Served, branches, images, normal, rows

LIBRARY.usable()
pytestmark = pytest.mark.skipif(RUNNER.run is None, reason=f"the runner is not there: {RUNNER.problem}")


@pytest.fixture
def served(tmp_path, any_size):
    def make(net, *shape, **options):
        return Served(net, shape, tmp_path, **options)

    return make


@pytest.fixture
def native(monkeypatch):
    """The number of chains of each run of the runner."""
    counts, run = [], RUNNER.run

    def counted(pointer):
        counts.append(_Stretch.from_address(pointer).chain_count)
        return run(pointer)

    monkeypatch.setattr(RUNNER, "run", counted)
    return counts


NETS = [(images, (3, 20, 24)), (branches, (3, 20, 24)), (rows, (128,))]


@pytest.mark.parametrize("net, shape", NETS, ids=["images", "branches", "rows"])
def test_a_net_is_a_few_calls_with_the_same_numbers(served, native, net, shape):
    model = served(net, *shape)
    for seed in range(5):
        native.clear()
        model.check(normal(2, *shape, seed=seed))
    assert len(native) <= 2 and max(native) >= 4, native
    assert "ops in one call" in model.source()


def test_small_maps_do_not_end_a_stretch(tmp_path, native):
    """By the limits of size alone NumPy would compute much of it, and its results would be row-major."""

    def net(x):
        layers = oprack.layers
        x = layers.conv2d(x, 1, 3, padding=1, act="relu")
        up = layers.resize_nearest(layers.pool2d(x, 2, "avg", 2), scale=2.0, align_corners=False)
        x = layers.conv2d(layers.concat([x, up], axis=1), 16, 3, padding=1)
        x = layers.concat([layers.pool2d(x, 2, "max", 2), layers.conv2d(x, 4, 1, stride=2)], axis=1)
        return layers.softmax(layers.conv2d(x, 5, 1), axis=1)

    model = Served(net, (3, 8, 12), tmp_path)
    for seed in range(4):
        native.clear()
        model.check(normal(2, 3, 8, 12, seed=seed))
    assert len(native) == 1, native


@pytest.mark.parametrize("net, sizes", [(images, [3, None, None]), (branches, [3, None, None]), (rows, [128])])
def test_the_first_run_of_a_form_is_the_same_calls_as_later_ones(served, native, net, sizes):
    model = served(net, *sizes)
    forms = [(2, 20, 24), (1, 16, 40), (3, 36, 28), (1, 44, 12)]
    for seed, (n, *spatial) in enumerate(forms):
        x, calls = normal(n, sizes[0], *(spatial if len(sizes) > 1 else ()), seed=seed), []
        for _ in range(3):
            native.clear()
            model.check(x)
            calls.append([*native])
        assert calls[1] == calls[2] and max(calls[1]) >= 4, calls
        assert seed == 0 or calls[0] == calls[1], calls  # of a model, the first run of all records a plan


@pytest.mark.parametrize("net, shape", NETS, ids=["images", "branches", "rows"])
def test_every_run_has_its_own_shape_and_comes_back(served, net, shape):
    model = served(net, *shape)
    batches = [1, 3, 2, 3, 3, 1, 2, 2, 3, 1, 1]
    for seed, n in enumerate(batches):
        model.check(normal(n, *shape, seed=seed))


def test_images_of_any_size_and_layout(served):
    model = served(images, 3, 20, 24)
    main = model.program.global_block()
    assert main.vars["x"].shape[1:] == (3, 20, 24)
    for seed in range(8):
        x = normal(2, 20, 24, 3, seed=seed).transpose(0, 3, 1, 2) if seed % 2 else normal(2, 3, 20, 24, seed=seed)
        model.check(x)


def test_results_are_arrays_of_their_own(served):
    model = served(images, 3, 20, 24)
    handle = model.predictor.get_output_handle(model.predictor.get_output_names()[0])
    found = []
    for seed in range(4):
        x = normal(1, 3, 20, 24, seed=seed)
        model.predictor.get_input_handle("x").copy_from_cpu(x)
        model.predictor.run()
        found.append((x, handle.copy_to_cpu()))
    for x, y in found:
        np.testing.assert_allclose(y, model.reference(x), **CLOSE)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("net, shape", NETS, ids=["images", "branches", "rows"])
def test_nan_and_infinities_come_out_where_numpy_has_them(served, net, shape, value):
    model = served(net, *shape)
    plain = normal(2, *shape)
    odd = plain.copy()
    odd[1].flat[7] = value
    for x in (plain, plain, odd, odd, plain, odd):
        with np.errstate(all="ignore"):
            y, want = model(x), model.reference(x)
        np.testing.assert_allclose(y, want, **CLOSE)


def activated(x):
    """A net in which an op that declines for infinities stands between others."""
    layers = oprack.layers
    x = layers.conv2d(x, 16, 3, padding=1)
    return layers.conv2d(layers.pool2d(layers.hard_swish(x), 2, "max", 2), 8, 3, padding=1)


@pytest.mark.parametrize("before", [0, 1])
@pytest.mark.parametrize(
    "net, shape", [*NETS, (activated, (3, 20, 24))], ids=["images", "branches", "rows", "activated"]
)
def test_what_was_bound_for_infinities_serves_others(served, net, shape, before):
    """Ops that decline leave their results to NumPy, in its layouts, and those behind are bound all the same."""
    model = served(net, *shape)
    plain = normal(2, *shape)
    odd = plain.copy()
    odd[1].flat[7] = np.inf
    for x in [plain] * before + [odd] * 3 + [plain] * 3:
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(model(x), model.reference(x), **CLOSE)


def test_clones_in_threads_of_their_own(served):
    model = served(images, 3, 20, 24)
    predictors = [model.predictor, model.predictor.clone(), model.predictor.clone()]
    inputs = [normal(1 + k % 2, 3, 20, 24, seed=k) for k in range(6)]
    wanted, problems = [model.reference(x) for x in inputs], []

    def work(predictor, first):
        try:
            for i in range(60):
                k = (i // 3 + first) % len(inputs)
                np.testing.assert_allclose(model(inputs[k], predictor), wanted[k], **CLOSE)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(p, i)) for i, p in enumerate(predictors)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems


def test_another_number_of_threads(served):
    model = served(images, 3, 20, 24)
    x = normal(2, 3, 20, 24)
    for count in (1, 2, 2, 1, 1, 2):
        with KERNEL_LIBRARY.limit_threads(count):
            model.check(x)


# Prepared by hand -----------------------------------------------------------------------------------------------------
def two_products():
    """A program of two products, its scope with read-only parameters, what it gives, and their names."""
    main, names = oprack.Program(), ["w", "v"]
    with oprack.program_guard(main, oprack.Program()):
        x = oprack.layers.data("x", [None, 32, 1, 1])
        for name, count in zip(names, (64, 16), strict=True):
            x = oprack.layers.conv2d(x, count, 1, bias_attr=False, param_attr=oprack.ParamAttr(name=name))
    scope = oprack.Scope()
    for name, shape in zip(names, ((64, 32, 1, 1), (16, 64, 1, 1)), strict=True):
        array = 0.1 * normal(*shape)
        array.flags.writeable = False
        scope.var(name).set(oprack.LoDTensor(array))
    return main, scope, x.name, names


def test_parameters_replaced_between_runs_are_noticed(any_size, native):
    main, scope, fetched, names = two_products()
    executor, x = oprack.Executor(), normal(5, 32, 1, 1)
    arrays = [scope.find_var(n).get().array for n in names]
    for turn in range(6):
        if turn in (3, 4):
            arrays[turn - 3] = normal(*arrays[turn - 3].shape, seed=turn)
            arrays[turn - 3].flags.writeable = False
            scope.find_var(names[turn - 3]).set(oprack.LoDTensor(arrays[turn - 3]))
        first, second = (a.reshape(a.shape[:2]) for a in arrays)
        native.clear()
        (y,) = executor.run(main, {"x": x}, [fetched], scope)
        np.testing.assert_allclose(y.reshape(5, 16), x[..., 0, 0] @ first.T @ second.T, **CLOSE)
        assert native == [2] * (turn > 0)


def test_parameters_that_may_be_written_to_are_read_anew(any_size, native):
    main, scope, fetched, names = two_products()
    arrays = [scope.find_var(n).get().array.copy() for n in names]
    for name, array in zip(names, arrays, strict=True):
        scope.find_var(name).set(oprack.LoDTensor(array))
    executor, x = oprack.Executor(), normal(5, 32, 1, 1)
    for _ in range(4):
        for array in arrays:
            array += 0.5
        first, second = (a.reshape(a.shape[:2]) for a in arrays)
        (y,) = executor.run(main, {"x": x}, [fetched], scope)
        np.testing.assert_allclose(y.reshape(5, 16), x[..., 0, 0] @ first.T @ second.T, rtol=1e-4, atol=1e-3)
    assert 2 not in native


def test_what_a_stretch_was_bound_to_goes_with_its_plan(any_size, native):
    main, scope, fetched, names = two_products()
    executor, x = oprack.Executor(), normal(5, 32, 1, 1)
    for _ in range(3):
        executor.run(main, {"x": x}, [fetched], scope)
    assert native[-1] == 2
    kept = [weakref.ref(scope.find_var(n).get().array) for n in names]
    del executor, scope, main
    THREAD.primitives.clear()
    gc.collect()
    assert not any(r() is not None for r in kept)


def test_a_primitive_that_fails_is_logged_with_its_op_which_runs_on_its_own(any_size, monkeypatch, caplog):
    failing, native_run = [], RUNNER.run

    def run(pointer):
        found = _Stretch.from_address(pointer)
        if failing and found.chain_count > 1:
            found.failed = 1
            return 2
        return native_run(pointer)

    monkeypatch.setattr(RUNNER, "run", run)
    main, scope, fetched, names = two_products()
    executor, x = oprack.Executor(), normal(5, 32, 1, 1)
    first, second = (scope.find_var(n).get().array.reshape(-1, c) for n, c in zip(names, (32, 64), strict=True))
    with caplog.at_level(logging.WARNING):
        for turn in range(5):
            failing[:] = [True] * (turn > 2)
            (y,) = executor.run(main, {"x": x}, [fetched], scope)
            np.testing.assert_allclose(y.reshape(5, 16), x[..., 0, 0] @ first.T @ second.T, **CLOSE)
    assert [r.message for r in caplog.records] == [
        f"op conv2d, which writes {fetched}: oneDNN: a primitive failed: invalid arguments; its ops run one by one "
        "from now on"
    ]


def test_only_so_many_shapes_are_kept(any_size, native, monkeypatch):
    bound: list = []
    monkeypatch.setattr(stretch, "PerThread", lambda: PerThread(2))
    monkeypatch.setattr(bound_stretch, "NativeStretch", lambda *a: bound.append(NativeStretch(*a)) or bound[-1])
    main, scope, fetched, names = two_products()
    executor = oprack.Executor()
    first, second = (scope.find_var(n).get().array.reshape(-1, c) for n, c in zip(names, (32, 64), strict=True))
    for n in (1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 1, 1, 1):
        x = normal(n, 32, 1, 1)
        (y,) = executor.run(main, {"x": x}, [fetched], scope)
        np.testing.assert_allclose(y.reshape(n, 16), x[..., 0, 0] @ first.T @ second.T, **CLOSE)
    assert native == [2] * 12 and len(bound) == 6, "one row was bound again"


def test_large_arrays_between_ops_are_left_to_buffers(any_size, native, monkeypatch):
    monkeypatch.setattr(bound_stretch, "_MOST", 4 * 5 * 64 - 1)
    main, scope, fetched, _ = two_products()
    executor = oprack.Executor()
    for _ in range(4):
        executor.run(main, {"x": normal(5, 32, 1, 1)}, [fetched], scope)
    assert 2 not in native


def test_without_the_runner_a_plan_has_no_stretches(any_size, monkeypatch):
    monkeypatch.setattr(RUNNER, "run", None)
    main, scope, fetched, _ = two_products()
    executor = oprack.Executor()
    for _ in range(3):
        executor.run(main, {"x": normal(5, 32, 1, 1)}, [fetched], scope)
    assert "joined" not in executor.prepare(main.desc).block(0).plan((fetched,)).source()
