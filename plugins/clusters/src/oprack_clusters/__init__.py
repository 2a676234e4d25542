"""oprack on engines that clusters run: predictors over tables, training on several ranks, and manifests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oprack_clusters.batches import BatchPredictor
    from oprack_clusters.ray_ranks import run_on_ray

__all__ = ["BatchPredictor", "run_on_ray"]


def __getattr__(name: str) -> Any:
    # the entry point is beside these, and every process imports that, whether it computes or not
    if name == "BatchPredictor":
        from oprack_clusters.batches import BatchPredictor

        return BatchPredictor
    if name == "run_on_ray":
        from oprack_clusters.ray_ranks import run_on_ray

        return run_on_ray
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
