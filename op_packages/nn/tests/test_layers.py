"""Layers of nn: shapes as a program is built, numbers against NumPy, sharing, errors."""

from __future__ import annotations

import numpy as np
import oprack
import pytest
from oprack import ParamAttr, layers
from oprack.errors import InvalidArgumentError
from oprack.initializer import NumpyArrayInitializer

RNG = np.random.default_rng(3)


class Built:
    """A network that was built and run once: its programs, scope, executor and fetched arrays."""

    def __init__(self, build, **feed):
        self.main, self.startup, self.scope = oprack.Program(), oprack.Program(), oprack.Scope()
        self.exe, self.feed = oprack.Executor(seed=2), feed
        with oprack.program_guard(self.main, self.startup), oprack.unique_name.guard():
            made = build(**{n: layers.data(n, [None, *a.shape[1:]], a.dtype) for n, a in feed.items()})
        self.outputs = list(made) if isinstance(made, list | tuple) else [made]
        self.exe.run(self.startup, scope=self.scope, fetch_list=[])
        self.arrays = self.run(self.main)
        for var, array in zip(self.outputs, self.arrays, strict=True):
            assert var.dtype == str(array.dtype) and len(var.shape) == array.ndim, var
            assert all(d in (-1, n) for d, n in zip(var.shape, array.shape, strict=True)), (var, array.shape)

    def run(self, program):
        return self.exe.run(program, feed=self.feed, fetch_list=[v.name for v in self.outputs], scope=self.scope)

    def __getitem__(self, name):
        return np.asarray(self.scope.find_var(name).get())


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


# fc, embedding, dropout, one_hot --------------------------------------------------------------------------------------
def test_fc_of_several_inputs():
    x, y = normal(2, 3, 4), normal(2, 3, 5)
    net = Built(lambda x, y: layers.fc([x, y], 6, num_flatten_dims=2, bias_attr="b", act="tanh"), x=x, y=y)
    assert net.outputs[0].shape == (-1, 3, 6)
    assert [p.name for p in net.main.all_parameters()] == ["fc_0.w_0", "fc_0.w_1", "b"]
    expected = np.tanh(x @ net["fc_0.w_0"] + y @ net["fc_0.w_1"] + net["b"])
    np.testing.assert_allclose(net.arrays[0], expected, rtol=1e-5, atol=1e-6)


