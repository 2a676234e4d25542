"""Kernels of the library numba give the numbers of NumPy's, for any geometry and on any number of threads."""

from __future__ import annotations

import itertools
import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import oprack
import oprack_nn.kernels.conv as nn_conv
import pytest
import threadpoolctl
from oprack import inference, io  # noqa: F401  they are named through oprack
from oprack.kernel import KernelContext
from oprack.packs.manager import default_manager
from oprack.runtime import Executor
from oprack.testing import OpCase, collect_cases
from oprack.testing.cases import load_cases
from oprack.testing.runner import differences, missing_ops, run_case
from oprack_nn.kernels.activation import hard_swish as plain_hard_swish
from oprack_numba import loops, sequence_loops
from oprack_numba.kernels import activation, conv, sequence
from oprack_numba.library import LIBRARY, Library
from oprack_sequence.kernels.crf import crf_decoding as plain_crf
from oprack_sequence.kernels.gru import gru as plain_gru

CASES = Path(__file__).parents[3] / "tests" / "data" / "cases"
NN_CASES = Path(__file__).parents[3] / "op_packages" / "nn" / "tests" / "cases"
WITHOUT_ONEDNN = ("onednn",)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng((seed, *shape)).standard_normal(shape, dtype=np.float32)


class Context:
    """What the kernel asks of a KernelContext."""

    def __init__(self, **attrs: Any) -> None:
        self.attrs = {"padding_algorithm": "EXPLICIT", "groups": 1, **attrs}


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The loops that ran, by name."""
    names: list[str] = []
    of_images = ("depthwise", "product_of_taps", "add_rows", "spread", "hard_swish")
    for module, name in [*((loops, n) for n in of_images), *((sequence_loops, n) for n in ("gru", "viterbi"))]:
        loop = getattr(module, name)

        def counted(*arguments: Any, loop: Any = loop, name: str = name) -> None:
            names.append(name)
            loop(*arguments)

        monkeypatch.setattr(module, name, counted)
    return names


@contextmanager
def threads(count: int) -> Iterator[None]:
    with LIBRARY.limit_threads(count), LIBRARY.without_size_limits():
        yield


GEOMETRIES = list(
    itertools.product(
        [(3, 3), (5, 5), (1, 1), (3, 5), (4, 2)],
        [(1, 1), (2, 2), (2, 1), (1, 3)],
        [[0, 0], [1, 1], [2, 1], [0, 2, 1, 3]],
        [(1, 1), (2, 2)],
    )
)


def expected(x: np.ndarray, w: np.ndarray, ctx: Context) -> np.ndarray:
    return nn_conv.convolve(x, w, nn_conv.Geometry.of(x.shape[2:], w.shape, ctx.attrs), np)


@pytest.mark.parametrize("count", [1, 3])
def test_depthwise_convolutions_are_numpys(count: int) -> None:
    """All filters, strides, paddings and dilations, of one and of two results for each channel."""
    for seed, (ksize, strides, paddings, dilations) in enumerate(GEOMETRIES):
        multiplier = 1 + seed % 2
        x, w = normal(2, 3, 11, 13, seed=seed), normal(3 * multiplier, 1, *ksize, seed=seed)
        ctx = Context(strides=list(strides), paddings=paddings, dilations=list(dilations), groups=3)
        with threads(count):
            y = conv.plain(x, w, ctx=ctx)
        np.testing.assert_allclose(y, expected(x, w, ctx), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("count", [1, 3])
def test_convolutions_that_add_up_channels_are_numpys(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers of filters and of taps that are multiples of four, and others; bands of one row and of several."""
    monkeypatch.setattr(conv, "_FEW", 0)
    conv.form_of.cache_clear()
    for seed, (ksize, strides, paddings, dilations) in enumerate(GEOMETRIES):
        monkeypatch.setattr(conv, "_NUMBERS", (1, 40, 1536)[seed % 3])
        x, w = normal(2, 2 + seed % 3, 11, 13, seed=seed), normal(3 + seed % 6, 2 + seed % 3, *ksize, seed=seed)
        ctx = Context(strides=list(strides), paddings=paddings, dilations=list(dilations))
        with threads(count):
            y = conv.plain(x, w, ctx=ctx)
        if y is NotImplemented:  # a product of matrices alone
            assert ksize == strides == (1, 1) and paddings == [0, 0]
            continue
        np.testing.assert_allclose(y, expected(x, w, ctx), rtol=1e-4, atol=1e-5)
    conv.form_of.cache_clear()


