"""Saves small nets with Paddle 3, as `inference.json`, and records what Paddle answers.

Their weights are random; each net is there for what stands in its program. Needs paddlepaddle 3, not the 2.6.2 of the
other scripts: `python3 -m venv out/oracle3 && out/oracle3/bin/pip install paddlepaddle==3.3.1`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import _C_ops, inference, nn
from paddle.static import InputSpec

OUT = Path(__file__).parents[2] / "plugins" / "pir" / "tests" / "data"


class Conv(nn.Layer):
    """Convolutions, norms, pools, resizing, and dropout that is off."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2D(3, 8, 3, stride=2, padding=1), nn.BatchNorm2D(8)
        self.depthwise = nn.Conv2D(8, 8, 3, padding=1, groups=8, bias_attr=False)
        self.groups, self.pool = nn.GroupNorm(2, 8), nn.MaxPool2D(2, 2, ceil_mode=True)
        self.up, self.fc = nn.Conv2DTranspose(8, 4, 2, stride=2), nn.Linear(16, 5)

    def forward(self, x):
        y = F.hardswish(self.norm(self.conv(x)))
        y = self.pool(F.silu(self.groups(self.depthwise(y))) + y)
        y = F.leaky_relu(self.up(F.interpolate(y, scale_factor=2, mode="bilinear")))
        y = F.adaptive_avg_pool2d(F.pad(y, [1, 1, 0, 2], mode="reflect"), 2)
        y = F.dropout(y.flatten(1), 0.3, training=self.training)
        return F.softmax(self.fc(y)), y.mean(axis=[1], keepdim=True)


class Lstm(nn.Layer):
    """Recurrent nets in both directions, with lengths."""

    def __init__(self):
        super().__init__()
        self.words, self.lstm = nn.Embedding(20, 6, padding_idx=0), nn.LSTM(6, 5, num_layers=2, direction="bidirect")
        self.gru, self.fc = nn.GRU(10, 4), nn.Linear(4, 3)

    def forward(self, ids, length):
        y, (h, _) = self.lstm(self.words(ids), sequence_length=length)
        z, _ = self.gru(y)
        return F.log_softmax(self.fc(z)), h, z.argmax(-1)


class Encoder(nn.Layer):
    """A transformer encoder over open dims."""

    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(30, 16), nn.Embedding(12, 16)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32, activation="gelu"), 2)
        self.norm, self.fc = nn.LayerNorm(16), nn.Linear(16, 7)

    def forward(self, ids):
        x = self.words(ids) + self.places(paddle.arange(ids.shape[1]).unsqueeze(0))
        mask = (1 - (ids != 0).astype("float32").unsqueeze([1, 2])) * -1e4
        y = self.encoder(x, mask)
        values, places = paddle.topk(self.fc(self.norm(y)), 3)
        return y[:, 0].tanh(), values, places, paddle.concat([y.max(1), y.min(1)], -1)


class Detector(nn.Layer):
    """Boxes, a loop with a branch in it, and non-maximum suppression."""

    def __init__(self):
        super().__init__()
        self.conv, self.classes, self.boxes = nn.Conv2D(3, 6, 3, 4, 1), nn.Conv2D(6, 4, 1), nn.Conv2D(6, 4, 1)

    def forward(self, x, n):
        features = F.relu(self.conv(x))
        scores = F.sigmoid(self.classes(features)).flatten(2)
        sizes = paddle.exp(self.boxes(features) * 0.1).flatten(2).transpose([0, 2, 1])
        i = paddle.zeros([1], "int32")
        while i < n:
            if (i % 2) == 0:
                sizes = sizes * 1.5
            else:
                sizes = sizes + 0.25
            i = i + 1
        corners = paddle.cumsum(sizes[:, :, :2], 1)
        boxes = paddle.concat([corners, corners + sizes[:, :, 2:]], -1)
        found, _, counts = _C_ops.multiclass_nms3(boxes, scores, None, 0.1, 50, 20, 0.5, True, 1.0, -1)
        return found, counts, sizes


class Greedy(nn.Layer):
    """A decoder: a loop that writes an array."""

    def __init__(self):
        super().__init__()
        self.words, self.cell, self.fc = nn.Embedding(9, 4), nn.GRUCell(4, 6), nn.Linear(6, 9)

    def forward(self, h, steps):
        word, chosen, i = paddle.zeros([h.shape[0]], "int64"), [], paddle.zeros([], "int64")
        while i < steps:
            _, h = self.cell(self.words(word), h)
            word = self.fc(h).argmax(-1)
            chosen.append(word)
            i = i + 1
        return paddle.stack(chosen, 0), h


