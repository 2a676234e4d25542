"""roi_align's products give the means of bilinear samples, and keep what is not finite to the bins that read it."""

from __future__ import annotations

import numpy as np
import pytest
from oprack import functional as F
from oprack import to_tensor


def sampled(image, y, x):
    """One bilinear sample of [C, H, W]; 0 more than a pixel outside."""
    height, width = image.shape[1:]
    if not (-1 <= y <= height and -1 <= x <= width):
        return np.zeros(len(image))
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    top, left = min(int(y), max(height - 2, 0)), min(int(x), max(width - 2, 0))
    bottom, right, dy, dx = min(top + 1, height - 1), min(left + 1, width - 1), y - top, x - left
    upper = (1 - dx) * image[:, top, left] + dx * image[:, top, right]
    lower = (1 - dx) * image[:, bottom, left] + dx * image[:, bottom, right]
    return (1 - dy) * upper + dy * lower


def by_definition(x, rois, owners, bins, scale, ratio, aligned):
    out = np.zeros((len(rois), x.shape[1], *bins))
    for r, (roi, n) in enumerate(zip(rois.astype(np.float64), owners, strict=True)):
        x0, y0, x1, y1 = roi * scale - (0.5 if aligned else 0)
        size = np.array([y1 - y0, x1 - x0])
        size = size if aligned else np.maximum(size, 1)
        counts = [ratio if ratio > 0 else int(np.ceil(s / b)) for s, b in zip(size, bins, strict=True)]
        for i in range(bins[0]):
            for j in range(bins[1]):
                ys = [y0 + size[0] / bins[0] * (i + (k + 0.5) / counts[0]) for k in range(counts[0])]
                xs = [x0 + size[1] / bins[1] * (j + (k + 0.5) / counts[1]) for k in range(counts[1])]
                out[r, :, i, j] = np.mean([sampled(x[n], v, u) for v in ys for u in xs], axis=0)
    return out


def regions(count):
    random = np.random.default_rng(count)
    corner, size = random.uniform(-6, 30, (count, 2)), random.uniform(0.5, 24, (count, 2))
    return np.concatenate([corner, corner + size], axis=1).astype(np.float32)


def run(x, rois, counts, ratio, aligned):
    given = to_tensor(x), to_tensor(rois), to_tensor(np.array(counts, np.int32))
    size = dict(pooled_height=3, pooled_width=2, spatial_scale=0.5)
    return F.roi_align(*given, **size, sampling_ratio=ratio, aligned=aligned).numpy()


@pytest.mark.parametrize("aligned", [True, False])
@pytest.mark.parametrize("ratio", [0, 2])
@pytest.mark.parametrize("counts", [(3, 2), (65, 2)], ids=str)
def test_means_of_samples(counts, ratio, aligned):
    x = np.random.default_rng(0).standard_normal((2, 4, 11, 13)).astype(np.float32)
    rois, owners = regions(sum(counts)), np.repeat([0, 1], counts)
    want = by_definition(x.astype(np.float64), rois, owners, (3, 2), 0.5, ratio, aligned)
    np.testing.assert_allclose(run(x, rois, counts, ratio, aligned), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_stays_in_its_bins(value):
    x = np.ones((1, 2, 11, 13), np.float32)
    x[0, 1, 2, 3] = value
    y = run(x, np.array([[0, 0, 20, 20]], np.float32), [1], 2, True)
    assert np.isfinite(y[0, 0]).all() and np.isfinite(y[0, 1, 2]).all() and not np.isfinite(y[0, 1]).all()