@pytest.mark.parametrize("channels", [1, 3])
def test_planes_that_lie_with_gaps_and_special_values(channels: int) -> None:
    x = normal(2, 40, 38, 3).transpose(0, 3, 1, 2)[:, :, ::2]
    x[0, 1, 2, 3], x[1, 0, 0, 0] = np.nan, np.inf
    groups = 3 // channels
    ctx, w = Context(strides=[1, 1], paddings=[1, 1], dilations=[1, 1], groups=groups), normal(3, channels, 3, 3)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(conv.plain(x, w, ctx=ctx), expected(x, w, ctx), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("x", "w", "paddings", "groups"),
    [
        (normal(1, 4, 30, 30), normal(4, 2, 3, 3), [1, 1], 2),
        (normal(1, 4, 2, 2), normal(4, 1, 5, 5), [0, 0], 4),
        (normal(1, 4, 9, 9), normal(4, 1, 3, 3), [-1, 0], 4),
        (normal(1, 4, 9, 9), normal(0, 1, 3, 3), [1, 1], 4),
        (normal(0, 4, 9, 9), normal(4, 1, 3, 3), [1, 1], 4),
        (normal(1, 4, 9, 9), normal(4, 4, 3, 3), [1, 1], 1),
        (normal(1, 4, 30, 30), normal(4, 4, 1, 1), [0, 0], 1),
    ],
    ids=["groups", "no window fits", "cropped", "no filter", "no images", "few positions", "a product"],
)
def test_what_is_left_to_numpy(x: np.ndarray, w: np.ndarray, paddings: list[int], groups: int) -> None:
    ctx = Context(strides=[1, 1], paddings=paddings, dilations=[1, 1], groups=groups)
    assert conv.plain(x, w, ctx=ctx) is NotImplemented


POST_OPS = [case for case in collect_cases(NN_CASES) if case.op in ("conv2d_post_ops", "conv2d_transpose_post_ops")]


@pytest.mark.parametrize("case", POST_OPS, ids=lambda case: f"{case.op}-{case.name}")
@pytest.mark.parametrize("count", [1, 3])
def test_what_follows(case: OpCase, count: int, ran: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """By the formulas, for any size; a plan runs it a second time."""
    monkeypatch.setattr(conv, "_FEW", 0)
    monkeypatch.setattr(conv, "_PART", 1 << 9)
    monkeypatch.setattr(conv, "_LEAST_PART", 7)
    conv.form_of.cache_clear()
    executor, (want,) = Executor(excluded_libraries=WITHOUT_ONEDNN), case.outputs.values()
    with threads(count):
        for _ in range(2):
            (got,) = run_op(case, executor)
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=2e-5)
    conv.form_of.cache_clear()
    assert ran or case.name in LEFT


LEFT = ("groups", "no_images", "overlapping", "no_bias", "plain")
"""Cases that are NumPy's, or products that nothing follows."""


def run_op(case: OpCase, executor: Executor) -> list[np.ndarray]:
    program = oprack.Program()
    block = program.desc.blocks[0]
    for name, array in case.inputs.items():
        block.create_var(name, dtype="float32", shape=array.shape)
    (out,) = case.outputs
    block.create_var("out", dtype="float32")
    block.append_op(
        case.op, {n: n for n in case.inputs}, {out: "out"}, {k: v for k, v in case.attrs.items() if v != []}
    )
    return executor.run(program, dict(case.inputs), ["out"], oprack.Scope())


