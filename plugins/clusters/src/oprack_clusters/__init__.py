"""oprack on engines that clusters run: predictors over tables, training on several ranks, and manifests."""

from __future__ import annotations

from oprack_clusters.batches import BatchPredictor
from oprack_clusters.ray_ranks import run_on_ray

__all__ = ["BatchPredictor", "run_on_ray"]
