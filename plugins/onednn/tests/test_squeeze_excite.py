"""Squeeze and excitation: what the passes make of it, and that the numbers stay."""

from __future__ import annotations

import numpy as np
import oprack
import pytest
from oprack.ir import optimize, select_passes
from oprack.testing import PassCase, check_passes
from oprack.testing.passes import op_types
from oprack_onednn.c.runner import RUNNER
from oprack_onednn.chain.primitive_chain import PrimitiveChain
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl.layout import NotServedError
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.kernels import pointwise_conv2d, squeeze_excite

LIBRARY.usable()
pytestmark = pytest.mark.skipif(RUNNER.run is None, reason=f"the runner is not there: {RUNNER.problem}")
CLOSE = dict(rtol=2e-5, atol=2e-5)
PASSES = ("onednn_fuse_conv2d", "onednn_fuse_squeeze_excite")
MEAN = {"pooling_type": "avg", "adaptive": True, "ksize": [1, 1]}


def normal(*shape, seed=0):
    return np.random.default_rng((seed, *shape)).standard_normal(shape, dtype=np.float32)


def last(*shape):
    """Images in channels-last memory."""
    return normal(shape[0], *shape[2:], shape[1]).transpose(0, 3, 1, 2)


def conv(x, w, out):
    return ("conv2d", {"Input": x, "Filter": w}, {"Output": out}, {})


def add(x, b, out):
    return ("elementwise_add", {"X": x, "Y": b}, {"Out": out}, {"axis": 1})


def excitation(x, channels, reduced=None, pool=MEAN, bias=True):
    """Ops that give s, the scale of x, and their parameters."""
    reduced = reduced or channels // 4
    ops = [("pool2d", {"X": x}, {"Out": "mean"}, pool), conv("mean", "w1", "r0")]
    ops += [add("r0", "b1", "r1")] if bias else []
    ops += [("relu", {"X": "r1" if bias else "r0"}, {"Out": "r2"}), conv("r2", "w2", "e0")]
    ops += [add("e0", "b2", "e1")] if bias else []
    ops += [("hard_sigmoid", {"X": "e1" if bias else "e0"}, {"Out": "s"})]
    params = {"w1": normal(reduced, channels, 1, 1) / 4, "w2": normal(channels, reduced, 1, 1)}
    return ops, params | ({"b1": normal(reduced), "b2": normal(channels)} if bias else {})


def scaled_input_case(n=2, channels=48, outputs=24, height=9, width=10, **options):
    """An activation, its scale, a 1x1 convolution of both, a residual and an activation."""
    ops, params = excitation("x0", channels, **options)
    ops = [
        ("relu", {"X": "x"}, {"Out": "x0"}),
        *ops,
        ("elementwise_mul", {"X": "x0", "Y": "s"}, {"Out": "x1"}, {"axis": -1}),
        conv("x1", "w", "y0"),
        add("y0", "b", "y1"),
        ("elementwise_add", {"X": "y1", "Y": "r"}, {"Out": "y2"}),
        ("hard_swish", {"X": "y2"}, {"Out": "y3"}),
    ]
    params |= {"w": normal(outputs, channels, 1, 1), "b": normal(outputs)}
    return PassCase({"x": last(n, channels, height, width), "r": last(n, outputs, height, width)}, params, ops)


def scaled_result_case(n=2, bias=True, factor=None, **options):
    """A linear 1x1 convolution, times its own scale."""
    ops, params = excitation("y", 32, bias=bias, **options)
    linear = [conv("x", "w", "y0" if bias else "y"), *([add("y0", "b", "y")] if bias else [])]
    ops = [*linear, *ops, ("elementwise_mul", {"X": "y", "Y": "s"}, {"Out": "z"}, {"axis": -1})]
    params |= {"w": normal(32, 20, 1, 1), **({"b": normal(32)} if bias else {})}
    return PassCase({"x": last(n, 20, 9, 10)}, params, ops)


@pytest.fixture
def only_onednn(monkeypatch):
    """Nothing falls back to the ops that the fused ones stand for."""
    for module in (squeeze_excite, pointwise_conv2d):
        monkeypatch.setattr(module, "by_steps", lambda *a: pytest.fail("not served"))


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("outputs", [24, 200], ids=lambda k: f"{k} outputs")
@pytest.mark.primitives("pointwise", "squeeze")
@pytest.mark.usefixtures("constants")
def test_the_scale_of_an_input(n, outputs):
    """With fewer weights than pixels these take the scale, else the images do."""
    optimized = check_passes(scaled_input_case(n, outputs=outputs), *PASSES, **CLOSE)
    assert op_types(optimized) == ["relu", "onednn_squeeze_excite", "onednn_pointwise_conv2d"]


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.primitives("pointwise", "squeeze")
@pytest.mark.usefixtures("constants")
def test_the_scale_of_a_result_is_known_before_it(n, bias):
    optimized = check_passes(scaled_result_case(n, bias), *PASSES, **CLOSE)
    assert op_types(optimized) == ["onednn_squeeze_excite", "onednn_pointwise_conv2d"]


@pytest.mark.parametrize("channels, reduced", [(8, 2), (37, 5), (96, 24), (480, 120)])
@pytest.mark.primitives("squeeze")
@pytest.mark.usefixtures("constants")
def test_every_width(channels, reduced):
    check_passes(scaled_input_case(2, channels=channels, reduced=reduced), *PASSES, **CLOSE)