def test_loops_never_see_operands_of_other_shapes() -> None:
    """Shape rules refuse these before; a loop would read behind the end of what is too short."""
    x, w = normal(1, 4, 20, 20), normal(6, 4, 3, 3)
    ctx = Context(strides=[1, 1], paddings=[1, 1], dilations=[1, 1])
    post_ops = ["residual"]
    given: list[tuple[Any, ...]] = [
        (normal(6, 5, 3, 3), None, None),
        (w, normal(5), None),
        (w, None, normal(1, 6, 20, 19)),
        (w, normal(6), normal(1, 5, 20, 20)),
    ]
    for filters, bias, residual in given:
        assert conv.conv2d_post_ops(x, filters, bias, residual, post_ops=post_ops, ctx=ctx) is NotImplemented
    ctx = Context(strides=[2, 2], paddings=[0, 0], dilations=[1, 1])
    transposed = conv.conv2d_transpose_post_ops(
        x, normal(4, 3, 2, 2), normal(2), output_padding=[], post_ops=[], ctx=ctx
    )
    assert transposed is NotImplemented


def test_nan_stays_nan_whatever_follows() -> None:
    x = np.full((1, 1, 20, 20), np.nan, np.float32)
    for text in ("relu", "relu6 6.0", "leaky_relu 0.1", "hard_swish 6.0 6.0 3.0", "hard_sigmoid 0.2 0.5"):
        for groups, w in ((1, normal(2, 1, 3, 3)), (1, normal(2, 1, 1, 1))):
            attrs = {"strides": [1, 1], "paddings": [1, 1], "dilations": [1, 1], "groups": groups}
            ctx = Context(**attrs, post_ops=[text])
            y = conv.conv2d_post_ops(x, w, post_ops=[text], ctx=ctx)
            assert np.isnan(y[:, :, 2:-2, 2:-2]).all()


@pytest.mark.parametrize("count", [1, 3])
def test_hard_swish_is_numpys(count: int) -> None:
    x = np.concatenate([np.linspace(-9, 9, 9001), [np.nan, np.inf, -np.inf, 3e38, -0.0]]).astype(np.float32)
    numbers = {"threshold": 6.0, "scale": 6.0, "offset": 3.0}
    for array in (x, x[:9000].reshape(100, 90).T, np.zeros((0, 3), np.float32), np.float32(2).reshape(())):
        with threads(count), np.errstate(all="ignore"):
            y = activation.hard_swish(array, **numbers)
            np.testing.assert_allclose(y, plain_hard_swish(array, **numbers, xp=np), rtol=1e-6)


FACTORS = [
    ((2, 3), (3, 4)),
    ((9, 3), (3, 2)),
    ((5, 2, 3), (5, 3, 4)),
    ((5, 2, 3), (3, 4)),
    ((2, 3), (5, 3, 4)),
    ((1, 4, 2, 3), (5, 1, 3, 4)),
    ((2, 1, 6, 3), (1, 3, 2)),
    ((1, 1, 3), (1, 3, 8)),
    ((2, 0), (0, 4)),
    ((0, 3), (3, 4)),
    ((4, 2, 3), (4, 3, 0)),
]


@pytest.mark.parametrize(("left", "right"), FACTORS)
@pytest.mark.parametrize("count", [1, 2, 4])
def test_shares_of_products_are_numpys(left: tuple[int, ...], right: tuple[int, ...], count: int) -> None:
    """Whatever dim is divided; of factors that lie one number behind the other, and of views."""
    x, y = normal(*left), normal(*right)
    views = normal(*left[:-2], left[-1], left[-2]).swapaxes(-1, -2), normal(*right[:-1], 2 * right[-1])[..., ::2]
    with threads(count):
        for a, b in ((x, y), views):
            np.testing.assert_allclose(LIBRARY.product(a, b), np.matmul(a, b), rtol=1e-5, atol=1e-6)


