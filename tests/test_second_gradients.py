"""Second gradients against central differences of the first ones, and which ops have none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import Executor, Program, Scope, layers, program_guard
from oprack import functional as F
from oprack.errors import InvalidArgumentError, UnimplementedError
from oprack.op.grad import EmptyGradOpMaker
from oprack.packs.manager import default_manager

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


# Empty sequences first, in the middle and last
LOD = [[0, 0, 3, 3, 5, 5]]


def _rows(*dims: int, lod: Any = LOD) -> Any:
    return oprack.to_tensor(_array(*dims), lod=lod, requires_grad=True)


def _between(*dims: int) -> Any:
    return RNG.uniform(0.1, 0.9, dims)


def _squared(op_type: str, *args: Any, **attrs: Any) -> Callable[..., Any]:
    """The square of the op's first result, of the tensors and then of `args`."""

    def function(*tensors: Any) -> Any:
        found = getattr(F, op_type)(*tensors, *args, **attrs)
        return F.square(found[0] if isinstance(found, tuple) else found)

    return function


def _of(op_type: str, which: int = 0, **attrs: Any) -> Callable[..., Any]:
    """Result number `which` of the op, of those that are not for its gradient alone."""

    def function(*tensors: Any) -> Any:
        found = getattr(F, op_type)(*tensors, **attrs)
        return found[which] if isinstance(found, tuple) else found

    return function


ROWS, OTHERS = _rows(5, 3), _rows(4, 3, lod=[[0, 1, 1, 2, 2, 4]])
QUERIES, KEYS, VALUES = (
    _rows(5, 2, 3),
    _rows(8, 1, 3, lod=[[0, 1, 3, 3, 6, 8]]),
    _rows(8, 1, 2, lod=[[0, 1, 3, 3, 6, 8]]),
)
LABELS, SHARES = _ids([2], [0], [1]), _between(3, 4)
SMOOTH: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    **{
        op: (getattr(F, op), [_between(2, 3)])
        for op in (
            "exp expm1 erf erfinv asinh asin acos atan atanh sinh cosh tan log1p log2 log10 reciprocal digamma lgamma "
            "i0 silu gelu mish softmax log_softmax logsigmoid softsign tanh_shrink stanh swish"
        ).split()
    },
    **{
        op: (_squared(op), [1.5 * _array(4, 3)])
        for op in ("relu6 brelu hard_shrink hard_sigmoid softshrink thresholded_relu label_smooth").split()
    },
    "acosh": (F.acosh, [_between(2, 3) + 1.5]),
    "polygamma": (lambda x: F.polygamma(x, n=2), [_between(2, 3) + 1]),
    "gelu by tanh": (lambda x: F.gelu(x, approximate=True), [_array(2, 3)]),
    "softmax in the middle": (lambda x: F.softmax(x, axis=1), [_array(2, 3, 2)]),
    "layer_norm": (_of("layer_norm", epsilon=1e-3), [_array(3, 2, 4), _array(8), _array(8)]),
    "layer_norm without scale": (_of("layer_norm", begin_norm_axis=2, epsilon=1e-3), [_array(3, 2, 4)]),
    "layer_norm of sequences": (_of("layer_norm", epsilon=1e-3), [ROWS, _array(3), _array(3)]),
    "bmm": (F.bmm, [_array(2, 2, 3), _array(2, 3, 2)]),
    "cross": (F.cross, [_array(2, 3), _array(2, 3)]),
    "dot": (F.dot, [_array(2, 3), _array(2, 3)]),
    "mv": (F.mv, [_array(2, 3), _array(3)]),
    "squared_l2_norm": (_squared("squared_l2_norm"), [_array(2, 3)]),
    "lerp": (_squared("lerp", oprack.to_tensor(np.array([0.3]))), [_array(2, 3), _array(2, 3)]),
    "log_loss": (lambda x: F.log_loss(x, oprack.to_tensor(np.array([[0.0], [1.0]])), epsilon=1e-4), [_between(2, 1)]),
    "lookup_table_v2": (lambda w: F.square(F.lookup_table_v2(_ids(1, 1, 0), w)), [_array(3, 2)]),
    "dropout": (_squared("dropout", fix_seed=True, seed=3), [_array(4, 5)]),
    "hard labels": (lambda x: _of("softmax_with_cross_entropy", 1, ignore_index=0)(x, LABELS), [_array(3, 4)]),
    "soft labels": (
        lambda x: _of("softmax_with_cross_entropy", 1, soft_label=True)(x, SHARES / SHARES.sum(1, keepdims=True)),
        [_array(3, 4)],
    ),
    "softmax beside a loss": (
        lambda x: (lambda p, loss: (p * loss).sum())(*F.softmax_with_cross_entropy(x, LABELS)),
        [_array(3, 4)],
    ),
    "labels of a softmax": (
        lambda x: _of("softmax_with_cross_entropy", 1, use_softmax=False)(x, LABELS),
        [_between(3, 4)],
    ),
    "sequence_softmax": (F.sequence_softmax, [_rows(5, 1)]),
    "sequence_concat": (lambda *x: F.square(F.sequence_concat(list(x))), [ROWS, OTHERS]),
    "sequence_reshape": (_squared("sequence_reshape", new_dim=1), [ROWS]),
    "sequence_select": (_squared("sequence_select", _ids(1, 0, 1, 4, 3)), [ROWS]),
    "sequence_unfold": (_squared("sequence_unfold", size=3, padding=[1, 1]), [ROWS]),
    "sequence_slice": (
        _squared("sequence_slice", _ids([0], [1], [0], [0], [0]), _ids([0], [2], [0], [1], [0])),
        [ROWS],
    ),
    "sequence_expand": (_squared("sequence_expand", ROWS), [_array(5, 2)]),
    "sequence_expand_as": (_squared("sequence_expand_as", ROWS), [_array(5, 2)]),
    "sequence_pad": (_squared("sequence_pad", oprack.to_tensor(np.ones(1))), [ROWS]),
    "sequence_unpad": (_squared("sequence_unpad", _ids(0, 2, 0, 3, 0)), [_array(5, 3, 2)]),
    **{
        f"sequence_pool {kind}": (_squared("sequence_pool", pooltype=kind), [ROWS])
        for kind in ("SUM", "AVERAGE", "SQRT", "LAST", "FIRST")
    },
    "sequence_attention": (_of("sequence_attention"), [QUERIES, KEYS, VALUES]),
    "causal sequence_attention": (_of("sequence_attention", causal=True), [QUERIES, KEYS, VALUES]),
    "sequence_attention by distance": (_of("sequence_attention", window=[1, 1]), [QUERIES, KEYS, VALUES, _array(2, 5)]),
    "sequence_attention with dropout": (_of("sequence_attention", dropout_p=0.4, seed=5), [QUERIES, KEYS, VALUES]),
}


