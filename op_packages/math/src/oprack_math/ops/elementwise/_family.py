"""What element-wise arithmetic shares: oneDNN's attributes, and the version with which Y got a scale."""

from __future__ import annotations

from oprack.op import OpVersion
from oprack.op.families import MKLDNN_DATA_TYPE, USE_MKLDNN, USE_QUANTIZER

from oprack_math.ops._attrs import SCALE_OUT, SCALE_X, SCALE_Y
from oprack_math.ops._broadcast import Aligned, Binary


class Elementwise(Binary):
    """A binary op with the attributes of oneDNN's kernels."""

    Scale_out = SCALE_OUT
    Scale_x = SCALE_X
    Scale_y = SCALE_Y
    mkldnn_data_type = MKLDNN_DATA_TYPE
    use_mkldnn = USE_MKLDNN
    use_quantizer = USE_QUANTIZER


class AlignedElementwise(Aligned):
    """The same for one that has no `axis`."""

    Scale_out = SCALE_OUT
    Scale_x = SCALE_X
    Scale_y = SCALE_Y
    mkldnn_data_type = MKLDNN_DATA_TYPE
    use_mkldnn = USE_MKLDNN
    use_quantizer = USE_QUANTIZER


def scale_y_checkpoint(op_type: str) -> OpVersion:
    """versions of an op whose Y got a scale."""
    return OpVersion(op_type).checkpoint("Y of a quantised model has a scale.", ("new_attr", "Scale_y", 1.0))
