"""Metrics that count chunks and classes, on the host."""

from __future__ import annotations

from oprack_metric.kernels.chunk_eval import chunk_eval
from oprack_metric.kernels.mean_iou import mean_iou
from oprack_metric.kernels.precision_recall import precision_recall

from oprack_cuda.host_kernel import kernels_on_host

globals().update(kernels_on_host(__name__, chunk_eval, mean_iou, precision_recall))