def test_images_are_served_in_channels_last_memory(only_onednn):
    case = scaled_input_case(3)
    program, scope = case.build()
    passes = [p for p in select_passes() if p.name in PASSES]
    fused = optimize(program.desc, scope, keep=case.fetches(), passes=passes).program
    for name in case.params:
        scope.get_var(name).get().array.flags.writeable = False
    for name in [n for n in scope.local_var_names() if ".ir_" in n]:
        scope.get_var(name).get().array.flags.writeable = False
    feeds = {k: np.ascontiguousarray(v.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2) for k, v in case.feeds.items()}
    executor = oprack.Executor()
    (want,), (got,) = (executor.run(p, feeds, case.fetches(), scope) for p in (program, fused))
    np.testing.assert_allclose(got, want, **CLOSE)


@pytest.mark.parametrize("make", [scaled_input_case, scaled_result_case])
@pytest.mark.parametrize("excluded", [(), ("onednn",)])
def test_fused_ops_run_on_numpy_as_well(monkeypatch, make, excluded):
    case = make()
    program, scope = case.build()
    plain = oprack.Executor(excluded_libraries=("onednn",))
    (want,) = plain.run(program, case.feeds, case.fetches(), scope)
    passes = [p for p in select_passes() if p.name in PASSES]
    fused = optimize(program.desc, scope, keep=case.fetches(), passes=passes).program
    if excluded:
        monkeypatch.setattr(PrimitiveChain, "run", lambda *a: pytest.fail("oneDNN ran"))
    else:
        monkeypatch.setattr("oprack_onednn.chain.thread.Thread.primitive", lambda *a: None)
    (got,) = oprack.Executor(excluded_libraries=excluded).run(fused, case.feeds, case.fetches(), scope)
    np.testing.assert_allclose(got, want, **CLOSE)


def test_other_pooling_stays():
    case = scaled_input_case(pool={"pooling_type": "max", "adaptive": True, "ksize": [1, 1]})
    assert "onednn_squeeze_excite" not in op_types(check_passes(case, *PASSES, **CLOSE))


def test_a_scale_of_other_images_stays_a_product():
    """One number per channel of all images is no scale of each."""
    ops = [
        ("elementwise_mul", {"X": "x", "Y": "s"}, {"Out": "x1"}, {"axis": -1}),
        conv("x1", "w", "y0"),
        ("relu", {"X": "y0"}, {"Out": "y1"}),
    ]
    case = PassCase({"x": normal(2, 6, 5, 5), "s": normal(2, 1, 5, 5)}, {"w": normal(4, 6, 1, 1)}, ops)
    assert op_types(check_passes(case, *PASSES, **CLOSE)) == ["elementwise_mul", "conv2d_post_ops"]


def test_a_wider_kernel_keeps_its_product():
    ops = [
        ("elementwise_mul", {"X": "x", "Y": "s"}, {"Out": "x1"}, {"axis": -1}),
        ("conv2d", {"Input": "x1", "Filter": "w"}, {"Output": "y0"}, {"paddings": [1, 1]}),
        ("relu", {"X": "y0"}, {"Out": "y1"}),
    ]
    case = PassCase({"x": normal(2, 6, 5, 5), "s": normal(2, 6, 1, 1)}, {"w": normal(4, 6, 3, 3)}, ops)
    assert op_types(check_passes(case, *PASSES, **CLOSE)) == ["elementwise_mul", "conv2d_post_ops"]


def test_an_empty_batch():
    check_passes(scaled_input_case(0), *PASSES)
    check_passes(scaled_result_case(0), *PASSES)


def test_means_of_large_images_do_not_pile_up_rounding_errors():
    """Everything behind is scaled by them; the sum of 33,856 numbers in a row is off by 5e-6 of it."""
    x = channels_last(1 + normal(1, 16, 184, 184))
    mean = through(x, ())
    np.testing.assert_allclose(mean, x.mean(axis=(2, 3), keepdims=True, dtype=np.float64), rtol=1e-6)


FOLLOWING = {
    "relu": lambda x: np.where(x > 0, x, 0),  # of NaN 0, as Paddle's
    "relu6 6.0": lambda x: np.clip(x, 0, 6),
    "leaky_relu 0.1": lambda x: np.where(x < 0, 0.1 * x, x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "swish 1.5": lambda x: x / (1 + np.exp(-1.5 * x)),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "hard_sigmoid 0.2 0.5": lambda x: np.clip(0.2 * x + 0.5, 0, 1),
    "hard_swish 6.0 6.0 3.0": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "scale 2.0 0.5 1": lambda x: 2 * x + 0.5,
    "tanh": np.tanh,
}


@pytest.mark.parametrize("following", ["gelu 0", "gelu 1"])
def test_a_function_that_the_step_has_not_is_refused(following):
    with pytest.raises(NotServedError, match="gelu"):
        through(normal(3, 16, 1, 1), (following,))


@pytest.mark.parametrize("following", FOLLOWING)
def test_what_follows_a_product(following):
    x = 4 * normal(3, 16, 1, 1)
    want = FOLLOWING[following](x.astype(np.float64))
    np.testing.assert_allclose(through(x, (following,)), want, rtol=1e-6, atol=1e-7)
    odd = np.array([np.nan, np.inf, -np.inf], np.float32).reshape(3, 1, 1, 1)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(through(odd, (following,)), FOLLOWING[following](odd))


def through(x, following):
    """What follows the second of two products that leave the mean as it is."""
    THREAD.open()
    given = x, one_by_one(x.shape[1]), None, one_by_one(x.shape[1]), None
    return squeeze_excite.SqueezePrimitive(*given, (), following).run(*given)


def one_by_one(channels):
    """A constant filter that hands channels on as they are."""
    filters = np.eye(channels, dtype=np.float32)[..., None, None].copy()
    filters.flags.writeable = False
    return filters


def channels_last(image):
    return np.ascontiguousarray(image.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