class Swap(nn.Layer):
    """A loop whose values change places, and a loop and a branch within it."""

    def forward(self, a, b, n):
        i = paddle.zeros([1], "int32")
        while i < n:
            a, b = b, a + b
            j = paddle.zeros([1], "int32")
            while j < i:
                if a.sum() > 3:
                    a = a - 0.5
                    b = b * 0.9
                j = j + 1
            i = i + 1
        return a, b


class Inplace(nn.Layer):
    """Ops that overwrite what others read."""

    def forward(self, x):
        y = x * 1.0
        y.add_(x)
        y.scale_(2.0)
        z = y
        y.exp_()
        w = paddle.zeros_like(x)
        paddle.assign(y, w)
        w[0] = 5
        w[:, 1] = x[:, 0]
        k = paddle.zeros([1], "int64")
        paddle.increment(k)
        return y + 0, z * 1, w, k + 0


class Calls(nn.Layer):
    """Ops whose form in PIR differs from that of Fluid: sizes from tensors, dtypes, slices backwards."""

    def forward(self, x, image, flags, i):
        high, wide = paddle.shape(image)[2], paddle.shape(image)[3]
        return [
            F.interpolate(image, size=[high * 2, wide], mode="bilinear"),
            x[:, 1:, ::-1],
            x[flags],
            x[:, i],
            paddle.slice(x, [1, 2], [0, paddle.shape(x)[0] - 2], [2, 3]),
            paddle.split(x.reshape([x.shape[0], -1]), [2, -1], 1)[1],
            paddle.arange(0, 10, 3),
            paddle.linspace(0, 1, 5),
            paddle.assign(np.arange(4).astype("float32")),
            paddle.full([2], True, "bool"),
            paddle.zeros_like(x, dtype="int64"),
            paddle.clip(x, -1.0, paddle.full([1], 0.5)),
            F.one_hot(i, 6),
            paddle.unique(i),
            paddle.concat([x, x], axis=paddle.to_tensor(1)),
            paddle.tile(x, [paddle.shape(x)[0], 1, 1]),
            paddle.max(x),
            x.sum(0, keepdim=True),
            paddle.tril(x) + paddle.triu(x, 1),
            F.max_pool2d(image, 2, 2, return_mask=True)[1],
            paddle.einsum("bij,bkj->bik", x, x),
            paddle.unbind(x, 1)[1],
        ]


class Recogniser(nn.Layer):
    """What PP-OCR reads lines of text with: depthwise convolutions, gates, attention over columns, a head for CTC."""

    def __init__(self):
        super().__init__()
        self.stem, self.norm = nn.Conv2D(3, 8, 3, 2, 1, bias_attr=False), nn.BatchNorm2D(8)
        self.wide = nn.Conv2D(8, 8, 3, (2, 1), 1, groups=8, bias_attr=False)
        self.gate, self.point = nn.Sequential(nn.Conv2D(8, 2, 1), nn.ReLU(), nn.Conv2D(2, 8, 1)), nn.Conv2D(8, 16, 1)
        self.before, self.qkv, self.out = nn.LayerNorm(16), nn.Linear(16, 48), nn.Linear(16, 16)
        self.after, self.up, self.down = nn.LayerNorm(16), nn.Linear(16, 32), nn.Linear(32, 16)
        self.head = nn.Linear(16, 11)

    def forward(self, x):
        x = F.hardswish(self.norm(self.stem(x)))
        x = F.hardswish(self.wide(x))
        x = x * F.hardsigmoid(self.gate(F.adaptive_avg_pool2d(x, 1)), slope=0.2, offset=0.5)
        x = F.avg_pool2d(self.point(x), [3, 2])
        x = x.squeeze(2).transpose([0, 2, 1])
        q, k, v = self.qkv(self.before(x)).reshape([0, -1, 3, 4, 4]).transpose([2, 0, 3, 1, 4])
        weights = F.softmax(paddle.matmul(q * 0.5, k, transpose_y=True))
        x = x + self.out(paddle.matmul(weights, v).transpose([0, 2, 1, 3]).flatten(2))
        x = x + self.down(F.swish(self.up(self.after(x))))
        scores = F.softmax(self.head(x), axis=2)
        return scores, scores.argmax(-1)


