"""Pass unpad on programs by hand and generated ones: real rows stay whatever else reads the batch."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from oprack.ir import Optimized, optimize, select_passes
from oprack.runtime import Executor
from oprack.testing import PassCase
from oprack.testing.passes import op_types

WIDTH, HEADS, LENGTH = 8, 2, 6
KEPT = np.array([[1, 1, 1, 1, 1, 1], [1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0]], bool)


class Net:
    """A program in the making: variables are names."""

    def __init__(self, seed: int = 0) -> None:
        self.rng, self.random = np.random.default_rng(seed), random.Random(seed)
        self.ops: list[tuple[Any, ...]] = []
        self.feeds = {
            "x": self.rng.standard_normal((*KEPT.shape, WIDTH)).astype("float32"),
            "mask": KEPT.astype("float32"),
        }
        self.params: dict[str, np.ndarray] = {}
        self._count = 0

    def op(self, kind: str, out: str = "Out", attrs: dict[str, Any] | None = None, **inputs: Any) -> str:
        self._count += 1
        name = f"v{self._count}"
        self.ops.append((kind, inputs, {out: name}, attrs or {}))
        return name

    def param(self, *shape: int) -> str:
        name = f"w{len(self.params)}"
        self.params[name] = (self.rng.standard_normal(shape) / 2).astype("float32")
        return name

    def linear(self, x: str, width: int = WIDTH) -> str:
        y = self.op("matmul_v2", X=x, Y=self.param(WIDTH, width))
        return self.op("elementwise_add", X=y, Y=self.param(width), attrs={"axis": -1})

    def heads(self, x: str) -> str:
        x = self.op("reshape2", X=self.linear(x), attrs={"shape": [0, 0, HEADS, WIDTH // HEADS]})
        return self.op("transpose2", X=x, attrs={"axis": [0, 2, 1, 3]})

    def lowered(self, by: float = -1e4) -> str:
        """(1 - mask) * by, as scores of attention want it."""
        lost = self.op("scale", X="mask", attrs={"scale": -1.0, "bias": 1.0})
        return self.op("unsqueeze2", X=self.op("scale", X=lost, attrs={"scale": by}), attrs={"axes": [1, 2]})

    def scores(self, x: str, memory: str | None = None) -> str:
        product = self.op("matmul_v2", X=self.heads(x), Y=self.heads(memory or x), attrs={"trans_y": True})
        return self.op("scale", X=product, attrs={"scale": (WIDTH // HEADS) ** -0.5})

    def attention(self, x: str, added: str, memory: str | None = None) -> str:
        memory = memory or x
        scores = self.op("elementwise_add", X=self.scores(x, memory), Y=added, attrs={"axis": -1})
        weights = self.op("softmax", X=scores, attrs={"axis": -1})
        y = self.op("transpose2", X=self.op("matmul_v2", X=weights, Y=self.heads(memory)), attrs={"axis": [0, 2, 1, 3]})
        return self.linear(self.op("reshape2", X=y, attrs={"shape": [0, 0, WIDTH]}))

    def convolved(self, x: str, size: int = 3, dilation: int = 1, algorithm: str = "EXPLICIT") -> str:
        """Along the text, as nn.Conv1D writes it."""
        y = self.op("unsqueeze2", X=self.op("transpose2", X=x, attrs={"axis": [0, 2, 1]}), attrs={"axes": [-2]})
        around = [dilation * (size - 1) // 2, dilation * (size - 1) - dilation * (size - 1) // 2]
        attrs = {"paddings": [0, 0, *around], "dilations": [1, dilation], "padding_algorithm": algorithm}
        y = self.op("conv2d", "Output", Input=y, Filter=self.param(WIDTH, WIDTH, 1, size), attrs=attrs)
        y = self.op("elementwise_add", X=y, Y=self.param(WIDTH), attrs={"axis": 1})
        return self.op("transpose2", X=self.op("squeeze2", X=y, attrs={"axes": [-2]}), attrs={"axis": [0, 2, 1]})

    def windows(self, x: str, before: int, behind: int) -> str:
        """A sum of the rows around each, weighted by what the row says, as in ConvBERT."""
        size = before + behind + 1
        y = self.op("unsqueeze2", X=self.linear(x), attrs={"axes": [2, 3]})
        pads = {"paddings": [0, 0, 0, 0, before, behind], "data_format": "NDHWC"}
        y = self.op("squeeze2", X=self.op("pad3d", X=y, attrs=pads), attrs={"axes": [2, 3]})
        length = self.op(
            "slice",
            Input=self.op("shape", Input=x),
            attrs={"axes": [0], "starts": [1], "ends": [2], "decrease_axis": [0]},
        )
        slices = []
        for i in range(size):
            end = self.op("scale", X=length, attrs={"bias": float(i)})
            attrs = {"axes": [1], "starts": [i], "ends": [-1], "infer_flags": [-1]}
            slices.append(self.op("slice", Input=y, EndsTensorList=[end], attrs=attrs))
        y = self.op("stack", "Y", X=slices, attrs={"axis": -1})
        y = self.op("reshape2", X=y, attrs={"shape": [-1, WIDTH // HEADS, size]})
        weights = self.op("reshape2", X=self.linear(x, HEADS * size), attrs={"shape": [-1, size, 1]})
        y = self.op("matmul_v2", X=y, Y=self.op("softmax", X=weights, attrs={"axis": 1}))
        batch = self.op("shape", Input=x)
        sizes = [
            self.op("slice", Input=batch, attrs={"axes": [0], "starts": [i], "ends": [i + 1], "decrease_axis": [0]})
            for i in range(2)
        ]
        width = self.op("fill_constant", attrs={"shape": [1], "dtype": 2, "value": float(WIDTH)})
        return self.op("reshape2", X=y, ShapeTensor=[*sizes, width], attrs={"shape": [-1, -1, WIDTH]})

    def attended_by_all(self, x: str) -> str:
        weights = self.op("softmax", X=self.scores(x), attrs={"axis": -1})
        y = self.op("transpose2", X=self.op("matmul_v2", X=weights, Y=self.heads(x)), attrs={"axis": [0, 2, 1, 3]})
        return self.op("reshape2", X=y, attrs={"shape": [0, 0, WIDTH]})

    def layer(self, x: str, added: str) -> str:
        y = self.op("elementwise_add", X=x, Y=self.attention(x, added), attrs={"axis": -1})
        y = self.op("layer_norm", "Y", X=y, attrs={"begin_norm_axis": 2})
        return self.op("elementwise_add", X=y, Y=self.linear(self.op("gelu", X=self.linear(y))), attrs={"axis": -1})

    def case(self, *fetch: str) -> PassCase:
        return PassCase(self.feeds, self.params, self.ops, list(fetch), checked=False)


def run(case: PassCase) -> tuple[list[np.ndarray], list[np.ndarray], Optimized]:
    """(outputs, those with the pass, what it left)"""
    program, scope = case.build()
    passes = select_passes(excluded_libraries=["onednn", "onnxruntime"], enabled=["unpad"])
    done = optimize(program.desc, scope, keep=case.fetches(), passes=passes, debug=True)
    assert not [r.error for r in done.reports if r.error]
    left = {name: value for name, value in case.feeds.items() if name in done.program.blocks[0].vars}
    plain = Executor().run(program, case.feeds, case.fetches(), scope)
    return plain, Executor().run(done.program, left, case.fetches(), scope), done


def matches(done: Optimized) -> int:
    (found,) = [r.matches for r in done.reports if r.name == "unpad"]
    return found


def compare(case: PassCase) -> Optimized:
    """Whatever is an answer for real rows is as it was."""
    plain, changed, done = run(case)
    kept = case.feeds["mask"] != 0
    for name, want, got in zip(case.fetches(), plain, changed, strict=True):
        assert got.shape == want.shape and got.dtype == want.dtype
        places: Any = ...
        if got.shape[:2] == kept.shape:
            places = kept
        elif got.shape[:1] == kept.shape[:1]:
            places = kept.any(axis=1)
        np.testing.assert_allclose(got[places], want[places], rtol=1e-4, atol=1e-5, err_msg=name)
    return done


def test_two_layers_run_on_rows() -> None:
    net = Net()
    added = net.lowered()
    y = net.layer(net.layer("x", added), added)
    plain, changed, done = run(net.case(y))
    np.testing.assert_allclose(changed[0][KEPT], plain[0][KEPT], rtol=1e-4, atol=1e-5)
    assert not changed[0][~KEPT].any() and plain[0][~KEPT].any()
    assert matches(done) == 2 and "softmax" not in op_types(done)
    assert op_types(done).count("unpad_by_mask") == 2  # the mask itself, and x


# What reads whole rows at the end, and how many of two attentions run on rows with it ---------------------------------
def first_row(net: Net, y: str) -> str:
    return net.op("slice", Input=y, attrs={"axes": [1], "starts": [0], "ends": [1], "decrease_axis": [1]})


def masked_mean(net: Net, y: str) -> str:
    flags = net.op("unsqueeze2", X="mask", attrs={"axes": [2]})
    kept = net.op("elementwise_mul", X=y, Y=flags, attrs={"axis": -1})
    return net.op("reduce_sum", X=kept, attrs={"dim": [1]})


def sliced_and_mixed(net: Net, y: str) -> str:
    """The first rows of all sentences meet: those of empty sentences are no more what they were."""
    rows = first_row(net, y)
    return net.op("matmul_v2", X=rows, Y=rows, attrs={"trans_y": True})


def mean(net: Net, y: str) -> str:
    return net.op("reduce_mean", X=y, attrs={"dim": [1]})


def over_rows(net: Net, y: str) -> str:
    return net.op("softmax", X=y, attrs={"axis": 1})


def reshaped(net: Net, y: str) -> str:
    return net.op("reshape2", X=y, attrs={"shape": [0, 0, 2, WIDTH // 2]})


def joined(net: Net, y: str) -> str:
    """Rows side by side."""
    return net.op("reshape2", X=y, attrs={"shape": [0, LENGTH * WIDTH]})


def convolved(net: Net, y: str) -> str:
    y = net.op("transpose2", X=y, attrs={"axis": [0, 2, 1]})
    y = net.op("unsqueeze2", X=y, attrs={"axes": [2]})
    return net.op("conv2d", "Output", Input=y, Filter=net.param(3, WIDTH, 1, 3), attrs={"paddings": [0, 1]})


def summed(net: Net, y: str) -> str:
    return net.op("cumsum", X=y, attrs={"axis": 1})


def attended(net: Net, y: str) -> str:
    """Once more, without a mask."""
    weights = net.op("softmax", X=net.scores(y), attrs={"axis": -1})
    return net.op("matmul_v2", X=weights, Y=net.heads(y))


def less_masked(net: Net, y: str) -> str:
    """-5 is far from a weight of 0."""
    return net.attention(y, net.lowered(-5.0))


def positions(net: Net, y: str) -> str:
    """A parameter for each place."""
    return net.op("elementwise_add", X=y, Y=net.param(LENGTH, WIDTH), attrs={"axis": -1})


ENDS: list[tuple[Callable[[Net, str], str], int]] = [
    (first_row, 2),
    (masked_mean, 2),
    (reshaped, 2),
    (sliced_and_mixed, 0),
    (mean, 0),
    (over_rows, 0),
    (joined, 0),
    (convolved, 0),
    (summed, 0),
    (attended, 0),
    (less_masked, 0),
    (positions, 0),
]


@pytest.mark.parametrize(("end", "count"), ENDS, ids=[end.__name__ for end, _ in ENDS])
def test_what_reads_whole_rows(end: Callable[[Net, str], str], count: int) -> None:
    net = Net()
    added = net.lowered()
    y = net.layer(net.layer("x", added), added)
    done = compare(net.case(end(net, y)))
    assert matches(done) == count


def test_nothing_changes_where_it_does_not_apply() -> None:
    net = Net()
    added = net.lowered()
    case = net.case(mean(net, net.layer("x", added)))
    program, scope = case.build()
    passes = select_passes(excluded_libraries=["onednn", "onnxruntime"])
    found = optimize(program.desc, scope, keep=case.fetches(), passes=passes)
    with_it = select_passes(excluded_libraries=["onednn", "onnxruntime"], enabled=["unpad"])
    assert str(optimize(program.desc, scope, keep=case.fetches(), passes=with_it).program) == str(found.program)


@pytest.mark.parametrize("kept", ["short", "holes", "left", "none"])
def test_what_looks_at_rows_near_to_others_sees_padding(kept: str) -> None:
    """As many rows of it as two convolutions and a window before an attention see, and one behind it."""
    net = Net()
    mask = {
        "short": KEPT,
        "holes": np.array([[1, 0, 1, 1, 0, 0], [0, 0, 0, 1, 0, 0]], bool),
        "left": ~KEPT,
        "none": np.zeros((2, 6), bool),
    }[kept]
    net.feeds["mask"], net.feeds["x"] = mask.astype("float32"), net.feeds["x"][: len(mask)]
    added = net.lowered()
    x = net.convolved(net.layer("x", added), 3, 2)
    x = net.convolved(net.windows(net.layer(x, added), 2, 1), 4, 1, "SAME")
    x = net.op("elementwise_add", X=net.layer(x, added), Y=net.convolved(x), attrs={"axis": -1})
    done = compare(net.case(net.layer(x, added), x))
    assert matches(done) == 4
    reach = {op.attrs.get("reach", 0) for op in done.program.blocks[0].ops if op.type == "unpad_by_mask"}
    assert reach == {0, 3, 5, 7} and op_types(done).count("sequence_unfold") == 1


@pytest.mark.parametrize("also_fetched", [False, True])
def test_another_text_attends_to_rows(also_fetched: bool) -> None:
    """Decoders attend to an encoder: it stays padded where a mean over its padding is fetched, but not for them."""
    net = Net()
    net.feeds["mask"], net.feeds["y"] = np.delete(KEPT, 2, 0).astype("float32"), net.feeds["x"][:3, :4] * 2
    net.feeds["x"] = net.feeds["x"][[0, 1, 3]]
    added = net.lowered()
    memory = net.layer(net.layer("x", added), added)
    y = net.op("elementwise_add", X="y", Y=net.attention(net.attended_by_all("y"), added, memory), attrs={"axis": -1})
    y = net.op("elementwise_add", X=y, Y=net.attention(y, added, memory), attrs={"axis": -1})
    case = net.case(y, *[net.op("reduce_mean", X=memory, attrs={"dim": [1]})] * also_fetched)
    done = compare(case)
    assert matches(done) == (2 if also_fetched else 4)
    assert op_types(done).count("softmax") == (3 if also_fetched else 1)


def test_weights_that_are_fetched_stay() -> None:
    """Those of padding as well, so what they are made of stays padded."""
    net = Net()
    added = net.lowered()
    y = net.layer(net.layer("x", added), added)
    weights = [outputs["Out"] for kind, _, outputs, _ in net.ops if kind == "softmax"]
    case = net.case(y, *weights)
    compare(case)
    plain, changed, _ = run(case)
    for want, got in zip(plain[1:], changed[1:], strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_means_that_are_fetched_stay() -> None:
    """layer_norm gives means and variances for each row as well."""
    net = Net()
    y = net.layer("x", net.lowered())
    net.ops.append(("layer_norm", {"X": y}, {"Y": "y", "Mean": "mean"}, {"begin_norm_axis": 2}))
    case = net.case("y", "mean")
    plain, changed, _ = run(case)
    for want, got in zip(plain, changed, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_what_comes_before_a_mixture_stays_padded() -> None:
    """The first layer is read by a convolution, the second by nothing but the third."""
    net = Net()
    added = net.lowered()
    first = net.layer("x", added)
    y = net.layer(net.layer(first, added), added)
    assert matches(compare(net.case(y, summed(net, first)))) == 2


def test_masks_in_other_words() -> None:
    for kind in ("equal", "not_equal", "where", "integers", "minus"):
        net = Net()
        ids = np.where(KEPT, 7, 3)
        net.feeds["ids"], net.params["three"] = ids, np.array([3])
        if kind in ("equal", "not_equal"):
            flags = net.op(kind, X="ids", Y="three", attrs={"axis": -1})
            number = net.op("cast", X=flags, attrs={"in_dtype": 0, "out_dtype": 5})
            scale = {"scale": -1e9} if kind == "equal" else {"scale": 1e9, "bias": -1.0, "bias_after_scale": False}
            added = net.op("scale", X=number, attrs=scale)
        elif kind == "where":
            net.params["low"], net.params["zero"] = np.array([-1e9], "float32"), np.array([0.0], "float32")
            flags = net.op("equal", X="ids", Y="three", attrs={"axis": -1})
            net.params["low"], net.params["zero"] = (np.full(KEPT.shape, v, "float32") for v in (-1e9, 0.0))
            number = net.op("where", Condition=flags, X="low", Y="zero")
            added = number
        elif kind == "integers":
            net.feeds["mask"] = KEPT.astype("int64")
            number = net.op("cast", X="mask", attrs={"in_dtype": 3, "out_dtype": 5})
            added = net.op("scale", X=number, attrs={"scale": 1e4, "bias": -1e4})
        else:
            net.params["one"], net.params["high"] = np.array([1.0], "float32"), np.array([-1e5], "float32")
            lost = net.op("elementwise_sub", X="mask", Y="one", attrs={"axis": -1})
            lost = net.op("scale", X=lost, attrs={"scale": -1.0})
            added = net.op("elementwise_mul", X=lost, Y="high", attrs={"axis": -1})
        y = net.layer("x", net.op("unsqueeze2", X=added, attrs={"axes": [1, 2]}))
        assert matches(compare(net.case(y))) == (kind != "where"), kind  # tables of numbers are no constants


# Generated programs ---------------------------------------------------------------------------------------------------
SAME: list[Callable[[Net, str], str]] = [
    lambda net, x: net.op("tanh", X=x),
    lambda net, x: net.linear(x),
    lambda net, x: net.op("softmax", X=x, attrs={"axis": -1}),
    lambda net, x: net.op("layer_norm", "Y", X=x, attrs={"begin_norm_axis": 2}),
    lambda net, x: net.op("elementwise_mul", X=x, Y=net.param(WIDTH), attrs={"axis": 2}),
    lambda net, x: net.op("elementwise_sub", X=x, Y="x", attrs={"axis": -1}),
    lambda net, x: net.op("scale", X=x, attrs={"scale": 0.5, "bias": 0.25}),
    lambda net, x: net.op(
        "reshape2", X=net.op("reshape2", X=x, attrs={"shape": [0, 0, 2, -1]}), attrs={"shape": [0, 0, WIDTH]}
    ),
    lambda net, x: net.convolved(x),
    lambda net, x: net.windows(x, 1, 0),
    lambda net, x: net.op(
        "elementwise_mul", X=x, Y=net.op("unsqueeze2", X="mask", attrs={"axes": [2]}), attrs={"axis": -1}
    ),
]
MIXED: list[Callable[[Net, str], str]] = [
    lambda net, x: net.op("softmax", X=x, attrs={"axis": 1}),
    lambda net, x: net.op("cumsum", X=x, attrs={"axis": 1}),
    lambda net, x: net.op("flip", X=x, attrs={"axis": [1]}),
    lambda net, x: net.op(
        "elementwise_add", X=x, Y=net.op("reduce_mean", X=x, attrs={"dim": [1], "keep_dim": True}), attrs={"axis": -1}
    ),
    lambda net, x: net.op(
        "elementwise_add", X=x, Y=net.op("reduce_max", X=x, attrs={"dim": [0], "keep_dim": True}), attrs={"axis": -1}
    ),
    lambda net, x: net.op("elementwise_mul", X=x, Y=net.param(LENGTH, WIDTH), attrs={"axis": -1}),
    lambda net, x: net.attention(
        x, net.op("unsqueeze2", X=net.op("scale", X="mask", attrs={"scale": 0.5}), attrs={"axes": [1, 2]})
    ),
]
POOLED: list[Callable[[Net, str], str]] = [first_row, masked_mean, mean, joined, sliced_and_mixed]


@pytest.mark.parametrize("seed", range(40))
def test_generated(seed: int) -> None:
    """Layers with what mixes rows before, between and behind them, and some variables fetched."""
    net = Net(seed)
    pick, added, x, fetched = net.random, net.lowered(), "x", list[str]()
    for _ in range(pick.randint(2, 6)):
        kind = pick.random()
        if kind < 0.45:
            x = net.layer(x, added)
        else:
            x = pick.choice(SAME if kind < 0.8 else MIXED)(net, x)
        if pick.random() < 0.15:
            fetched.append(x)
        if pick.random() < 0.15:
            fetched.append(pick.choice(POOLED)(net, x))
    fetched.append(x if pick.random() < 0.5 else pick.choice(POOLED)(net, x))
    compare(net.case(*dict.fromkeys(fetched)))


def test_generated_programs_are_of_both_kinds() -> None:
    """Some of the seeds above run on rows, and some do not."""
    found = set()
    for seed in range(12):
        net = Net(seed)
        added = net.lowered()
        x = net.layer("x", added)
        x = net.random.choice([*SAME, *MIXED])(net, x)
        found.add(matches(compare(net.case(net.layer(x, added)))))
    assert found >= {1, 2}
