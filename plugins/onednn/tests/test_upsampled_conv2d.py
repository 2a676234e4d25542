"""Convolutions over upsampled maps: computed at low resolution they give what they gave at full resolution."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import oprack
import pytest
from oprack.errors import InvalidArgumentError
from oprack.inference import Config, create_predictor
from oprack.io import save_inference_model
from oprack.ir import optimize, select_passes
from oprack.program import Program
from oprack.testing import PassCase, check_passes
from oprack.testing.passes import op_types
from oprack_onednn.chain.primitive_chain import PrimitiveChain
from oprack_onednn.kernels import _upsampled_conv2d, upsampled_conv2d

PASS = "onednn_upsampled_conv2d"
CLOSE = dict(rtol=1e-4, atol=1e-4)


@pytest.fixture(params=[True, False], ids=["constant", "may change"])
def on_onednn(request, monkeypatch):
    """No step goes to other kernels; weights are taken as constant, or not."""
    monkeypatch.setattr(upsampled_conv2d, "is_constant", lambda w: request.param)
    monkeypatch.setattr(upsampled_conv2d, "by_steps", lambda *a: pytest.fail("oneDNN did not serve"))


def normal(*shape, seed=0):
    return np.random.default_rng((seed, *shape)).standard_normal(shape, dtype=np.float32)


def up(x, y, factor):
    attrs = {"interp_method": "nearest", "align_corners": False, "scale": [float(factor)] * 2}
    return ("nearest_interp_v2", {"X": x}, {"Out": y}, attrs)


def conv(x, y, w="w", paddings=(1, 1)):
    return ("conv2d", {"Input": x, "Filter": w}, {"Output": y}, {"paddings": list(paddings)})


def add(x, y, out, axis=-1):
    return ("elementwise_add", {"X": x, "Y": y}, {"Out": out}, {"axis": axis})


def mul(x, y, out):
    return ("elementwise_mul", {"X": x, "Y": y}, {"Out": out}, {"axis": -1})


def check(case, *others):
    optimized = check_passes(case, *others, PASS, **CLOSE)
    return op_types(optimized)


@pytest.mark.usefixtures("on_onednn")
@pytest.mark.parametrize("factor", [2, 3, 4, 8])
@pytest.mark.parametrize("size", [(5, 7), (1, 1), (1, 6), (4, 1), (2, 2)], ids=str)
@pytest.mark.parametrize("n", [1, 3])
def test_one_upsampled_map(factor, size, n):
    case = PassCase({"x": normal(n, 12, *size)}, {"w": normal(8, 12, 3, 3)}, [up("x", "u", factor), conv("u", "y")])
    assert check(case) == ["onednn_upsampled_conv2d"]


@pytest.mark.usefixtures("on_onednn")
@pytest.mark.parametrize("factor", [2, 3])
@pytest.mark.parametrize("n", [1, 2])
def test_a_window_of_one(factor, n):
    """As in the necks of YOLO: an upsampled map beside another one."""
    feeds = {"x": normal(n, 64, 5, 3), "z": normal(n, 16, 5 * factor, 3 * factor)}
    ops = [up("x", "u", factor), ("concat", {"X": ["u", "z"]}, {"Out": "c"}, {"axis": 1}), conv("c", "y", "w", (0, 0))]
    ops += [add("y", "b", "a", axis=1), ("leaky_relu", {"X": "a"}, {"Out": "o"}, {"alpha": 0.1})]
    case = PassCase(feeds, {"w": normal(8, 80, 1, 1), "b": normal(8)}, ops)
    assert check(case, "onednn_fuse_conv2d") == ["onednn_upsampled_conv2d"]


@pytest.mark.usefixtures("on_onednn")
@pytest.mark.parametrize("n", [1, 2])
def test_a_window_of_one_with_projections(n, monkeypatch):
    monkeypatch.setattr("oprack_onednn.passes.upsampled_conv2d._SPREAD", 0)
    feeds = {"x": normal(n, 4, 5, 3), "s": normal(n, 64, 1, 1), "z": normal(n, 16, 10, 6)}
    ops = [conv("x", "p", "v", (0, 0)), add("p", "d", "q", axis=1), mul("q", "s", "r"), up("r", "u", 2)]
    ops += [("concat", {"X": ["u", "z"]}, {"Out": "c"}, {"axis": 1}), conv("c", "y", "w", (0, 0))]
    case = PassCase(feeds, {"w": normal(8, 80, 1, 1), "v": normal(64, 4, 1, 1), "d": normal(64)}, ops)
    assert check(case, "onednn_fuse_conv2d") == ["onednn_upsampled_conv2d"]


@pytest.mark.usefixtures("on_onednn")
def test_what_follows_a_lone_map():
    ops = [
        up("x", "u", 2),
        conv("u", "y"),
        add("y", "b", "z", axis=1),
        ("hard_swish", {"X": "z"}, {"Out": "o"}),
    ]
    case = PassCase({"x": normal(2, 12, 6, 5)}, {"w": normal(8, 12, 3, 3), "b": normal(8)}, ops)
    assert check(case, "onednn_fuse_conv2d") == ["onednn_upsampled_conv2d"]


def pyramid(n, *, last=True, conv_bias=False):
    """A head of detection: sums from the lowest resolution to the highest, with projections and scales."""
    feeds = {
        **{"p0": normal(n, 24, 3, 2), "p1": normal(n, 6, 6, 4), "p2": normal(n, 4, 12, 8)},
        **{"s1": normal(n, 24, 1, 1), "s2": normal(n, 24, 1, 1, seed=2)},
    }
    params = {"w": normal(8, 24, 3, 3), "v1": normal(24, 6, 1, 1), "v2": normal(24, 4, 1, 1), "b1": normal(24)}
    ops = [
        conv("p1", "c1", "v1", (0, 0)),
        add("c1", "b1", "d1", axis=1),
        mul("d1", "s1", "e1"),
        conv("p2", "c2", "v2", (0, 0)),
        mul("c2", "s2", "e2"),
        up("p0", "u0", 2),
        add("e1", "u0", "m1"),
        up("m1", "u1", 2),
        add("e2", "u1", "m2"),
        conv("m2", "y"),
        ("relu", {"X": "y"}, {"Out": "z"}),
    ]
    if not last:
        del ops[8], ops[3:5], feeds["p2"], feeds["s2"], params["v2"]
        ops[5] = up("m1", "m2", 3)
    if conv_bias:
        params["b"] = normal(8)
        ops[-1:] = [add("y", "b", "a", axis=1), ("relu", {"X": "a"}, {"Out": "z"})]
    return PassCase(feeds, params, ops)


@pytest.mark.usefixtures("on_onednn")
@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("conv_bias", [True, False])
@pytest.mark.parametrize("cheap", [True, False])
def test_a_pyramid(monkeypatch, n, last, conv_bias, cheap):
    if cheap:
        monkeypatch.setattr("oprack_onednn.passes.upsampled_conv2d._SPREAD", 0)
    case = pyramid(n, last=last, conv_bias=conv_bias)
    assert check(case, "onednn_fuse_conv2d")[-1:] == ["onednn_upsampled_conv2d"]


@pytest.mark.usefixtures("on_onednn")
@pytest.mark.parametrize("n", [1, 2])
def test_a_concatenation_of_scaled_maps(n):
    feeds = {f"x{f}": normal(n, 16, 16 // f, 24 // f) for f in (8, 4, 2, 1)}
    feeds |= {f"s{f}": normal(n, 16, 1, 1, seed=f) for f in (8, 2, 1)}
    ops = [mul(f"x{f}", f"s{f}", f"m{f}") for f in (8, 2, 1)]
    ops += [up("m8", "u8", 8), up("x4", "u4", 4), up("m2", "u2", 2)]
    ops += [("concat", {"X": ["u8", "u4", "u2", "m1"]}, {"Out": "c"}, {"axis": 1}), conv("c", "y")]
    ops += [add("y", "b", "a", axis=1), ("relu", {"X": "a"}, {"Out": "z"})]
    case = PassCase(feeds, {"w": normal(8, 64, 3, 3), "b": normal(8)}, ops)
    assert check(case, "onednn_fuse_conv2d") == ["onednn_upsampled_conv2d"]


@pytest.mark.parametrize("excluded", [(), ("onednn",)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_it_runs_on_numpy_as_well(monkeypatch, excluded, dtype):
    case = pyramid(2, conv_bias=True)
    case.feeds, case.params = ({k: v.astype(dtype) for k, v in d.items()} for d in (case.feeds, case.params))
    program, scope = case.build()
    (want,) = oprack.Executor(excluded_libraries=("onednn",)).run(program, case.feeds, case.fetches(), scope)
    monkeypatch.setattr("oprack_onednn.passes.upsampled_conv2d._SPREAD", 0)
    names = ("onednn_fuse_conv2d", PASS)
    passes = [p for p in select_passes() if p.name in names]
    fused = optimize(program.desc, scope, keep=case.fetches(), passes=passes).program
    made = "onednn_upsampled_conv2d" in [op.type for op in fused.blocks[0].ops]
    assert made == (dtype == "float32")
    if excluded or dtype == "float64":
        monkeypatch.setattr(PrimitiveChain, "run", lambda *a: pytest.fail("oneDNN ran"))
    (got,) = oprack.Executor(excluded_libraries=excluded).run(fused, case.feeds, case.fetches(), scope)
    assert got.dtype == dtype
    np.testing.assert_allclose(got, want, **CLOSE)


def test_what_onednn_refuses_runs_step_by_step(monkeypatch):
    monkeypatch.setattr(upsampled_conv2d.Maps, "primitive", lambda *a: None)
    case = pyramid(2)
    assert check(case, "onednn_fuse_conv2d")[-1] == "onednn_upsampled_conv2d"


@pytest.mark.parametrize(
    "ops",
    [
        [up("x", "u", 2), ("conv2d", {"Input": "u", "Filter": "w"}, {"Output": "y"}, {"paddings": [0, 0]})],
        [
            up("x", "u", 2),
            ("conv2d", {"Input": "u", "Filter": "w"}, {"Output": "y"}, {"paddings": [1, 1], "strides": [2, 2]}),
        ],
        [up("x", "u", 1.5), conv("u", "y")],
        [("relu", {"X": "x"}, {"Out": "u"}), conv("u", "y")],
    ],
    ids=["padding", "stride", "factor", "no interpolation"],
)
def test_what_is_left_alone(ops):
    case = PassCase({"x": normal(1, 12, 6, 8)}, {"w": normal(8, 12, 3, 3)}, ops)
    assert check(case) == [op[0] for op in ops]


def test_maps_that_others_read_stay():
    case = PassCase({"x": normal(1, 12, 6, 8)}, {"w": normal(8, 12, 3, 3)}, [up("x", "u", 2), conv("u", "y")])
    case.fetch = ["u", "y"]
    assert sorted(check(case)) == ["nearest_interp_v2", "onednn_upsampled_conv2d"]


def test_a_variable_that_is_written_again_is_no_part():
    ops = [up("x", "u", 2), ("relu", {"X": "x"}, {"Out": "x"}), conv("u", "y"), ("relu", {"X": "x"}, {"Out": "z"})]
    case = PassCase({"x": normal(1, 12, 6, 8)}, {"w": normal(8, 12, 3, 3)}, ops, fetch=["y", "z"])
    assert check(case) == [op[0] for op in ops]


def test_maps_that_do_not_fit_together():
    program = Program()
    block = program.global_block()
    for name, shape in (("a", [1, 4, 3, 3]), ("b", [1, 4, 5, 6]), ("w", [8, 4, 3, 3])):
        block.create_var(name, dtype="float32", shape=shape)
    block.create_var("y")
    attrs = {"factors": [2, 1], "projects": [-1, -1], "shifts": [-1, -1], "scales": [-1, -1]}
    block.append_op("onednn_upsampled_conv2d", {"X": ["a", "b"], "Filter": ["w", "w"]}, {"Output": "y"}, attrs)
    feeds = {"a": normal(1, 4, 3, 3), "b": normal(1, 4, 5, 6), "w": normal(8, 4, 3, 3)}
    with pytest.raises(InvalidArgumentError, match="differ in N, H or W"):
        oprack.Executor().run(program, feeds, ["y"])


@pytest.mark.primitives("upsampled_conv2d")
def test_in_a_predictor(tmp_path):
    """Its parameters are constant, and what is made of them is kept for every shape."""
    case = pyramid(2, conv_bias=True)
    program, scope = case.build()
    for name in case.feeds:
        var = program.desc.blocks[0].vars[name]
        var.shape = (-1, var.shape[1], -1, -1) if name[0] == "p" else var.shape
    save_inference_model(tmp_path / "model", program, list(case.feeds), case.fetches(), scope)
    predictor = create_predictor(Config(str(tmp_path / "model.pdmodel"), str(tmp_path / "model.pdiparams")))
    assert predictor.get_input_names() == list(case.feeds)
    for n, width in ((2, 1), (2, 2), (1, 1), (2, 1)):
        feeds = {k: np.tile(v[:n], (1, 1, 1, width if k[0] == "p" else 1)) for k, v in case.feeds.items()}
        (want,) = oprack.Executor().run(program, feeds, case.fetches(), scope)
        (got,) = predictor.run(list(feeds.values()))
        np.testing.assert_allclose(got, want, **CLOSE)


@pytest.mark.primitives("upsampled_conv2d")
def test_new_sizes(tmp_path):
    """A size has the same bits in its first run as in later ones, and whatever sizes came before."""
    case = pyramid(1, conv_bias=True)
    program, scope = case.build()
    for name in case.feeds:
        var = program.desc.blocks[0].vars[name]
        var.shape = (-1, var.shape[1], -1, -1) if name[0] == "p" else var.shape
    save_inference_model(tmp_path / "model", program, list(case.feeds), case.fetches(), scope)
    predictor = create_predictor(Config(str(tmp_path / "model.pdmodel"), str(tmp_path / "model.pdiparams")))
    sizes = [tuple(map(int, size)) for size in np.random.default_rng(3).integers(1, 40, (6, 2))]

    def work(order):
        clone, found = predictor.clone(), []
        for h, w in order:
            feeds = [
                normal(1, v.shape[1], *(s * 2 ** int(k[1]) for s in (h, w)) if k[0] == "p" else (1, 1))
                for k, v in case.feeds.items()
            ]
            found.append(clone.run(feeds)[0].copy())
        return dict(zip(order, found, strict=True))

    # each thread makes all that a size needs for itself
    orders = sizes, sizes[::-1], sizes[1:] + sizes[:1]
    with ThreadPoolExecutor(3) as pool:
        first, *others = list(pool.map(work, orders))
    again = work(sizes), work(sizes)
    for found in (*others, *again):
        for size in sizes:
            np.testing.assert_array_equal(found[size], first[size])


@pytest.mark.usefixtures("on_onednn")
@pytest.mark.parametrize("n", [1, 2])
def test_without_the_compiled_step(monkeypatch, n):
    monkeypatch.setattr(_upsampled_conv2d.RUNNER, "library", None)
    assert check(pyramid(n, last=False), "onednn_fuse_conv2d")[-1:] == ["onednn_upsampled_conv2d"]
    ops = [up("x", "u", 4), conv("u", "z"), ("relu", {"X": "z"}, {"Out": "y"})]
    case = PassCase({"x": normal(n, 12, 5, 7)}, {"w": normal(8, 12, 3, 3)}, ops)
    assert check(case, "onednn_fuse_conv2d") == ["onednn_upsampled_conv2d"]


@pytest.mark.primitives("upsampled_conv2d")
def test_in_threads(tmp_path):
    """Clones share parameters, but not the weights of an image."""
    case = pyramid(2, conv_bias=True)
    program, scope = case.build()
    save_inference_model(tmp_path / "model", program, list(case.feeds), case.fetches(), scope)
    predictor = create_predictor(Config(str(tmp_path / "model.pdmodel"), str(tmp_path / "model.pdiparams")))

    def work(seed):
        clone = predictor.clone()
        for i in range(8):
            feeds = {k: normal(*v.shape, seed=seed + 10 * i) for k, v in case.feeds.items()}
            (want,) = oprack.Executor().run(program, feeds, case.fetches(), scope)
            (got,) = clone.run(list(feeds.values()))
            np.testing.assert_allclose(got, want, **CLOSE)
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))


@pytest.mark.parametrize("size", [(6, 8), (3, 4), (12, 16), (5, 7)], ids=str)
def test_a_size_that_is_not_checked_gives_no_factor(size):
    """The model says 6x8 and asks for 12x16; whatever is fed becomes 12x16."""
    attrs = {"interp_method": "nearest", "align_corners": False, "out_h": 12, "out_w": 16}
    ops = [("nearest_interp_v2", {"X": "x"}, {"Out": "u"}, attrs), conv("u", "y", paddings=(0, 0))]
    program, scope = PassCase({"x": normal(1, 64, 6, 8)}, {"w": normal(96, 64, 1, 1)}, ops, checked=False).build()
    done = optimize(program.desc, scope, keep=["y"])
    feeds = {"x": normal(1, 64, *size)}
    (want,), (got,) = (oprack.Executor().run(one, feeds, ["y"], scope) for one in (program, done.program))
    assert got.shape == (1, 96, 12, 16)
    np.testing.assert_allclose(got, want, **CLOSE)


def test_a_size_that_is_checked_gives_the_factor():
    attrs = {"interp_method": "nearest", "align_corners": False, "out_h": 12, "out_w": 16}
    ops = [("nearest_interp_v2", {"X": "x"}, {"Out": "u"}, attrs), conv("u", "y", paddings=(0, 0))]
    case = PassCase({"x": normal(1, 64, 6, 8)}, {"w": normal(96, 64, 1, 1)}, ops)
    assert check(case) == ["onednn_upsampled_conv2d"]