class Masked(nn.Layer):
    """Places of a mask are filled: with an infinity before a softmax, with a number that only a run knows, in place."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x, mask, value):
        y = self.fc(x)
        scores = paddle.masked_fill(y, mask, float("-inf"))
        z = x * 1.0
        z.masked_fill_(mask, 7.0)
        counts = paddle.masked_fill((x * 3).astype("int64"), mask, -1)
        return F.softmax(scores), paddle.masked_fill(y, mask, value), z + 0, counts


def nets() -> dict:
    """Name -> the net, its inputs as (name, shape), and arrays for them."""
    random = np.random.RandomState(3)

    def floats(*shape):
        return np.asarray(random.randn(*shape), "float32")

    ids = np.array([[3, 4, 5, 0, 0], [7, 8, 9, 10, 11]])
    return {
        "conv": (Conv, {"image": [None, 3, None, None]}, [floats(2, 3, 21, 22)]),
        "lstm": (Lstm, {"ids": [None, None], "length": [None]}, [random.randint(0, 20, (3, 7)), np.array([7, 3, 5])]),
        "encoder": (Encoder, {"ids": [None, None]}, [ids]),
        "detector": (Detector, {"image": [None, 3, 32, 32], "n": [1]}, [floats(2, 3, 32, 32), np.array([3], "int32")]),
        "greedy": (Greedy, {"h": [None, 6], "steps": []}, [floats(3, 6), np.array(4)]),
        "swap": (
            Swap,
            {"a": [None, 2], "b": [None, 2], "n": [1]},
            [floats(2, 2), floats(2, 2), np.array([5], "int32")],
        ),
        "inplace": (Inplace, {"x": [2, 3]}, [floats(2, 3)]),
        "calls": (
            Calls,
            {"x": [3, 3, 4], "image": [2, 3, 5, 6], "flags": [3, 3, 4], "i": [None]},
            [floats(3, 3, 4), floats(2, 3, 5, 6), floats(3, 3, 4) > 0, np.array([2, 0, 1, 1])],
        ),
        "recogniser": (Recogniser, {"image": [None, 3, 12, None]}, [floats(2, 3, 12, 40)]),
        "masked": (
            Masked,
            {"x": [None, 3, 4], "mask": [3, 4], "value": []},
            [floats(2, 3, 4), np.array([[0, 1, 0, 1], [1, 0, 0, 0], [0, 0, 0, 0]], bool), floats()],
        ),
    }


def record(name: str, net: nn.Layer, shapes: dict, feeds: list[np.ndarray]) -> None:
    """Save one net, run it as Paddle's users do, and write inputs and outputs."""
    folder = OUT / name
    folder.mkdir(parents=True, exist_ok=True)
    specs = [InputSpec(shape, str(array.dtype), key) for (key, shape), array in zip(shapes.items(), feeds, strict=True)]
    paddle.jit.save(paddle.jit.to_static(net, input_spec=specs), str(folder / "inference"))
    params = folder / "inference.pdiparams"
    given = dict(zip(shapes, feeds, strict=True))
    if params.exists():
        config = inference.Config(str(folder / "inference.json"), str(params))
        config.disable_gpu()
        config.disable_mkldnn()
        predictor = inference.create_predictor(config)
        for key in predictor.get_input_names():
            predictor.get_input_handle(key).copy_from_cpu(np.ascontiguousarray(given[key]))
        predictor.run()
        outputs = [predictor.get_output_handle(key).copy_to_cpu() for key in predictor.get_output_names()]
    else:  # Paddle's predictor does not take a model without parameters
        found = paddle.jit.load(str(folder / "inference"))(*map(paddle.to_tensor, feeds))
        outputs = [tensor.numpy() for tensor in found]
    inputs = {f"in/{key}": array for key, array in given.items()}
    np.savez_compressed(folder / "io.npz", **inputs, **{f"out/{i}": array for i, array in enumerate(outputs)})
    print(name, [array.shape for array in outputs])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="*", help="names of nets; default: all")
    wanted = parser.parse_args().only
    for name, (make, shapes, feeds) in nets().items():
        if not wanted or name in wanted:
            paddle.seed(7)
            net = make()
            net.eval()
            for buffer in net.buffers():
                if "_mean" in buffer.name:
                    buffer.set_value(paddle.linspace(-0.1, 0.1, buffer.shape[0]))
            record(name, net, shapes, feeds)


if __name__ == "__main__":
    main()
