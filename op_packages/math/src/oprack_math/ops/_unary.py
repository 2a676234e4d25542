"""What the element-wise functions of this pack share beyond oprack.op.families."""

from __future__ import annotations

from oprack.op.families import USE_CUDNN, USE_MKLDNN, Unary


class Activation(Unary):
    """A unary op with the attributes of oneDNN's and cuDNN's kernels."""

    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN
    inplace = {"X": "Out"}
