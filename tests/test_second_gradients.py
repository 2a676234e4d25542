"""Second gradients of ops that are linear are the slopes of the first ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import functional as F

RNG = np.random.default_rng(5)


def _array(*dims: int) -> Any:
    return RNG.normal(size=dims)


def _ids(*values: Any) -> Any:
    return oprack.to_tensor(np.array(values, np.int64))


MASK = oprack.to_tensor(np.array([[True, False, True], [False, True, True]]))

LINEAR: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "gather": (lambda x: F.gather(x, _ids(2, 0, 2), axis=0), _array(3, 2)),
    "gather_nd": (lambda x: F.gather_nd(x, _ids([1, 0], [0, 2])), _array(2, 3)),
    "index_select": (lambda x: F.index_select(x, _ids(1, 1, 0), dim=1), _array(2, 3)),
    "index_sample": (lambda x: F.index_sample(x, _ids([0, 0], [2, 1])), _array(2, 3)),
    "take_along_axis": (lambda x: F.take_along_axis(x, _ids([0, 1, 1]), Axis=0), _array(2, 3)),
    "masked_select": (lambda x: F.masked_select(x, MASK), _array(2, 3)),
    "roll": (lambda x: F.roll(x, shifts=[1], axis=[1]), _array(2, 3)),
    "strided_slice": (
        lambda x: F.strided_slice(x, axes=[1], starts=[0], ends=[4], strides=[2], infer_flags=[1]),
        _array(2, 4),
    ),
    "unstack": (lambda x: F.unstack(x, axis=0, num=2, num_outputs=2)[1], _array(2, 3)),
    "flatten2": (lambda x: F.flatten2(x, axis=1)[0], _array(2, 3, 2)),
    "flatten_contiguous_range": (
        lambda x: F.flatten_contiguous_range(x, start_axis=1, stop_axis=2)[0],
        _array(2, 3, 2),
    ),
    "squeeze": (lambda x: F.squeeze(x, axes=[1]), _array(2, 1, 3)),
    "unsqueeze": (lambda x: F.unsqueeze(x, axes=[1]), _array(2, 3)),
    "transpose": (lambda x: F.transpose(x, axis=[1, 0]), _array(2, 3)),
    "tril_triu": (lambda x: F.tril_triu(x, diagonal=0, lower=True), _array(3, 3)),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(x, upscale_factor=2), _array(1, 4, 2, 2)),
    "pixel_unshuffle": (lambda x: F.pixel_unshuffle(x, downscale_factor=2), _array(1, 1, 4, 2)),
    "channel_shuffle": (lambda x: F.channel_shuffle(x, groups=2), _array(1, 4, 2, 1)),
    "temporal_shift": (lambda x: F.temporal_shift(x, seg_num=2, shift_ratio=0.25), _array(4, 4, 1, 2)),
    "unfold": (
        lambda x: F.unfold(x, kernel_sizes=[2, 2], strides=[1, 1], paddings=[0, 0, 0, 0], dilations=[1, 1]),
        _array(1, 2, 3, 3),
    ),
    "cumsum": (lambda x: F.cumsum(x, axis=1, exclusive=True, reverse=True), _array(2, 3)),
    "mean": (F.mean, _array(2, 3)),
    "trace": (lambda x: F.trace(x, offset=1, axis1=1, axis2=0), _array(2, 3, 2)),
    "diagonal": (lambda x: F.diagonal(x, offset=-1, axis1=0, axis2=1), _array(3, 3, 2)),
    "repeat_interleave": (lambda x: F.repeat_interleave(x, _ids(2, 0, 1), dim=1), _array(2, 3)),
    "expand": (lambda x: F.expand(x, expand_times=[2, 1, 3]), _array(1, 2, 2)),
    "reverse": (lambda x: F.reverse(x, axis=[0]), _array(3, 2)),
}


@pytest.mark.parametrize("op_type", LINEAR)
def test_the_gradient_of_a_linear_op_has_a_gradient(op_type: str) -> None:
    f, x = LINEAR[op_type]
    # squared, since the second gradient of a linear function alone is zero
    assert oprack.gradcheck(lambda a: F.square(f(a)), [x], order=2) == []


def test_a_jitted_function_whose_gradient_reads_nothing_has_second_gradients() -> None:
    x = oprack.to_tensor(np.ones(3, np.float32), requires_grad=True)
    arriving = oprack.to_tensor(np.full(3, 5.0, np.float32), requires_grad=True)
    (g,) = oprack.grad(oprack.jit(lambda x: x * 2.0)(x), [x], arriving, create_graph=True)
    np.testing.assert_array_equal(g.numpy(), [10.0, 10.0, 10.0])
    (h,) = oprack.grad(g.sum(), [arriving])
    np.testing.assert_array_equal(h.numpy(), [2.0, 2.0, 2.0])
