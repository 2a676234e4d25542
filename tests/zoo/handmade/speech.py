"""Speech: an acoustic model with CTC, and a vocoder's core."""

from __future__ import annotations

from typing import Any

import paddle
import paddle.nn.functional as F
from paddle import nn


class LstmCtc(nn.Layer):
    """Features to labels by convolutions over time, recurrent layers, and the best path of CTC."""

    def __init__(self, features: int = 20, size: int = 24, labels: int = 12) -> None:
        super().__init__()
        self.conv = nn.Conv1D(features, size, 3, stride=2, padding=1)
        self.norm = nn.LayerNorm(size)
        self.lstm = nn.LSTM(size, size, num_layers=2, direction="bidirect")
        self.out = nn.Linear(2 * size, labels)

    def forward(self, features: Any, lengths: Any) -> Any:
        x = F.relu(self.conv(features.transpose([0, 2, 1]))).transpose([0, 2, 1])
        lengths = (lengths + 1) // 2
        x, _ = self.lstm(self.norm(x), sequence_length=lengths)
        scores = F.log_softmax(self.out(x))
        best = scores.argmax(-1)
        before = paddle.concat([paddle.full_like(best[:, :1], -1), best[:, :-1]], axis=1)
        places = paddle.arange(best.shape[1]).unsqueeze(0)
        said = (best != before).logical_and(best != 0).logical_and(places < lengths.unsqueeze(1))
        return scores, paddle.where(said, best, paddle.zeros_like(best)), said.astype("int64").sum(1)


class GatedConvs(nn.Layer):
    """Dilated convolutions with gates and skips."""

    def __init__(self, channels: int = 16, layers: int = 6, features: int = 8) -> None:
        super().__init__()
        self.first = nn.Conv1D(features, channels, 1)
        self.pairs = nn.LayerList(
            [nn.Conv1D(channels, 2 * channels, 3, padding=2**i, dilation=2**i) for i in range(layers)]
        )
        self.skips = nn.LayerList([nn.Conv1D(channels, channels, 1) for _ in range(layers)])
        self.last = nn.Conv1D(channels, 1, 1)

    def forward(self, x: Any) -> Any:
        x = self.first(x)
        total = paddle.zeros_like(x)
        for conv, skip in zip(self.pairs, self.skips):  # noqa: B905 - to_static knows no other arguments of zip
            a, b = paddle.split(conv(x), 2, axis=1)
            y = skip(paddle.tanh(a) * F.sigmoid(b))
            total, x = total + y, x + y
        return paddle.tanh(self.last(F.relu(total)))
