"""Makes the training programs that bench_models.py times; run with Paddle's Python (.venv-peers).

Each program is forward, backward and optimizer as Paddle 2.6.2 writes them, with initial parameters and one batch.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import paddle
from paddle import static
from workloads import TRAINING

paddle.enable_static()
Built = tuple[Any, dict[str, np.ndarray], dict[str, list[list[int]]], Any]


def lenet(rng: np.random.Generator) -> Built:
    """LeNet with batch_norm on 64 images of 28x28, Momentum."""
    x, y = static.data("x", [-1, 1, 28, 28]), static.data("y", [-1, 1], "int64")
    h = static.nn.conv2d(x, 6, 5, padding=2, bias_attr=False)
    h = paddle.nn.functional.max_pool2d(static.nn.batch_norm(h, act="relu"), 2, 2)
    h = static.nn.conv2d(h, 16, 5, bias_attr=False)
    h = paddle.nn.functional.max_pool2d(static.nn.batch_norm(h, act="relu"), 2, 2)
    for size in (120, 84):
        h = static.nn.fc(h, size, activation="relu")
    logits = static.nn.fc(h, 10)
    loss = paddle.mean(paddle.nn.functional.softmax_with_cross_entropy(logits, y))
    feed = {"x": rng.standard_normal((64, 1, 28, 28), np.float32), "y": rng.integers(0, 10, (64, 1))}
    return loss, feed, {}, paddle.optimizer.Momentum(0.01)


def resnet18(rng: np.random.Generator) -> Built:
    """ResNet-18 on 16 images of 32x32, Momentum."""
    x, y = static.data("x", [-1, 3, 32, 32]), static.data("y", [-1, 1], "int64")
    logits = paddle.vision.models.resnet18(num_classes=10)(x)
    loss = paddle.mean(paddle.nn.functional.softmax_with_cross_entropy(logits, y))
    feed = {"x": rng.standard_normal((16, 3, 32, 32), np.float32), "y": rng.integers(0, 10, (16, 1))}
    return loss, feed, {}, paddle.optimizer.Momentum(0.01)


def bert_small(rng: np.random.Generator) -> Built:
    """4 encoder layers, 256 wide, on 8 sentences of 64 tokens, Adam."""
    ids, y = static.data("ids", [-1, 64], "int64"), static.data("y", [-1, 1], "int64")
    words = paddle.nn.Embedding(8000, 256)(ids)
    layer = paddle.nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, activation="gelu")
    h = paddle.nn.TransformerEncoder(layer, 4)(words)[:, 0]
    loss = paddle.mean(paddle.nn.functional.softmax_with_cross_entropy(paddle.nn.Linear(256, 2)(h), y))
    feed = {"ids": rng.integers(0, 8000, (8, 64)), "y": rng.integers(0, 2, (8, 1))}
    return loss, feed, {}, paddle.optimizer.Adam(1e-3)


def tagger(rng: np.random.Generator) -> Built:
    """Embedding, two bidirectional GRUs and a CRF on 32 sentences of 5 to 60 characters (LoD), Adam."""
    helper = paddle.base.layer_helper.LayerHelper("tagger")
    words = static.data("words", [-1, 1], "int64", lod_level=1)
    tags = static.data("tags", [-1, 1], "int64", lod_level=1)
    h = static.nn.embedding(words, [5000, 64])
    h = paddle.reshape(h, [-1, 64])

    def gru(x: Any, reverse: bool) -> Any:
        gates = static.nn.fc(x, 64 * 3)
        weight = helper.create_parameter(None, [64, 192], "float32")
        bias = helper.create_parameter(None, [1, 192], "float32", is_bias=True)
        out = {s: helper.create_variable_for_type_inference("float32")
               for s in ("Hidden", "BatchGate", "BatchResetHiddenPrev", "BatchHidden")}  # fmt: skip
        inputs = {"Input": gates, "Weight": weight, "Bias": bias}
        helper.append_op(type="gru", inputs=inputs, outputs=out, attrs={"is_reverse": reverse})
        return out["Hidden"]

    for _ in range(2):
        h = paddle.concat([gru(h, False), gru(h, True)], axis=1)
    emission = static.nn.fc(h, 40)
    transition = helper.create_parameter(None, [42, 40], "float32")
    out = {s: helper.create_variable_for_type_inference("float32")
           for s in ("Alpha", "EmissionExps", "TransitionExps", "LogLikelihood")}  # fmt: skip
    inputs = {"Emission": emission, "Transition": transition, "Label": tags}
    helper.append_op(type="linear_chain_crf", inputs=inputs, outputs=out, attrs={})
    loss = paddle.mean(out["LogLikelihood"])
    lengths = rng.integers(5, 61, 32)
    total, lod = int(lengths.sum()), [[0, *np.cumsum(lengths).tolist()]]
    feed = {"words": rng.integers(0, 5000, (total, 1)), "tags": rng.integers(0, 40, (total, 1))}
    return loss, feed, {"words": lod, "tags": lod}, paddle.optimizer.Adam(1e-3)


def sparse_embedding(rng: np.random.Generator) -> Built:
    """Sum of 128 x 20 rows of a table of 200,000 x 32 with sparse gradients, SGD."""
    ids, y = static.data("ids", [-1, 20], "int64"), static.data("y", [-1, 1])
    h = paddle.sum(static.nn.embedding(ids, [200_000, 32], is_sparse=True), axis=1)
    loss = paddle.mean(paddle.square(static.nn.fc(h, 1) - y))
    feed = {"ids": rng.integers(0, 200_000, (128, 20)), "y": rng.standard_normal((128, 1), np.float32)}
    return loss, feed, {}, paddle.optimizer.SGD(0.1)


def lstm(rng: np.random.Generator) -> Built:
    """An LSTM of 128 over 32 sentences of 40 words that are 128 wide, and two classes of its last step, Adam."""
    ids, y = static.data("ids", [32, 40], "int64"), static.data("y", [-1, 1], "int64")
    h, _ = paddle.nn.LSTM(128, 128)(paddle.nn.Embedding(5000, 128)(ids))
    loss = paddle.mean(paddle.nn.functional.softmax_with_cross_entropy(paddle.nn.Linear(128, 2)(h[:, -1]), y))
    feed = {"ids": rng.integers(0, 5000, (32, 40)), "y": rng.integers(0, 2, (32, 1))}
    return loss, feed, {}, paddle.optimizer.Adam(1e-3)


def save(build: Callable[[np.random.Generator], Built]) -> None:
    """Program, parameters after the startup program, feeds."""
    folder = TRAINING / build.__name__
    if (folder / "meta.json").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    paddle.seed(0)
    main, startup, scope = static.Program(), static.Program(), static.Scope()
    with static.scope_guard(scope), static.program_guard(main, startup):
        loss, feed, lods, optimizer = build(np.random.default_rng(0))
        optimizer.minimize(loss)
        static.Executor(paddle.CPUPlace()).run(startup)
        names = [v.name for v in main.list_vars() if v.persistable]
        values = {n: np.array(scope.find_var(n).get_tensor()) for n in names if scope.find_var(n)}
    (folder / "main.pdmodel").write_bytes(main.desc.serialize_to_string())
    np.savez(folder / "init.npz", **values)
    np.savez(folder / "feeds.npz", **feed)
    (folder / "meta.json").write_text(json.dumps({"loss": loss.name, "lods": lods}))


def main() -> None:
    """Make what is missing."""
    for build in (lenet, resnet18, bert_small, lstm, tagger, sparse_embedding):
        save(build)


if __name__ == "__main__":
    main()
