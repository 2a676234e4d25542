"""Builds three small networks in Paddle, saves them as inference models and records what Paddle answers.

Their weights are random, so the numbers mean nothing; their programs are those that Paddle writes for a residual
network, a mobile network with gates, and a transformer encoder.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import paddle
from paddle import nn
from paddle.base.proto import framework_pb2

OUT = Path(__file__).parents[1] / "data" / "small_models"


class ConvBN(nn.Layer):
    def __init__(self, c_in, c_out, k, stride=1, groups=1, act=None):
        super().__init__()
        self.conv = nn.Conv2D(c_in, c_out, k, stride, k // 2, groups=groups, bias_attr=False)
        self.bn = nn.BatchNorm2D(c_out)
        self.act = act

    def forward(self, x):
        x = self.bn(self.conv(x))
        return self.act(x) if self.act else x


class Residual(nn.Layer):
    def __init__(self, c_in, c_out, stride):
        super().__init__()
        relu = nn.functional.relu
        self.a = ConvBN(c_in, c_out, 1, act=relu)
        self.b = ConvBN(c_out, c_out, 3, stride, act=relu)
        self.c = ConvBN(c_out, c_out * 2, 1)
        self.short = ConvBN(c_in, c_out * 2, 1, stride)

    def forward(self, x):
        return nn.functional.relu(self.c(self.b(self.a(x))) + self.short(x))


class ResNet(nn.Layer):
    def __init__(self):
        super().__init__()
        self.stem = ConvBN(3, 8, 7, 2, act=nn.functional.relu)
        self.pool = nn.MaxPool2D(3, 2, 1)
        self.body = nn.Sequential(Residual(8, 8, 1), Residual(16, 16, 2))
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        x = nn.functional.adaptive_avg_pool2d(self.body(self.pool(self.stem(x))), 1)
        return nn.functional.softmax(self.head(paddle.flatten(x, 1)))


class Gate(nn.Layer):
    def __init__(self, c):
        super().__init__()
        self.down, self.up = nn.Conv2D(c, c // 4, 1), nn.Conv2D(c // 4, c, 1)

    def forward(self, x):
        s = nn.functional.relu(self.down(nn.functional.adaptive_avg_pool2d(x, 1)))
        return x * nn.functional.hardsigmoid(self.up(s))


class Inverted(nn.Layer):
    def __init__(self, c_in, c_mid, c_out, k, stride, gate):
        super().__init__()
        act = nn.functional.hardswish
        self.expand = ConvBN(c_in, c_mid, 1, act=act)
        self.depth = ConvBN(c_mid, c_mid, k, stride, groups=c_mid, act=act)
        self.gate = Gate(c_mid) if gate else None
        self.project = ConvBN(c_mid, c_out, 1)
        self.skip = stride == 1 and c_in == c_out

    def forward(self, x):
        y = self.depth(self.expand(x))
        y = self.project(self.gate(y) if self.gate else y)
        return x + y if self.skip else y


class MobileNet(nn.Layer):
    def __init__(self):
        super().__init__()
        self.stem = ConvBN(3, 8, 3, 2, act=nn.functional.hardswish)
        self.body = nn.Sequential(
            Inverted(8, 16, 8, 3, 1, True), Inverted(8, 24, 12, 5, 2, False), Inverted(12, 24, 12, 3, 1, True)
        )
        self.drop = nn.Dropout(0.2)
        self.head = nn.Linear(12, 7)

    def forward(self, x):
        x = nn.functional.adaptive_avg_pool2d(self.body(self.stem(x)), 1)
        return self.head(self.drop(paddle.flatten(x, 1)))


class Bert(nn.Layer):
    def __init__(self):
        super().__init__()
        self.word, self.place = nn.Embedding(50, 16), nn.Embedding(12, 16)
        self.norm, self.drop = nn.LayerNorm(16), nn.Dropout(0.1)
        layer = nn.TransformerEncoderLayer(16, 4, 32, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.pool = nn.Linear(16, 16)

    def forward(self, ids, mask):
        places = paddle.cumsum(paddle.ones_like(ids), axis=-1) - 1
        x = self.drop(self.norm(self.word(ids) + self.place(places)))
        attention = paddle.unsqueeze((1.0 - mask) * -1e4, axis=[1, 2])
        y = self.encoder(x, attention)
        return y, paddle.tanh(self.pool(y[:, 0]))


def randomise(model: nn.Layer, rng: np.random.Generator) -> None:
    """Statistics and affine parameters that are not those of a new network."""
    for name, value in [*model.named_parameters(), *model.named_buffers()]:
        shape = tuple(value.shape)
        noise = rng.standard_normal(shape).astype("float32")
        if name.endswith("_variance"):
            value.set_value(0.5 + np.abs(noise))
        elif len(shape) == 1:
            value.set_value(0.3 * noise + (1 if "weight" in name else 0))


def without_call_stacks(file: Path) -> None:
    """Drop the Python lines that made each op: they name this machine's folders."""
    program = framework_pb2.ProgramDesc.FromString(file.read_bytes())
    for block in program.blocks:
        for op in block.ops:
            kept = [a for a in op.attrs if a.name != "op_callstack"]
            del op.attrs[:]
            op.attrs.extend(kept)
    file.write_bytes(program.SerializeToString())


def record(name: str, model: nn.Layer, specs: list, inputs: dict[str, np.ndarray], out: Path) -> None:
    model.eval()
    path = out / name
    paddle.jit.save(model, str(path), input_spec=specs)
    path.with_suffix(".pdiparams.info").unlink(missing_ok=True)
    without_call_stacks(path.with_suffix(".pdmodel"))
    config = paddle.inference.Config(f"{path}.pdmodel", f"{path}.pdiparams")
    config.disable_gpu()
    config.switch_ir_optim(False)
    predictor = paddle.inference.create_predictor(config)
    for key, value in inputs.items():
        predictor.get_input_handle(key).copy_from_cpu(value)
    predictor.run()
    results = {
        f"out{i}": predictor.get_output_handle(n).copy_to_cpu() for i, n in enumerate(predictor.get_output_names())
    }
    np.savez_compressed(path.with_suffix(".npz"), **{f"in/{k}": v for k, v in inputs.items()}, **results)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=OUT)
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    paddle.seed(1)
    rng = np.random.default_rng(1)
    image = paddle.static.InputSpec([None, 3, None, None], "float32", "image")
    pixels = {"image": rng.standard_normal((2, 3, 24, 32)).astype("float32")}
    ids = paddle.static.InputSpec([None, None], "int64", "ids")
    mask = paddle.static.InputSpec([None, None], "float32", "mask")
    words = {"ids": rng.integers(0, 50, (3, 9)), "mask": (np.arange(9) < [[9], [4], [1]]).astype("float32")}
    for name, model, specs, inputs in (
        ("resnet", ResNet(), [image], pixels),
        ("mobilenet", MobileNet(), [image], pixels),
        ("bert", Bert(), [ids, mask], words),
    ):
        randomise(model, rng)
        record(name, model, specs, inputs, out)


if __name__ == "__main__":
    main()