def test_fc_flattens_and_shares():
    x = normal(2, 3, 4)
    net = Built(lambda x: [layers.fc(x, 5, param_attr="w", bias_attr=False) for _ in range(2)], x=x)
    assert net["w"].shape == (12, 5) and len(net.startup.global_block().ops) == 1
    np.testing.assert_allclose(net.arrays[0], x.reshape(2, 12) @ net["w"], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(net.arrays[0], net.arrays[1])
    last = Built(lambda x: layers.fc(x, 5, num_flatten_dims=-1), x=x)
    assert last.arrays[0].shape == (2, 3, 5)


@pytest.mark.parametrize("shape", [(3, 1), (3,), (2, 3)])
def test_embedding(shape):
    ids = RNG.integers(0, 7, shape)
    net = Built(lambda ids: layers.embedding(ids, [7, 4], is_sparse=True, padding_idx=-1, param_attr="table"), ids=ids)
    op = net.main.global_block().ops[0]
    assert op.type == ("lookup_table" if shape[-1] == 1 else "lookup_table_v2")
    assert op.attr("is_sparse") is True and op.attr("padding_idx") == 6
    rows = ids[..., 0] if shape[-1] == 1 else ids
    expected = np.where((rows == 6)[..., None], 0, net["table"][rows])
    np.testing.assert_array_equal(net.arrays[0], expected)


def test_dropout_in_training_and_test():
    x = np.ones((20, 30), np.float32)

    def build(x):
        return [
            layers.dropout(x, 0.25, seed=3),
            layers.dropout(x, 0.25, dropout_implementation="upscale_in_train"),
            layers.dropout(x, 0.25, is_test=True),
        ]

    net = Built(build, x=x)
    down, up, test = net.arrays
    assert set(np.unique(down)) == {0, 1} and down.mean() == pytest.approx(0.75, abs=0.06)
    assert set(np.unique(up)) == {0, np.float32(1 / 0.75)}
    np.testing.assert_array_equal(test, x * np.float32(0.75))
    for found, scale in zip(net.run(net.main.clone(for_test=True)), (0.75, 1.0, 0.75), strict=True):
        np.testing.assert_array_equal(found, x * np.float32(scale))


def test_one_hot():
    ids = np.array([[2], [0]])
    net = Built(
        lambda ids: [layers.one_hot(ids, 3), layers.one_hot(ids, layers.fill_constant([1], "int32", 4))], ids=ids
    )
    np.testing.assert_array_equal(net.arrays[0], np.eye(3)[[2, 0]])
    np.testing.assert_array_equal(net.arrays[1], np.eye(4)[[2, 0]])


# Images ---------------------------------------------------------------------------------------------------------------
def conv(x, w, stride=1, pad=0, dilation=1):
    """Cross-correlation, tap by tap."""
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    kh, kw = w.shape[2:]
    oh, ow = ((s - dilation * (k - 1) - 1) // stride + 1 for s, k in zip(x.shape[2:], (kh, kw), strict=True))
    out = np.zeros((x.shape[0], w.shape[0], oh, ow), np.float64)
    for i in range(kh):
        for j in range(kw):
            part = x[:, :, i * dilation :, j * dilation :][:, :, : stride * oh : stride, : stride * ow : stride]
            out += np.einsum("nchw,kc->nkhw", part, w[:, :, i, j])
    return out


def test_conv2d():
    x = normal(2, 3, 8, 7)
    net = Built(lambda x: layers.conv2d(x, 4, 3, stride=2, padding=1, dilation=2, bias_attr="b", act="relu"), x=x)
    expected = conv(x, net["conv2d_0.w_0"], 2, 1, 2) + net["b"][:, None, None]
    np.testing.assert_allclose(net.arrays[0], expected.clip(0), rtol=1e-4, atol=1e-5)
    fill = net.startup.global_block().ops[0]
    assert fill.type == "gaussian_random" and fill.attr("std") == pytest.approx((2 / 27) ** 0.5)


def test_conv2d_by_groups_and_layout():
    x = normal(2, 4, 6, 6)

    def build(x):
        last = layers.transpose(x, [0, 2, 3, 1])
        return [
            layers.conv2d(x, 4, 3, padding="SAME", groups=4, param_attr="depthwise", bias_attr=False),
            layers.conv2d(x, 6, [1, 2], groups=2, param_attr="grouped", bias_attr=False, padding="VALID"),
            layers.conv2d(last, 2, 3, padding=[1, 0, 1, 0], param_attr="last", bias_attr=False, data_format="NHWC"),
        ]

    net = Built(build, x=x)
    assert [op.type for op in net.main.global_block().ops][1:] == ["depthwise_conv2d", "conv2d", "conv2d"]
    depthwise = np.concatenate([conv(x[:, [c]], net["depthwise"][[c]], pad=1) for c in range(4)], 1)
    grouped = np.concatenate([conv(x[:, 2 * g : 2 * g + 2], net["grouped"][3 * g : 3 * g + 3]) for g in range(2)], 1)
    last = conv(np.pad(x, ((0, 0), (0, 0), (1, 0), (1, 0))), net["last"]).transpose(0, 2, 3, 1)
    for found, expected in zip(net.arrays, (depthwise, grouped, last), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_conv2d_transpose_is_the_gradient_of_conv2d():
    x, y = normal(1, 2, 4, 4), normal(1, 3, 9, 9)

    def build(x):
        return [
            layers.conv2d_transpose(x, 3, filter_size=3, stride=2, param_attr="w", bias_attr=False),
            layers.conv2d_transpose(x, 3, output_size=[8, 10], stride=2, padding=1, bias_attr=False),
        ]

    net = Built(build, x=x)
    assert net.arrays[0].shape == y.shape and net.arrays[1].shape == (1, 3, 8, 10)
    inner = (net.arrays[0] * y).sum()
    np.testing.assert_allclose(inner, (x * conv(y, net["w"], stride=2)).sum(), rtol=1e-4)


def test_pooling():
    x = normal(2, 3, 6, 6)

    def build(x):
        return [
            layers.pool2d(x, 2, "max", 2),
            layers.pool2d(x, 2, "avg", 2),
            layers.pool2d(x, pool_type="avg", global_pooling=True),
            layers.adaptive_pool2d(x, [3, 1], "avg"),
            layers.adaptive_pool2d(x, [3, 1], "max"),
        ]

    windows = x.reshape(2, 3, 3, 2, 3, 2)
    expected = [
        windows.max((3, 5)),
        windows.mean((3, 5)),
        x.mean((2, 3), keepdims=True),
        x.reshape(2, 3, 3, 2, 6).mean((3, 4))[..., None],
        x.reshape(2, 3, 3, 2, 6).max((3, 4))[..., None],
    ]
    for found, value in zip(Built(build, x=x).arrays, expected, strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-5, atol=1e-6)


def test_resizing_and_padding():
    x = normal(1, 2, 3, 3)

    def build(x):
        return [
            layers.image_resize(x, [5, 5]),
            layers.resize_nearest(x, scale=2.0, align_corners=False),
            layers.resize_bilinear(x, [5, layers.fill_constant([1], "int32", 5)]),
            layers.pad2d(x, [1, 0, 2, 0], pad_value=3.0),
            layers.pixel_shuffle(layers.concat([x, x], 1), 2),
        ]

    arrays = Built(build, x=x).arrays
    middle = (x[:, :, :-1] + x[:, :, 1:]) / 2
    np.testing.assert_allclose(arrays[0][:, :, 1::2, ::2], middle, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(arrays[0], arrays[2], rtol=1e-6)
    np.testing.assert_array_equal(arrays[1], x.repeat(2, 2).repeat(2, 3))
    np.testing.assert_array_equal(arrays[3], np.pad(x, ((0, 0), (0, 0), (1, 0), (2, 0)), constant_values=3))
    assert arrays[4].shape == (1, 1, 6, 6)


# Normalisation --------------------------------------------------------------------------------------------------------
def test_batch_norm_follows_the_batch_and_then_its_mean():
    x = normal(4, 3, 5, 5) * 2 + 1
    net = Built(lambda x: layers.batch_norm(x, momentum=0.5, moving_mean_name="m", moving_variance_name="v"), x=x)
    mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3))

    def normed(mean, var):
        return (x - mean[:, None, None]) / np.sqrt(var[:, None, None] + 1e-5)

    np.testing.assert_allclose(net.arrays[0], normed(mean, var), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(net["m"], mean / 2, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(net["v"], 0.5 + var / 2, rtol=1e-4)
    assert [p.stop_gradient for p in net.main.all_parameters()] == [False, False, True, True]
    (test,) = net.run(net.main.clone(for_test=True))
    np.testing.assert_allclose(test, normed(net["m"], net["v"]), rtol=1e-4, atol=1e-4)


def test_other_norms():
    x = normal(2, 4, 3)

    def build(x):
        return [
            layers.layer_norm(x, begin_norm_axis=2, param_attr="s", bias_attr="b"),
            layers.layer_norm(x, scale=False, shift=False),
            layers.group_norm(layers.unsqueeze(x, [3]), groups=2),
            layers.instance_norm(layers.unsqueeze(x, [3])),
        ]

    def normed(x, axes):
        return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)

    expected = [
        normed(x, 2),
        normed(x, (1, 2)),
        normed(x.reshape(2, 2, 6), 2).reshape(2, 4, 3, 1),
        normed(x, 2)[..., None],
    ]
    net = Built(build, x=x)
    for found, value in zip(net.arrays, expected, strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-4, atol=1e-4)
    assert net["s"].shape == (3,) and len(net.main.all_parameters()) == 6


# Activations and losses -----------------------------------------------------------------------------------------------
def sigmoid(x):
    return 1 / (1 + np.exp(-x))


ACTIVATIONS = {
    "relu": lambda x: x.clip(0),
    "relu6": lambda x: x.clip(0, 6),
    "sigmoid": sigmoid,
    "logsigmoid": lambda x: np.log(sigmoid(x)),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.02 * x),
    "elu": lambda x: np.where(x > 0, x, np.exp(x) - 1),
    "softplus": lambda x: np.log1p(np.exp(x)),
    "softsign": lambda x: x / (1 + abs(x)),
    "swish": lambda x: x * sigmoid(x),
    "silu": lambda x: x * sigmoid(x),
    "hard_sigmoid": lambda x: (0.2 * x + 0.5).clip(0, 1),
    "tanh_shrink": lambda x: x - np.tanh(x),
    "softmax": softmax,
    "log_softmax": lambda x: np.log(softmax(x)),
    "stanh": lambda x: 1.7159 * np.tanh(0.67 * x),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name):
    x = normal(3, 4)
    net = Built(lambda x: getattr(layers, name)(x), x=x)
    np.testing.assert_allclose(net.arrays[0], ACTIVATIONS[name](x), rtol=1e-4, atol=1e-6)


def test_activations_with_attributes_and_parameters():
    x = normal(3, 4)
    net = Built(lambda x: [layers.leaky_relu(x, alpha=0.5), layers.prelu(x, "all"), layers.fc(x, 2, act="gelu")], x=x)
    np.testing.assert_allclose(net.arrays[0], np.where(x > 0, x, 0.5 * x), rtol=1e-6)
    np.testing.assert_allclose(net.arrays[1], np.where(x > 0, x, 0.25 * x), rtol=1e-6)


def test_losses():
    x, soft = normal(4, 3), softmax(normal(4, 3))
    hard = np.array([[0], [2], [1], [2]])
    rows, p = np.arange(4), softmax(x)

    def build(x, soft, hard):
        probabilities = layers.softmax(x)
        return [
            layers.cross_entropy(probabilities, hard),
            layers.cross_entropy(probabilities, soft, soft_label=True),
            layers.cross_entropy(probabilities, hard, ignore_index=2),
            layers.softmax_with_cross_entropy(x, hard),
            *layers.softmax_with_cross_entropy(x, soft, soft_label=True, return_softmax=True),
            layers.sigmoid_cross_entropy_with_logits(x, soft),
            layers.square_error_cost(x, soft),
            layers.mse_loss(x, soft),
            layers.huber_loss(x, soft, 0.5),
            layers.smooth_l1(x, soft),
            layers.log_loss(probabilities[:, :1], soft[:, :1]),
            layers.label_smooth(soft, epsilon=0.3),
        ]

    picked = -np.log(p[rows, hard[:, 0]])[:, None]
    d = abs(soft - x)
    expected = [
        picked,
        -(soft * np.log(p)).sum(1, keepdims=True),
        np.where(hard == 2, 0, picked),
        picked,
        -(soft * np.log(p)).sum(1, keepdims=True),
        p,
        np.log1p(np.exp(x)) - x * soft,
        d**2,
        (d**2).mean(),
        np.where(d <= 0.5, d**2 / 2, 0.5 * d - 0.125),
        np.where(d < 1, d**2 / 2, d - 0.5).sum(1, keepdims=True),
        -soft[:, :1] * np.log(p[:, :1] + 1e-4) - (1 - soft[:, :1]) * np.log(1 - p[:, :1] + 1e-4),
        0.7 * soft + 0.1,
    ]
    net = Built(build, x=x, soft=soft, hard=hard)
    for found, value in zip(net.arrays, expected, strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-4, atol=1e-5)


# Groups of layers -----------------------------------------------------------------------------------------------------
def test_nets():
    x, q, k = normal(2, 3, 8, 8), normal(2, 5, 4), normal(2, 6, 4)

    def build(x, q, k):
        return [
            oprack.nets.simple_img_conv_pool(x, 4, 3, pool_size=2, pool_stride=2, act="relu"),
            oprack.nets.img_conv_group(x, [4, 5], 2, conv_with_batchnorm=[True, False], conv_act="relu", pool_stride=2),
            oprack.nets.glu(x, dim=3),
            oprack.nets.scaled_dot_product_attention(q, k, k),
            oprack.nets.scaled_dot_product_attention(q, k, k, num_heads=2, dropout_rate=0.1),
        ]

    net = Built(build, x=x, q=q, k=k)
    assert [a.shape for a in net.arrays] == [(2, 4, 3, 3), (2, 5, 4, 4), (2, 3, 8, 4), (2, 5, 4), (2, 5, 4)]
    np.testing.assert_allclose(net.arrays[2], x[..., :4] * sigmoid(x[..., 4:]), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(net.arrays[3], softmax(q @ k.transpose(0, 2, 1) / 2) @ k, rtol=1e-4, atol=1e-5)
    with oprack.program_guard(net.main), pytest.raises(InvalidArgumentError, match="conv_padding has 1 entries"):
        oprack.nets.img_conv_group(net.outputs[0], [4, 5], 2, conv_padding=[1])


# Errors ---------------------------------------------------------------------------------------------------------------
BAD_CALLS = [
    (lambda x: layers.fc(layers.data("y", [None, None]), 3), r"fc: input 'y' has shape \[-1, -1\]; dims from 1 on"),
    (lambda x: layers.fc(x, "3"), "fc: size is '3'"),
    (lambda x: layers.fc(x, 3, num_flatten_dims=4), "num_flatten_dims is 4"),
    (lambda x: layers.fc(x, 3, act="rellu"), "act|rellu"),
    (lambda x: layers.embedding(x, [3, 4]), r"embedding: input \(variable 'x'\) is float32; expected int16 or"),
    (lambda x: layers.embedding(layers.data("i", [1], "int64"), 3), "size is 3; expected"),
    (lambda x: layers.conv2d(x, 4, 3, groups=2), "groups is 2; expected a divisor of the 3 channels"),
    (lambda x: layers.conv2d(x, 4, [3]), r"filter_size is \[3\]; expected an int or 2 ints"),
    (lambda x: layers.conv2d(x, 4, 3, padding="FULL"), "padding is 'FULL'; expected 'SAME', 'VALID' or numbers"),
    (lambda x: layers.conv2d(layers.fc(x, 3), 4, 3), r"has shape \[-1, 3\] and data_format is 'NCHW'; expected 4 dims"),
    (lambda x: layers.conv2d_transpose(x, 4), "filter_size is not given"),
    (lambda x: layers.pool2d(x, 2, "mean"), "pool_type is 'mean'"),
    (lambda x: layers.batch_norm(x, data_layout="CHW"), "data_layout is 'CHW'"),
    (lambda x: layers.layer_norm(x, begin_norm_axis=4), "begin_norm_axis is 4"),
    (lambda x: layers.dropout(x, 1.5), "dropout_prob is 1.5"),
    (lambda x: layers.image_resize(x), "one of out_shape and scale"),
    (lambda x: layers.image_resize(x, [5]), r"out_shape is \[5\]; expected 2 sizes"),
    (lambda x: layers.cross_entropy(x, x), r"label \(variable 'x'\) is float32; expected int32 or int64"),
    (lambda x: layers.prelu(x, "row"), "mode is 'row'"),
]


@pytest.mark.parametrize(("build", "text"), BAD_CALLS)
def test_bad_calls(build, text):
    with oprack.program_guard(oprack.Program(), oprack.Program()), oprack.unique_name.guard():
        x = layers.data("x", [None, 3, 8, 8])
        with pytest.raises((InvalidArgumentError, oprack.errors.UnknownOpError), match=text):
            build(x)


def test_parameters_of_a_layer_can_be_given():
    w = normal(3, 2)
    attr = ParamAttr(initializer=NumpyArrayInitializer(w), trainable=False)
    net = Built(lambda x: layers.fc(x, 2, param_attr=attr, bias_attr=False), x=normal(4, 3))
    np.testing.assert_array_equal(net["fc_0.w_0"], w)
    assert net.main.all_parameters()[0].stop_gradient


def test_a_network_survives_serialization(tmp_path):
    from oprack.io import load_inference_model, save_inference_model

    x = normal(2, 1, 8, 8)

    def build(x):
        y = layers.batch_norm(layers.conv2d(x, 4, 3, act="relu"))
        return layers.fc(layers.pool2d(y, 2, "max", 2), 10, act="softmax")

    net = Built(build, x=x)
    (expected,) = net.run(net.main.clone(for_test=True))
    save_inference_model(tmp_path / "net", net.main, ["x"], [net.outputs[0].name], net.scope)
    scope = oprack.Scope()
    model = load_inference_model(tmp_path / "net", scope)
    (found,) = oprack.Executor().run(model.program, feed={"x": x}, scope=scope)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
