"""Regions of interest: which image each belongs to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array


def host(array: Array) -> Array:
    """A few numbers in host memory; waits for a device."""
    return array.get() if hasattr(array, "get") else array


def image_of_region(rois: Array, rois_num: Array | None, lod: Sequence[Sequence[int]], images: int, op: str) -> Array:
    """Index of the image of each region, int64 [R].

    Raises InvalidArgumentError when neither RoisNum nor LoD is given, or when they do not fit the images and regions.
    """
    if rois_num is not None:
        counts = host(rois_num).reshape(-1).astype(np.int64)
        source = f"RoisNum is {counts.tolist()}"
    elif lod:
        counts = np.diff(lod[-1])
        source = f"ROIs has LoD {lod}"
    else:
        raise InvalidArgumentError(
            f"op {op}: neither RoisNum nor LoD of ROIs tells which image a region belongs to; give one of them"
        )
    if len(counts) != images or counts.sum() != len(rois) or (counts < 0).any():
        raise InvalidArgumentError(
            f"op {op}: {source}, but there are {images} images and {len(rois)} regions; expected one count per image "
            f"that sum to {len(rois)}"
        )
    return np.repeat(np.arange(images), counts)
