"""Makes the models that bench_models.py times; run with Paddle's Python (.venv-peers).

ResNet-50, MobileNetV2 and a BERT-base encoder with random weights and chains of tiny ops, saved by Paddle 2.6.2 and
exported to ONNX; the ONNX twins of PP-OCRv4 are taken from the distribution rapidocr-onnxruntime.
"""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import paddle
from paddle.static import InputSpec
from workloads import CHAIN_LENGTHS, MODELS


class Bert(paddle.nn.Layer):
    """Encoder of BERT base: 12 layers, 768 wide, 12 heads; returns the vector of the first token."""

    def __init__(self) -> None:
        super().__init__()
        self.words = paddle.nn.Embedding(30522, 768)
        self.places = paddle.nn.Embedding(512, 768)
        self.norm = paddle.nn.LayerNorm(768)
        layer = paddle.nn.TransformerEncoderLayer(768, 12, 3072, dropout=0.0, activation="gelu")
        self.encoder = paddle.nn.TransformerEncoder(layer, 12)

    def forward(self, ids: paddle.Tensor) -> paddle.Tensor:
        places = paddle.arange(ids.shape[1]).unsqueeze(0)
        return self.encoder(self.norm(self.words(ids) + self.places(places)))[:, 0]


class TinyOps(paddle.nn.Layer):
    """Element-wise ops on 4x8 floats: scale, relu, add of itself, in turns; one parameter, as Paddle's loader
    wants a parameter file.
    """

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count
        self.shift = self.create_parameter([4, 8])

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        x = x + self.shift * 0.0
        for i in range(self.count):
            kind = i % 3
            x = paddle.scale(x, 0.5) if kind == 0 else paddle.nn.functional.relu(x) if kind == 1 else x + x
        return x


def save(name: str, layer: paddle.nn.Layer, spec: InputSpec) -> None:
    """Save for Paddle and as ONNX."""
    layer.eval()
    prefix = MODELS / name
    if not prefix.with_name(name + ".pdmodel").exists():
        paddle.jit.save(layer, str(prefix), input_spec=[spec])
    onnx = prefix.with_name(name + ".onnx")
    if not onnx.exists():
        import paddle2onnx

        files = [str(prefix) + suffix for suffix in (".pdmodel", ".pdiparams")]
        exists = Path(files[1]).exists()
        paddle2onnx.export(files[0], files[1] if exists else "", str(onnx), opset_version=13)


def main() -> None:
    """Make what is missing."""
    MODELS.mkdir(parents=True, exist_ok=True)
    paddle.seed(0)
    image = InputSpec([-1, 3, 224, 224], "float32", "x")
    save("resnet50", paddle.vision.models.resnet50(), image)
    save("mobilenet_v2", paddle.vision.models.mobilenet_v2(), image)
    save("bert_base", Bert(), InputSpec([-1, 128], "int64", "ids"))
    for count in CHAIN_LENGTHS:
        save(f"tiny_ops_{count}", TinyOps(count), InputSpec([4, 8], "float32", "x"))
    found = importlib.util.find_spec("rapidocr_onnxruntime")
    if found and found.origin:
        shutil.copytree(Path(found.origin).parent / "models", MODELS / "ppocr", dirs_exist_ok=True)


if __name__ == "__main__":
    main()