def test_products_leave_numpys_threads_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though several threads of Python have shares computed at one time, and some fail."""
    blas = threadpoolctl.ThreadpoolController().select(user_api="blas")
    inside = list[int]()

    def numbers() -> int:
        return max(library["num_threads"] for library in blas.info())

    def run(first: int, last: int) -> None:
        inside.append(numbers())
        if first and len(inside) % 7 == 0:
            raise ArithmeticError("a part")

    def call(_: int) -> None:
        with threads(2), suppress(ArithmeticError):
            LIBRARY.share_products(run, 4, 1 << 40)

    before = numbers()
    monkeypatch.setattr(LIBRARY, "shares_products", False)
    call(0)
    assert set(inside) == {1} and numbers() == before
    assert LIBRARY.shares_products
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(call, range(60)))
    assert numbers() == before


OPS = ["conv2d", "crf_decoding", "depthwise_conv2d", "gru", "hard_swish", "mul", "matmul", "matmul_v2"]


@pytest.mark.parametrize("op", OPS)
def test_cases_of_paddle(op: str, ran: list[str]) -> None:
    """By executors that may not use oneDNN, op by op and as a plan, with the gradients of the pack behind them."""
    found = []
    for prepared in (False, True):
        executor = Executor(prepared=prepared, excluded_libraries=WITHOUT_ONEDNN)
        for case in load_cases(CASES / f"{op}.npz"):
            for stage in ("forward", "gradient"):
                if case.has(stage) and not missing_ops(case, stage, default_manager()):
                    reasons = differences(case, stage, run_case(case, stage, executor))
                    found += [f"{case.id} {stage}: {reason}" for reason in reasons]
    assert not found, "\n".join(found)
    assert ran or op in ("hard_swish", "mul", "matmul", "matmul_v2")  # whose cases are small, or products


LODS = [[0, 3, 3, 10, 11], [0, 0, 7], [0, 5], [0, 0], [0, 1, 2, 4]]


MANY = [0, *range(3, 90, 7), 90, 91]


@pytest.mark.parametrize("offsets", [*LODS, MANY], ids=str)
@pytest.mark.parametrize("size", [5, 8, 33])
@pytest.mark.parametrize("is_reverse", [False, True])
@pytest.mark.parametrize("origin_mode", [False, True])
@pytest.mark.parametrize("begun", [False, True])
def test_recurrent_layers_are_numpys(
    offsets: list[int], size: int, is_reverse: bool, origin_mode: bool, begun: bool, ran: list[str]
) -> None:
    """Of few sequences and of many, some of them empty, from a first state or from zeros."""
    attrs = {"activation": "tanh", "gate_activation": "sigmoid", "is_reverse": is_reverse, "origin_mode": origin_mode}
    state = normal(len(offsets) - 1, size) if begun else None
    given = normal(offsets[-1], 3 * size), normal(size, 3 * size) / 2, state, normal(1, 3 * size)
    ctx = KernelContext("gru", attrs, {"Input": [[offsets]]})
    wants = plain_gru(*given, **attrs, ctx=ctx, xp=np)
    for count in (1, 3):
        with threads(count):
            for got, want in zip(sequence.gru(*given, **attrs, ctx=ctx), wants, strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-5, atol=2e-6)
    assert ran == ([] if len(offsets) > 6 else ["gru"] * 2)
    wrong = normal(len(offsets), size)
    assert sequence.gru(*given[:2], wrong, **attrs, ctx=ctx) is NotImplemented


def test_gates_of_any_number() -> None:
    """The loops' functions of numbers near 0 and far from it, and of what is no number."""
    numbers = np.array([0.0, 1e-7, -1e-3, 0.3, -0.7, 2.5, -9.0, 30.0, -95.0, 1e30, -np.inf, np.nan], np.float32)
    attrs = {"activation": "tanh", "gate_activation": "sigmoid", "is_reverse": False, "origin_mode": True}
    given = np.tile(numbers, (2, 3)), np.zeros((12, 36), np.float32)
    ctx = KernelContext("gru", attrs, {"Input": [[[0, 1, 2]]]})
    got, want = sequence.gru(*given, **attrs, ctx=ctx), plain_gru(*given, **attrs, ctx=ctx, xp=np)
    np.testing.assert_allclose(got[0], want[0], rtol=1e-6, atol=1e-30)


