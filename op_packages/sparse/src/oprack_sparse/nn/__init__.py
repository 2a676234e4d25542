"""Parts of networks over sparse tensors: `oprack.sparse.nn`, with the names of paddle.sparse.nn."""

from __future__ import annotations

from oprack_sparse.nn import functional
from oprack_sparse.nn.activation import LeakyReLU, ReLU, ReLU6, Softmax
from oprack_sparse.nn.conv import Conv2D, Conv3D, SubmConv2D, SubmConv3D
from oprack_sparse.nn.norm import BatchNorm, SyncBatchNorm
from oprack_sparse.nn.pool import MaxPool3D

__all__ = [
    "BatchNorm",
    "Conv2D",
    "Conv3D",
    "LeakyReLU",
    "MaxPool3D",
    "ReLU",
    "ReLU6",
    "Softmax",
    "SubmConv2D",
    "SubmConv3D",
    "SyncBatchNorm",
    "functional",
]
