"""Fused ops say which of their inputs has a wrong shape: a kernel would read memory that is not the input's."""

from __future__ import annotations

import numpy as np
import oprack
import pytest
from oprack import functional as F
from oprack.errors import InvalidArgumentError, OprackError


def array(*shape):
    return oprack.to_tensor(np.zeros(shape, np.float32))


X, LOW, W = array(1, 4, 6, 6), array(1, 4, 3, 3), array(8, 4, 1, 1)
CHAIN = dict(strides=[1] * 4, paddings=[0] * 8, groups=[1, 1], biased=[1, 1], post_op_counts=[0, 0])
UP = dict(factors=[2], projects=[-1], shifts=[-1], scales=[-1])
BAD = {
    "bias": lambda: F.conv2d_post_ops(X, W, array(7)),
    "residual": lambda: F.conv2d_post_ops(X, W, None, array(1, 8, 6, 5), post_ops=["residual"]),
    "transposed": lambda: F.conv2d_transpose_post_ops(X, array(4, 8, 2, 2), array(4), strides=[2, 2]),
    "chain, bias": lambda: F.onednn_conv2d_chain(X, [W, array(4, 8, 1, 1)], [array(8), array(3)], **CHAIN),
    "chain, filter": lambda: F.onednn_conv2d_chain(X, [W, array(4, 9, 1, 1)], [array(8), array(4)], **CHAIN),
    "chain, counts": lambda: F.onednn_conv2d_chain(X, [W, array(4, 8, 1, 1)], [array(8)], **CHAIN),
    "pointwise": lambda: F.onednn_pointwise_conv2d(X, W, None, array(1, 3, 1, 1)),
    "squeeze": lambda: F.onednn_squeeze_excite(X, array(2, 4, 1, 1), array(1), array(4, 2, 1, 1)),
    "pair": lambda: F.onednn_conv2d_transpose_pair(X, array(4, 8, 2, 2), array(8), array(8, 2, 2, 2), array(1)),
    "winograd": lambda: F.onednn_winograd_conv2d(X, array(36, 4, 8), array(4), paddings=[1] * 4),
    "product": lambda: F.matmul_post_ops(array(3, 4), array(4, 8), array(7)),
    "upsampled": lambda: F.onednn_upsampled_conv2d([LOW], [array(8, 3, 3, 3)], **UP),
    "projected": lambda: F.onednn_upsampled_conv2d(
        [LOW], [array(8, 6, 3, 3)], None, [array(5, 4, 1, 1)], **(UP | {"projects": [0]})
    ),
    "keys": lambda: F.onednn_attention(array(2, 3, 8), array(1, 3, 8), array(2, 3, 8), heads=2),
    "mask": lambda: F.onednn_attention(array(4, 3, 8), array(4, 3, 8), array(4, 3, 8), array(2, 1, 3, 3), heads=2),
}


@pytest.mark.parametrize("call", BAD.values(), ids=BAD)
def test_shapes_that_do_not_fit(call):
    with pytest.raises(InvalidArgumentError, match=r"has shape|must have a number"):
        call()


@pytest.mark.parametrize("shapes", [((24, 16), (24, 8)), ((12, 8), (12, 4)), ((24, 8), (3, 8))], ids=str)
def test_weights_of_recurrent_layers(shapes):
    """oneDNN is not given them; NumPy's kernel computes or says what is wrong."""
    x, h = array(5, 4, 8), array(1, 4, 8)
    weights = [array(*s) for s in (*shapes, shapes[0][:1], shapes[0][:1])]
    options = dict(mode="GRU", hidden_size=8, input_size=8, num_layers=1, is_test=True)
    with pytest.raises(OprackError):
        F.rnn(x, [h], weights, **options)