@pytest.mark.parametrize("case", SMOOTH)
def test_the_gradient_of_a_smooth_op_has_a_gradient(case: str) -> None:
    function, inputs = SMOOTH[case]
    assert oprack.gradcheck(function, inputs, order=2) == []


def test_compositions_have_gradients_of_any_order() -> None:
    x = oprack.to_tensor(_between(3), requires_grad=True)
    y, derivatives = F.reciprocal(x), [-1, 2, -6, 24]  # times x ** -(n + 1)
    for n, factor in enumerate(derivatives, 1):
        (y,) = oprack.grad(y.sum(), [x], create_graph=True)
        np.testing.assert_allclose(y.numpy(), factor / x.numpy() ** (n + 1))


def test_a_quotient_of_a_constant_has_a_second_gradient() -> None:
    one = oprack.to_tensor(np.ones((2, 3)))
    assert oprack.gradcheck(lambda x: F.elementwise_div(one, x), [_between(1, 3)], order=2) == []
    assert oprack.gradcheck(F.elementwise_div, [_array(2, 3), _between(3)], order=2) == []


def test_programs_have_second_gradients_of_compositions() -> None:
    """Of X alone, so that the gradients of Scale and Bias are not computed."""
    main, startup = Program(), Program()
    x = _array(3, 4)
    with program_guard(main, startup):
        given = layers.data("x", [3, 4], "float64")
        given.stop_gradient = False
        y = layers.softmax(layers.layer_norm(given, param_attr=False, bias_attr=False))
        (first,) = oprack.gradients(layers.reduce_sum(y * y), given)
        (second,) = oprack.gradients(layers.reduce_sum(first * first), given)
    executor, scope = Executor(), Scope()
    executor.run(startup, scope=scope)
    (got,) = executor.run(main, {"x": x}, [second], scope)
    tensor = oprack.to_tensor(x, requires_grad=True)
    z = F.softmax(F.layer_norm(tensor))
    (slope,) = oprack.grad((z * z).sum(), [tensor], create_graph=True)
    (want,) = oprack.grad((slope * slope).sum(), [tensor])
    np.testing.assert_allclose(got, want.numpy(), rtol=1e-9, atol=1e-12)


