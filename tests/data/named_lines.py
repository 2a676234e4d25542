"""Lines that run in Paddle 2 and in oprack alike: tests/oracle/record_named_lines.py records what Paddle gives.

`P` is the library, `F` its nn.functional, `nn` its nn, `lr` its optimizer.lr, and `t` makes a tensor of an array.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def arrays() -> dict[str, np.ndarray]:
    """The inputs, by the names under which the lines know them."""
    r = np.random.default_rng(7)

    def normal(*sizes: int) -> np.ndarray:
        return r.normal(size=sizes).astype("float32")

    return {
        "x": normal(3, 4),
        "y": normal(3, 4),
        "probs": r.uniform(0.05, 0.95, (3, 4)).astype("float32"),
        "line": normal(2, 3, 8),
        "img": normal(2, 3, 6, 6),
        "vol": normal(1, 2, 4, 4, 4),
        "w1": normal(4, 3, 3),
        "w2": normal(4, 3, 3, 3),
        "w3": normal(3, 2, 2, 2, 2),
        "t1": normal(3, 4, 3),
        "t2": normal(3, 4, 3, 3),
        "bias": normal(4),
        "labels": np.array([0, 3, 1]),
        "signs": np.array([1.0, -1.0, 1.0], "float32"),
        "weights": np.array([1.0, 2.0, 0.5, 3.0], "float32"),
        "logits": normal(5, 2, 4),
        "targets": np.array([[1, 2], [3, 0]], "int32"),
        "theta": normal(2, 2, 3),
    }


LINES = """
F.conv1d(line, w1, bias, stride=2, padding=1)
F.conv1d(line, w1, padding="SAME", dilation=2)
F.conv2d(img, w2, bias, padding=[1, 2])
F.conv3d(vol, w3, padding=1, stride=2)
F.conv1d_transpose(line, t1, bias, stride=2, padding=1, output_padding=1)
F.conv2d_transpose(img, t2, bias, stride=2)
F.max_pool1d(line, 3, stride=2, padding=1)
F.max_pool2d(img, 2, ceil_mode=True)
F.max_pool3d(vol, 2)
F.avg_pool1d(line, 3, stride=2, padding=1)
F.avg_pool2d(img, 3, padding=1, exclusive=False)
F.avg_pool3d(vol, 2, stride=1)
F.adaptive_avg_pool1d(line, 3)
F.adaptive_avg_pool2d(img, [None, 2])
F.adaptive_max_pool2d(img, 4)
F.interpolate(img, scale_factor=2)
F.interpolate(img, size=[9, 4], mode="bilinear")
F.interpolate(img, size=[9, 4], mode="bilinear", align_corners=True)
F.interpolate(img, scale_factor=2, mode="bicubic")
F.interpolate(line, scale_factor=2, mode="linear", data_format="NCW")
F.interpolate(vol, size=[6, 6, 6], mode="trilinear", data_format="NCDHW")
F.interpolate(img, size=[3, 2], mode="area")
F.pad(img, [1, 2, 0, 3])
F.pad(img, [1, 2, 2, 3], mode="reflect")
F.pad(line, [2, 1], mode="replicate", data_format="NCL")
F.pad(x, [1, 0, 2, 1], value=5.0)
F.pixel_shuffle(P.concat([img, img, img, img], axis=1), 2)
F.channel_shuffle(P.concat([img, img], axis=1), 2)
F.unfold(img, 3, strides=2, paddings=1)
F.grid_sample(img, F.affine_grid(theta, [2, 3, 4, 4]))
F.cross_entropy(x, labels)
F.cross_entropy(x, labels, reduction="none")
F.cross_entropy(x, labels, weight=weights)
F.cross_entropy(x, labels, weight=weights, reduction="sum")
F.cross_entropy(x, labels, ignore_index=3)
F.cross_entropy(x, F.softmax(y), soft_label=True)
F.cross_entropy(x, labels, label_smoothing=0.1)
F.nll_loss(F.log_softmax(x), labels, weight=weights)
F.binary_cross_entropy(probs, F.sigmoid(y))
F.smooth_l1_loss(x, y, delta=0.5)
F.kl_div(F.log_softmax(x), F.softmax(y))
F.kl_div(F.log_softmax(x), F.softmax(y), reduction="batchmean")
F.margin_ranking_loss(x, y, P.ones_like(x), margin=0.5)
F.hinge_embedding_loss(x, P.sign(y))
F.cosine_embedding_loss(x, y, signs, margin=0.1)
F.triplet_margin_loss(x, y, -x, swap=True)
F.ctc_loss(logits, targets, t(np.array([5, 4])), t(np.array([2, 1])))
F.ctc_loss(logits, targets, t(np.array([5, 4])), t(np.array([2, 1])), reduction="none")
F.normalize(x)
F.normalize(x, p=1, axis=0)
F.cosine_similarity(x, y)
F.layer_norm(img, [6, 6])
F.prelu(img, weights[:3])
F.glu(x)
F.hardtanh(x, -0.5, 0.5)
F.hardsigmoid(x)
F.hardswish(x)
F.softshrink(x, 0.3)
F.leaky_relu(x, 0.2)
F.elu(x, 0.5)
F.gelu(x, True)
F.log_sigmoid(x)
nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0)(logits).shape
nn.MultiHeadAttention(4, 2)(logits).shape
P.std(x, axis=1)
P.var(x, unbiased=False)
P.median(x, axis=0)
P.norm(x, p=3, axis=1)
P.cumsum(x, axis=1)
P.logsumexp(x, axis=[0, 1])
P.topk(x, 2, axis=0)[1]
P.argsort(x, descending=True)
P.where(x > 0, x, y)
P.take_along_axis(x, t(np.array([[0, 1, 2, 0]])), 0)
P.put_along_axis(x, t(np.array([[0, 1, 2, 0]])), 9.0, 0)
P.repeat_interleave(x, 2, axis=1)
P.roll(x, 1)
P.einsum("ij,kj->ik", x, y)
P.arange(1, 3, 0.5)
P.full([2], 7).dtype == P.arange(3).dtype
P.index_select(x, t(np.array([2, 0])), axis=1)
P.masked_fill(x, x > 0, 0.5)
P.moveaxis(img, 1, 3)
P.unique(labels)
[s for s in rates(lr.OneCycleLR(0.1, 10), 10)]
[s for s in rates(lr.OneCycleLR(0.1, 10, three_phase=True, anneal_strategy="linear"), 10)]
[s for s in rates(lr.CyclicLR(0.1, 0.5, 3, 2), 12)]
[s for s in rates(lr.CyclicLR(0.1, 0.5, 3, mode="triangular2"), 12)]
[s for s in rates(lr.CyclicLR(0.1, 0.5, 3, mode="exp_range", exp_gamma=0.9), 12)]
[s for s in rates(lr.LinearLR(0.1, 4), 6)]
""".strip().split("\n")


def rates(schedule: Any, steps: int) -> list[float]:
    """The learning rate of each step."""
    found = []
    for _ in range(steps):
        found.append(schedule())
        schedule.step()
    return found[: steps - 1]
