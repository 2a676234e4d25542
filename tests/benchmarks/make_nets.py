"""Makes the nets that bench_use.py times, which nobody tuned for; run with Paddle's Python (.venv-peers).

Architectures of paddle.vision and some that are written here, with random weights, saved by Paddle 2.6.2 and exported
to ONNX; NAME.json says what a net is fed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import paddle
from paddle import nn
from paddle.nn import functional as F
from paddle.static import InputSpec
from paddle.vision import models
from workloads import NETS


class SqueezeExcite(nn.Layer):
    """Channels scaled by what all places of them say."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.down = nn.Conv2D(channels, channels // 4, 1)
        self.up = nn.Conv2D(channels // 4, channels, 1)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        scale = F.adaptive_avg_pool2d(x, 1)
        return x * F.hardsigmoid(self.up(F.relu(self.down(scale))))


def conv(inputs: int, outputs: int, size: int, stride: int = 1, groups: int = 1, act: Any = nn.ReLU) -> nn.Layer:
    """Convolution, batch_norm and activation."""
    layers = [nn.Conv2D(inputs, outputs, size, stride, size // 2, groups=groups, bias_attr=False)]
    return nn.Sequential(*layers, nn.BatchNorm2D(outputs), act())


class LCNet(nn.Layer):
    """Depthwise separable blocks with hard_swish, squeeze-and-excite in the last ones: PP-LCNet's plan."""

    def __init__(self) -> None:
        super().__init__()
        blocks = [conv(3, 16, 3, 2, act=nn.Hardswish)]
        plan = [(16, 32, 3, 1), (32, 64, 3, 2), (64, 64, 3, 1), (64, 128, 3, 2), (128, 128, 3, 1), (128, 256, 3, 2)]
        plan += [(256, 256, 5, 1)] * 5 + [(256, 512, 5, 2), (512, 512, 5, 1)]
        for inputs, outputs, size, stride in plan:
            blocks.append(conv(inputs, inputs, size, stride, inputs, nn.Hardswish))
            if inputs == 512 or outputs == 512:
                blocks.append(SqueezeExcite(inputs))
            blocks.append(conv(inputs, outputs, 1, act=nn.Hardswish))
        self.blocks = nn.Sequential(*blocks, nn.AdaptiveAvgPool2D(1), nn.Flatten(), nn.Linear(512, 1000))

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return F.softmax(self.blocks(x))


class UNet(nn.Layer):
    """Three levels down and up with concatenation."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.LayerList([conv(3, 16, 3), conv(16, 32, 3), conv(32, 64, 3)])
        self.up = nn.LayerList([conv(96, 32, 3), conv(48, 16, 3)])
        self.head = nn.Conv2D(16, 4, 1)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        kept = []
        for i, block in enumerate(self.down):
            x = block(F.max_pool2d(x, 2) if i else x)
            kept.append(x)
        for i, block in enumerate(self.up):
            x = block(paddle.concat([F.interpolate(x, scale_factor=2, mode="bilinear"), kept[1 - i]], axis=1))
        return self.head(x)


class TextCNN(nn.Layer):
    """Three widths of convolutions over words."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(20000, 128)
        self.convs = nn.LayerList([nn.Conv1D(128, 256, size) for size in (3, 4, 5)])
        self.out = nn.Linear(768, 10)

    def forward(self, ids: paddle.Tensor) -> paddle.Tensor:
        x = self.words(ids).transpose([0, 2, 1])
        return self.out(paddle.concat([F.relu(c(x)).max(axis=2) for c in self.convs], axis=1))


class Recurrent(nn.Layer):
    """Embedding, two bidirectional layers, a classifier of the last step."""

    def __init__(self, cell: type) -> None:
        super().__init__()
        self.words = nn.Embedding(20000, 128)
        self.layers = cell(128, 128, 2, direction="bidirect")
        self.out = nn.Linear(256, 10)

    def forward(self, ids: paddle.Tensor) -> paddle.Tensor:
        return self.out(self.layers(self.words(ids))[0][:, -1])


class Encoder(nn.Layer):
    """Four layers of a transformer encoder."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(20000, 256)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(256, 4, 1024, 0.0, "gelu"), 4)

    def forward(self, ids: paddle.Tensor) -> paddle.Tensor:
        return self.encoder(self.words(ids))[:, 0]


def _image(size: int, channels: int = 3) -> dict[str, Any]:
    return {"shape": [channels, size, size], "dtype": "float32"}


def _words(length: int) -> dict[str, Any]:
    return {"shape": [length], "dtype": "int64", "below": 20000}


NETS_MADE: dict[str, tuple[Callable[[], nn.Layer], dict[str, Any]]] = {
    "lenet": (models.LeNet, _image(28, 1)),
    "lcnet": (LCNet, _image(224)),
    "unet": (UNet, _image(128)),
    **{
        name: (getattr(models, name), _image(96))
        for name in (
            "squeezenet1_1",
            "mobilenet_v1",
            "mobilenet_v3_small",
            "mobilenet_v3_large",
            "shufflenet_v2_x0_5",
            "shufflenet_v2_swish",
            "resnet18",
            "resnext50_32x4d",
            "densenet121",
        )
    },
    "inception_v3": (models.inception_v3, _image(160)),
    "text_cnn": (TextCNN, _words(64)),
    "lstm": (lambda: Recurrent(nn.LSTM), _words(40)),
    "gru": (lambda: Recurrent(nn.GRU), _words(40)),
    "encoder": (Encoder, _words(64)),
}


def save(name: str, build: Callable[[], nn.Layer], given: dict[str, Any]) -> None:
    """Save one net for Paddle and, where paddle2onnx can, as ONNX."""
    if (NETS / f"{name}.json").exists():
        return
    layer = build()
    layer.eval()
    prefix = str(NETS / name)
    paddle.jit.save(layer, prefix, input_spec=[InputSpec([-1, *given["shape"]], given["dtype"], "x")])
    import paddle2onnx

    try:
        paddle2onnx.export(prefix + ".pdmodel", prefix + ".pdiparams", prefix + ".onnx", opset_version=13)
    except Exception as error:
        Path(prefix + ".onnx").unlink(missing_ok=True)
        print(f"{name}: ONNX Runtime is left out: {error}", file=sys.stderr)
    (NETS / f"{name}.json").write_text(json.dumps([given]) + "\n")


def main() -> None:
    """Make what is missing."""
    NETS.mkdir(parents=True, exist_ok=True)
    paddle.seed(0)
    for name, (build, given) in NETS_MADE.items():
        save(name, build, given)


if __name__ == "__main__":
    main()
