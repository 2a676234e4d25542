"""Text in pictures: where it is, what it says, and tables."""

from __future__ import annotations

from typing import Any

import paddle
import paddle.nn.functional as F
from paddle import nn


class Conv(nn.Sequential):
    """Convolution, batch norm, ReLU."""

    def __init__(self, c_in: int, c_out: int, stride: Any = 1, kernel: int = 3) -> None:
        super().__init__(
            nn.Conv2D(c_in, c_out, kernel, stride, kernel // 2, bias_attr=False), nn.BatchNorm2D(c_out), nn.ReLU()
        )


class Crnn(nn.Layer):
    """Recognition by convolutions and a bidirectional LSTM over the columns."""

    def __init__(self, size: int = 32, labels: int = 40) -> None:
        super().__init__()
        self.body = nn.Sequential(
            Conv(3, 16), nn.MaxPool2D(2, 2), Conv(16, size), nn.MaxPool2D(2, 2), Conv(size, size, (2, 1)),
            Conv(size, size, (2, 1)), Conv(size, size, (2, 1)),
        )  # fmt: skip
        self.lstm = nn.LSTM(size, size, num_layers=2, direction="bidirect")
        self.out = nn.Linear(2 * size, labels)

    def forward(self, x: Any) -> Any:
        x = self.body(x).squeeze(2).transpose([0, 2, 1])
        x, _ = self.lstm(x)
        return F.softmax(self.out(x))


class Db(nn.Layer):
    """Detection by differentiable binarisation: a pyramid of features, and maps of shrunk text and of thresholds."""

    def __init__(self, size: int = 32) -> None:
        super().__init__()
        self.steps = nn.LayerList([Conv(3, 16, 4), Conv(16, 24, 2), Conv(24, 32, 2), Conv(32, 48, 2)])
        self.lateral = nn.LayerList([nn.Conv2D(c, size, 1, bias_attr=False) for c in (16, 24, 32, 48)])
        self.smooth = nn.LayerList([nn.Conv2D(size, size // 4, 3, padding=1, bias_attr=False) for _ in range(4)])
        self.heads = nn.LayerList([self._head(size), self._head(size)])

    @staticmethod
    def _head(size: int) -> nn.Layer:
        middle = size // 4
        return nn.Sequential(
            Conv(size, middle), nn.Conv2DTranspose(middle, middle, 2, 2), nn.BatchNorm2D(middle), nn.ReLU(),
            nn.Conv2DTranspose(middle, 1, 2, 2), nn.Sigmoid(),
        )  # fmt: skip

    def forward(self, x: Any) -> Any:
        found = []
        for step in self.steps:
            x = step(x)
            found.append(x)
        levels = [lateral(y) for lateral, y in zip(self.lateral, found)]  # noqa: B905 - see to_static
        for i in range(2, -1, -1):
            levels[i] = levels[i] + F.upsample(levels[i + 1], scale_factor=2, mode="nearest", align_mode=1)
        maps = []
        for i in range(4):
            maps.append(F.upsample(self.smooth[i](levels[i]), scale_factor=2**i, mode="nearest", align_mode=1))
        y = paddle.concat(maps[::-1], axis=1)
        shrunk, threshold = self.heads[0](y), self.heads[1](y)
        # DB has a factor of 50, by which maps of random weights would be 0 everywhere
        return shrunk, 1 / (1 + paddle.exp(-5 * (shrunk - threshold)))


class TableAttention(nn.Layer):
    """The structure of a table: a GRU attends to the picture, and says a token and a box in each round."""

    def __init__(self, size: int = 24, tokens: int = 10, most: int = 8) -> None:
        super().__init__()
        self.body = nn.Sequential(Conv(3, 16, 4), Conv(16, size, 4))
        self.cell = nn.GRUCell(size + tokens, size)
        self.keys, self.query, self.score = nn.Linear(size, size), nn.Linear(size, size), nn.Linear(size, 1)
        self.token, self.box = nn.Linear(size, tokens), nn.Linear(size, 4)
        self.tokens, self.most = tokens, most

    def forward(self, x: Any) -> Any:
        y = self.body(x).flatten(2).transpose([0, 2, 1])
        keys = self.keys(y)
        state = y.mean(1)
        token = paddle.zeros([paddle.shape(x)[0]], "int64")
        tokens = paddle.zeros([paddle.shape(x)[0], self.most], "int64")
        boxes = paddle.zeros([paddle.shape(x)[0], self.most, 4])
        i = paddle.zeros([1], "int64")
        running = paddle.ones([1], "bool")
        while running:
            weights = F.softmax(self.score(paddle.tanh(keys + self.query(state).unsqueeze(1))), axis=1)
            seen = (weights * y).sum(1)
            state, _ = self.cell(paddle.concat([seen, F.one_hot(token, self.tokens)], -1), state)
            token = self.token(state).argmax(-1)
            place = F.one_hot(i, self.most)
            tokens = tokens + token.unsqueeze(1) * place.astype("int64")
            boxes = boxes + F.sigmoid(self.box(state)).unsqueeze(1) * place.unsqueeze(-1)
            i = i + 1
            running = (i < self.most).logical_and((token != self.tokens - 1).any())
        return tokens, boxes, i


class Svtr(nn.Layer):
    """Recognition by attention among neighbours, then among all columns."""

    def __init__(self, size: int = 32, labels: int = 40) -> None:
        super().__init__()
        self.patches = nn.Sequential(Conv(3, 16, 2), Conv(16, size, 2))
        self.local = nn.Conv2D(size, size, 3, padding=1, groups=8)
        layer = nn.TransformerEncoderLayer(size, 4, 64, dropout=0.0, activation="gelu", normalize_before=True)
        self.mix = nn.TransformerEncoder(layer, 2)
        self.norm, self.out = nn.LayerNorm(size), nn.Linear(size, labels)

    def forward(self, x: Any) -> Any:
        y = self.patches(x)
        y = y + F.gelu(self.local(y))
        wide = paddle.shape(y)[3]
        y = self.mix(y.flatten(2).transpose([0, 2, 1]))
        y = y.transpose([0, 2, 1]).reshape([0, 32, -1, wide])
        y = F.hardswish(y.mean(2)).transpose([0, 2, 1])
        return F.softmax(self.out(self.norm(y)))
