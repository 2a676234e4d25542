"""Graph nets: messages along edges by `send_u_recv` and its relatives."""

from __future__ import annotations

from typing import Any

import paddle
import paddle.nn.functional as F
from paddle import geometric, nn


class Gcn(nn.Layer):
    """Two graph convolutions, normalised by degrees."""

    def __init__(self, features: int = 8, size: int = 16, classes: int = 4) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(features, size), nn.Linear(size, classes)

    def spread(self, x: Any, source: Any, target: Any) -> Any:
        """Sums over neighbours, scaled by the roots of both degrees."""
        degree = geometric.send_u_recv(paddle.ones_like(x[:, :1]), source, target, "sum")
        scale = paddle.rsqrt(degree + 1.0)
        return geometric.send_u_recv(x * scale, source, target, "sum") * scale + x * scale * scale

    def forward(self, x: Any, source: Any, target: Any) -> Any:
        x = F.relu(self.spread(self.first(x), source, target))
        return F.softmax(self.spread(self.second(x), source, target))


class GraphSage(nn.Layer):
    """Two layers that join a node with the mean and the maximum of its neighbours."""

    def __init__(self, features: int = 8, size: int = 16, classes: int = 4) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(3 * features, size), nn.Linear(3 * size, classes)

    def join(self, x: Any, source: Any, target: Any) -> Any:
        """The node, and what its neighbours are on average and at most."""
        mean = geometric.send_u_recv(x, source, target, "mean")
        most = geometric.send_u_recv(x, source, target, "max")
        return paddle.concat([x, mean, most], axis=1)

    def forward(self, x: Any, source: Any, target: Any) -> Any:
        x = F.normalize(F.relu(self.first(self.join(x, source, target))))
        return self.second(self.join(x, source, target))


class Gat(nn.Layer):
    """Attention over the edges that reach a node."""

    def __init__(self, features: int = 8, size: int = 16) -> None:
        super().__init__()
        self.value, self.left, self.right = nn.Linear(features, size), nn.Linear(size, 1), nn.Linear(size, 1)

    def forward(self, x: Any, source: Any, target: Any) -> Any:
        value = self.value(x)
        score = F.leaky_relu(geometric.send_uv(self.left(value), self.right(value), source, target, "add"), 0.2)
        weight = paddle.exp(score - score.max())
        total = geometric.send_ue_recv(paddle.zeros_like(value[:, :1]), weight, source, target, "add", "sum")
        message = geometric.send_ue_recv(value, weight, source, target, "mul", "sum")
        return F.elu(message / (total + 1e-9))
