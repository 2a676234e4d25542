"""unpad_by_mask and pad_by_index: what they refuse."""

import numpy as np
import pytest
from oprack import functional as F
from oprack.errors import OprackError


def test_strict_masks_hold_0_and_1_alone() -> None:
    x, mask = np.zeros((1, 3, 2), "float32"), np.array([[1, 0.5, 0]], "float32")
    assert F.unpad_by_mask(x, mask)[0].shape == (2, 2)
    with pytest.raises(OprackError, match=r"Mask holds 0\.5; expected 0 for padding and 1 for the rest"):
        F.unpad_by_mask(x, mask, strict=True)


def test_a_mask_of_another_shape_is_refused() -> None:
    with pytest.raises(OprackError, match=r"Mask has shape \[1, 2\] and X \[1, 3, 2\]"):
        F.unpad_by_mask(np.zeros((1, 3, 2), "float32"), np.ones((1, 2), "bool"))


def test_places_outside_are_refused() -> None:
    rows, like = np.zeros((2, 4), "float32"), np.zeros((1, 3), "bool")
    with pytest.raises(OprackError, match="Index has places from 0 to 3; expected 0 to 2"):
        F.pad_by_index(rows, np.array([0, 3]), like)
