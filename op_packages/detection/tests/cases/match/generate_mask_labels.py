"""Cases of generate_mask_labels: polygons along the edges of pixels, whose masks can be told by hand."""

from __future__ import annotations

import numpy as np
from oprack import LoDTensor
from oprack.testing import OpCase

SIZE, CLASSES = 4, 3


def corners(*boxes: tuple[int, int, int, int]) -> np.ndarray:
    """Rectangles as polygons of four corners."""
    return np.array([[[a, b], [c, b], [c, d], [a, d]] for a, b, c, d in boxes], np.float32).reshape(-1, 2)


def ints(values: list[int], offsets: list[int]) -> LoDTensor:
    return LoDTensor(np.array(values, np.int32).reshape(-1, 1), [offsets])


def masks(*found: tuple[int, list[tuple[slice, slice]]]) -> np.ndarray:
    """Rows of a class and what is filled of it; class 0: nothing is said."""
    out = np.full((len(found), CLASSES, SIZE, SIZE), -1, np.int32)
    for row, (label, parts) in zip(out, found, strict=True):
        if label:
            row[label] = 0
        for y, x in parts:
            row[label, y, x] = 1
    return out.reshape(len(found), -1)


# Two images, the first scaled by 2. Its objects: two rectangles of class 1, a crowd, and one of class 2. The second has
# one of class 1, and no region with a class.
SEGMENTS = corners((2, 2, 6, 4), (0, 6, 2, 8), (0, 0, 8, 8), (20, 20, 24, 28), (1, 1, 3, 3))
POLYGONS = [0, 4, 8, 12, 16, 20]
ROIS = np.array([[0, 0, 16, 16], [2, 2, 4, 4], [40, 40, 56, 56], [5, 5, 9, 9], [1, 2, 3, 4]], np.float32)
BOTH = (slice(1, 2), slice(1, 3)), (slice(3, 4), slice(0, 1))
CASES = [
    OpCase(
        "generate_mask_labels",
        {
            "ImInfo": np.array([[64, 64, 2], [32, 32, 1]], np.float32),
            "GtClasses": ints([1, 1, 2, 1], [0, 3, 4]),
            "IsCrowd": ints([0, 1, 0, 0], [0, 3, 4]),
            "GtSegms": LoDTensor(SEGMENTS, [[0, 3, 4], [0, 2, 3, 4, 5], POLYGONS]),
            "Rois": LoDTensor(ROIS, [[0, 3, 5]]),
            "LabelsInt32": ints([1, 0, 2, 0, 0], [0, 3, 5]),
        },
        {"num_classes": CLASSES, "resolution": SIZE},
        {
            "MaskRois": LoDTensor(ROIS[[0, 2, 3]], [[0, 2, 3]]),
            "RoiHasMaskInt32": ints([0, 2, 0], [0, 2, 3]),
            "MaskInt32": LoDTensor(masks((1, [*BOTH]), (2, [(slice(None), slice(0, 2))]), (0, [])), [[0, 2, 3]]),
        },
    )
]