def test_a_maximum_of_sequences_says_that_it_has_no_second_gradient() -> None:
    x = _rows(5, 3)
    with pytest.raises(UnimplementedError, match="pooltype is MAX"):
        oprack.grad(F.square(F.sequence_pool(x, pooltype="MAX")).sum(), [x], create_graph=True)


# What has a gradient, but none of that. Who gives one to an op takes it out of here.
WITHOUT = {
    "oprack-math": "addmm angle atan2 complex copysign cummax cummin cumprod dist einsum elementwise_fmax "
    "elementwise_fmin elementwise_heaviside elementwise_max elementwise_min elementwise_pow "
    "frobenius_norm i0e i1 i1e kron kthvalue l1_norm logcumsumexp logit logsumexp mode multi_dot "
    "nanmedian norm p_norm reduce_amax reduce_amin reduce_max reduce_min reduce_prod renorm",
    "oprack-nn": "affine_channel affine_grid bce_loss bicubic_interp bicubic_interp_v2 bilinear_interp "
    "bilinear_interp_v2 bpr_loss c_embedding center_loss conv3d_transpose conv_shift cos_sim cross_entropy "
    "cross_entropy2 cvm depthwise_conv2d_transpose fsp grid_sampler group_norm hard_swish hierarchical_sigmoid "
    "hinge_loss huber_loss "
    "identity_loss kldiv_loss linear_interp linear_interp_v2 lrn margin_rank_loss max_pool2d_with_index "
    "max_pool3d_with_index maxout modified_huber_loss nce nearest_interp nearest_interp_v2 nll_loss pad2d "
    "pad_constant_like pool3d prelu rank_loss selu shuffle_channel sigmoid_cross_entropy_with_logits smooth_l1_loss "
    "soft_relu space_to_depth spp squared_l2_distance teacher_student_sigmoid_loss tree_conv trilinear_interp "
    "trilinear_interp_v2 unpool unpool3d unzip",
    "oprack-sequence": "add_position_encoding filter_by_instag flash_attn_unpadded gru gru_unit im2sequence "
    "linear_chain_crf lstm lstm_unit lstmp match_matrix_tensor pyramid_hash rnn row_conv segment_pool sequence_conv "
    "sequence_topk_avg_pooling var_conv_2d warpctc warprnnt",
}


def test_ops_without_second_gradients_are_known() -> None:
    manager = default_manager()
    found: dict[str, set[str]] = {pack: set() for pack in WITHOUT}
    for op_type in manager.op_types():
        maker, pack = manager.op_info(op_type).grad_op_maker, manager.owner(op_type)
        gradient = getattr(maker, "op_type", None)
        if pack not in found or "_grad" in op_type or gradient is None or isinstance(maker, EmptyGradOpMaker):
            continue
        if manager.op_info(gradient).grad_op_maker is None:
            found[pack].add(op_type)
    assert found == {pack: set(ops.split()) for pack, ops in WITHOUT.items()}


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


def test_a_starting_gradient_has_the_sequences_of_its_output() -> None:
    """sequence_reverse is its own gradient, so it asks the arriving one for its sequences."""
    for given in (np.arange(5.0), oprack.to_tensor(np.arange(5.0)), oprack.to_tensor(np.arange(5.0), lod=LOD)):
        x = _rows(5)
        F.sequence_reverse(x).backward(given)
        assert x.grad is not None and x.grad.lod == LOD
        np.testing.assert_array_equal(x.grad.numpy(), [2, 1, 0, 4, 3])
    wanted = oprack.to_tensor(np.arange(5.0), requires_grad=True)
    x = _rows(5)
    (g,) = oprack.grad(F.sequence_reverse(x), [x], wanted, create_graph=True)
    (back,) = oprack.grad((g * g).sum(), [wanted])
    np.testing.assert_array_equal(back.numpy(), 2 * np.arange(5.0))
    with pytest.raises(InvalidArgumentError, match="expected the same sequences, or a gradient without LoD"):
        F.sequence_reverse(x).backward(oprack.to_tensor(np.ones(5), lod=[[0, 5]]))
