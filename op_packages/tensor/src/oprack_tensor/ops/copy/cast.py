"""cast: all of the op but its kernel."""

from __future__ import annotations

from oprack_tensor.ops.copy._convert import Convert


class Cast(Convert, type="cast"):
    r"""$$Out_i = \operatorname{out\_dtype}(X_i)$$: floats are cut to integers towards zero; of complex numbers the real
    part stays.
    """