@pytest.mark.parametrize("offsets", [*LODS, MANY], ids=str)
@pytest.mark.parametrize("count", [1, 3])
def test_best_paths_are_numpys(offsets: list[int], count: int) -> None:
    """Of scores among which many are equal, where the first label wins; NaN and infinities are NumPy's."""
    emission, scores = np.round(normal(offsets[-1], 6)), np.round(normal(8, 6))
    label = np.arange(offsets[-1]).reshape(-1, 1) % 6
    ctx = KernelContext("crf_decoding", {}, {"Emission": [[offsets]]})
    for labels in (None, label):
        with threads(count):
            got = sequence.crf_decoding(emission, scores, labels, ctx=ctx)
        np.testing.assert_array_equal(got, plain_crf(emission, scores, labels, ctx=ctx, xp=np))
    scores[3, 3] = np.nan
    assert sequence.crf_decoding(emission, scores, ctx=ctx) is NotImplemented


def test_onednn_goes_first() -> None:
    kernels = default_manager().kernel_map("depthwise_conv2d", "cpu")
    priorities = {spec.library: spec.priority for spec in kernels}
    assert priorities["onednn"] > priorities["numba"] > priorities["plain"]
    assert "numba" in LIBRARY.status() and f"threads: {LIBRARY.threads()}" in LIBRARY.status()


def test_python_threads_at_once_and_a_forked_child(ran: list[str]) -> None:
    x, w = normal(2, 8, 20, 20), normal(8, 1, 3, 3)
    ctx = Context(strides=[1, 1], paddings=[1, 1], dilations=[1, 1], groups=8)

    def run(_: int) -> np.ndarray:
        with threads(2):
            return conv.plain(x, w, ctx=ctx)

    expected = run(0)
    with ThreadPoolExecutor(4) as pool:
        assert all((y == expected).all() for y in pool.map(run, range(40)))
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert (pool.apply(_in_child, (x, w)) == expected).all()


def _in_child(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    ctx = Context(strides=[1, 1], paddings=[1, 1], dilations=[1, 1], groups=8)
    with threads(2):
        return conv.plain(x, w, ctx=ctx)


def test_a_part_that_fails_is_told_after_all_have_ended() -> None:
    ended = []

    def run(first: int, last: int) -> None:
        ended.append((first, last))
        if first:
            raise MemoryError("no room")

    library = Library()
    with library.limit_threads(2), library.without_size_limits(), pytest.raises(MemoryError, match="no room"):
        library.share(run, 10, 10)
    assert sorted(ended) == [(0, 5), (5, 10)]


def test_predictors_take_it_where_onednn_is_not(ran: list[str], tmp_path: Path) -> None:
    """With the number of threads that a Config says."""
    main, startup = oprack.Program(), oprack.Program()
    with oprack.program_guard(main, startup):
        x = oprack.layers.data("x", [None, 8, 16, 16])
        y = oprack.layers.conv2d(x, 8, 3, padding=1, groups=8, act="hard_swish", bias_attr=False)
    scope, executor = oprack.Scope(), oprack.Executor(seed=1)
    executor.run(startup, scope=scope)
    oprack.io.save_inference_model(str(tmp_path / "net"), main, ["x"], [y.name], scope)
    value, answers = normal(4, 8, 16, 16), []
    plain = oprack.Executor(prepared=False, excluded_libraries=["onednn", "numba"])
    for count in (1, 2):
        config = oprack.inference.Config(str(tmp_path / "net.pdmodel"), str(tmp_path / "net.pdiparams"))
        config.disable_mkldnn()
        config.disable_onnxruntime()
        config.set_cpu_math_library_num_threads(count)
        predictor = oprack.inference.create_predictor(config)
        answers += [predictor.run([value])[0] for _ in range(3)]
    assert ran.count("depthwise") >= 6 and "hard_swish" not in ran  # it is part of the convolution
    (expected,) = plain.run(main, {"x": value}, [y.name], scope)
    for answer in answers:
        np.testing.assert_allclose(answer, expected, rtol=1e-4, atol=1e-5)
