"""oneDNN 3.x: the constants and function signatures that are used, taken from its headers."""

from __future__ import annotations

from ctypes import CDLL, POINTER, Structure, c_char_p, c_float, c_int, c_int32, c_int64, c_size_t, c_uint, c_void_p

MAX_DIMS = 12
Dims = c_int64 * MAX_DIMS

CPU_ENGINE = 1
DEFAULT_STREAM = 1
UNKNOWN, BF16, F32, S8 = 0, 2, 3, 5
ANY_TAG = 1
SCRATCHPAD_USER = 1

FORWARD_TRAINING, FORWARD_INFERENCE, BACKWARD, BACKWARD_DATA = 64, 96, 128, 160
CONVOLUTION_DIRECT, DECONVOLUTION_DIRECT = 0x1, 0xA
POOLING_MAX, POOLING_AVG_INCLUDE_PADDING, POOLING_AVG_EXCLUDE_PADDING = 0x1FF, 0x2FF, 0x3FF
SOFTMAX_ACCURATE, SOFTMAX_LOG = 0x30000, 0x30001
RESAMPLING_NEAREST, RESAMPLING_LINEAR = 0x2FFF0, 0x2FFF1
BINARY_ADD, BINARY_MUL, BINARY_MAX, BINARY_MIN, BINARY_DIV, BINARY_SUB = range(0x1FFF0, 0x1FFF6)
USE_GLOBAL_STATS, USE_SCALE, USE_SHIFT = 1, 2, 4
LEFT_TO_RIGHT = 1

ELTWISE = {
    name: 0x20 + i
    for i, name in enumerate(
        "relu tanh elu square abs sqrt linear soft_relu hardsigmoid logistic exp gelu_tanh swish log clip clip_v2 pow "
        "gelu_erf round mish hardswish".split()
    )
}

# gradients of these are computed from what the forward op wrote
ELTWISE.update(
    {f"{name}_use_dst": 0x100 + i for i, name in enumerate("relu tanh elu sqrt logistic exp clip_v2".split())}
)
REDUCTION_SUM, REDUCTION_MEAN = 0x2FFF4, 0x2FFF6

QUERY_IMPL_INFO = 8
QUERY_SRC_MD, QUERY_DIFF_SRC_MD, QUERY_WEIGHTS_MD, QUERY_DIFF_WEIGHTS_MD = 129, 130, 131, 132
QUERY_DST_MD, QUERY_DIFF_DST_MD, QUERY_WORKSPACE_MD, QUERY_SCRATCHPAD_MD = 133, 134, 135, 136
QUERY_EXEC_ARG_MD, QUERY_DATA_TYPE = 255, 258

SRC, SRC_1, SRC_2, DST, DST_1, DST_2 = 1, 2, 3, 17, 18, 19
WEIGHTS, WEIGHTS_1, WEIGHTS_2, BIAS = 33, 34, 35, 41
MEAN, VARIANCE, SCALE, SHIFT = 49, 50, 51, 52
WORKSPACE, SCRATCHPAD = 64, 80
DIFF_SRC, DIFF_DST, DIFF_WEIGHTS, DIFF_SCALE, DIFF_SHIFT = 129, 145, 161, 255, 256
MULTIPLE_SRC = 1024
SCALES = 4096
POST_OP = 32768

STATUS = (
    "success",
    "out of memory",
    "invalid arguments",
    "unimplemented",
    "last implementation reached",
    "runtime error",
    "not required",
)
UNIMPLEMENTED, LAST_IMPL_REACHED = 3, 4


_OUT, _P = POINTER(c_void_p), c_void_p
_CONV_TAIL = (Dims, Dims, Dims, Dims)

# name -> argument types; every function not in _RETURNS returns a status
_ARGUMENTS: dict[str, tuple[type, ...]] = {
    "engine_create": (_OUT, c_int, c_size_t),
    "stream_create": (_OUT, _P, c_uint),
    "stream_destroy": (_P,),
    "memory_desc_create_with_strides": (_OUT, c_int, Dims, c_int, Dims),
    "memory_desc_create_with_tag": (_OUT, c_int, Dims, c_int, c_int),
    "memory_desc_clone": (_OUT, _P),
    "memory_desc_destroy": (_P,),
    "memory_desc_equal": (_P, _P),
    "memory_desc_query": (_P, c_int, _P),
    "memory_desc_get_size": (_P,),
    "memory_create": (_OUT, _P, _P, _P),
    "memory_set_data_handle": (_P, _P),
    "memory_destroy": (_P,),
    "primitive_attr_create": (_OUT,),
    "primitive_attr_destroy": (_P,),
    "primitive_attr_set_scratchpad_mode": (_P, c_int),
    "primitive_attr_set_post_ops": (_P, _P),
    "primitive_attr_set_scales_mask": (_P, c_int, c_int),
    "post_ops_create": (_OUT,),
    "post_ops_destroy": (_P,),
    "post_ops_append_sum": (_P, c_float, c_int32, c_int),
    "post_ops_append_eltwise": (_P, c_int, c_float, c_float),
    "post_ops_append_binary": (_P, c_int, _P),
    "primitive_desc_query": (_P, c_int, c_int, _P),
    "primitive_desc_query_md": (_P, c_int, c_int),
    "primitive_desc_next_impl": (_P,),
    "primitive_desc_destroy": (_P,),
    "primitive_create": (_OUT, _P),
    "primitive_execute": (_P, _P, c_int, _P),
    "primitive_destroy": (_P,),
    "reorder_primitive_desc_create": (_OUT, _P, _P, _P, _P, _P),
    "concat_primitive_desc_create": (_OUT, _P, _P, c_int, c_int, POINTER(c_void_p), _P),
    "binary_primitive_desc_create": (_OUT, _P, c_int, _P, _P, _P, _P),
    "convolution_forward_primitive_desc_create": (_OUT, _P, c_int, c_int, _P, _P, _P, _P, *_CONV_TAIL, _P),
    "convolution_backward_data_primitive_desc_create": (_OUT, _P, c_int, _P, _P, _P, *_CONV_TAIL, _P, _P),
    "convolution_backward_weights_primitive_desc_create": (_OUT, _P, c_int, _P, _P, _P, _P, *_CONV_TAIL, _P, _P),
    "deconvolution_forward_primitive_desc_create": (_OUT, _P, c_int, c_int, _P, _P, _P, _P, *_CONV_TAIL, _P),
    "eltwise_forward_primitive_desc_create": (_OUT, _P, c_int, c_int, _P, _P, c_float, c_float, _P),
    "eltwise_backward_primitive_desc_create": (_OUT, _P, c_int, _P, _P, _P, c_float, c_float, _P, _P),
    "reduction_primitive_desc_create": (_OUT, _P, c_int, _P, _P, c_float, c_float, _P),
    "softmax_backward_primitive_desc_create": (_OUT, _P, c_int, _P, _P, _P, c_int, _P, _P),
    "softmax_forward_primitive_desc_create": (_OUT, _P, c_int, c_int, _P, _P, c_int, _P),
    "pooling_forward_primitive_desc_create": (_OUT, _P, c_int, c_int, _P, _P, *_CONV_TAIL, Dims, _P),
    "pooling_backward_primitive_desc_create": (_OUT, _P, c_int, _P, _P, *_CONV_TAIL, Dims, _P, _P),
    "batch_normalization_forward_primitive_desc_create": (_OUT, _P, c_int, _P, _P, c_float, c_uint, _P),
    "batch_normalization_backward_primitive_desc_create": (_OUT, _P, c_int, *(_P,) * 3, c_float, c_uint, _P, _P),
    "layer_normalization_forward_primitive_desc_create": (_OUT, _P, c_int, _P, _P, _P, c_float, c_uint, _P),
    "layer_normalization_backward_primitive_desc_create": (_OUT, _P, c_int, *(_P,) * 4, c_float, c_uint, _P, _P),
    "matmul_primitive_desc_create": (_OUT, _P, _P, _P, _P, _P, _P),
    "resampling_forward_primitive_desc_create": (_OUT, _P, c_int, c_int, POINTER(c_float), _P, _P, _P),
    "gru_forward_primitive_desc_create": (_OUT, _P, c_int, c_int, *(_P,) * 7, c_uint, _P),
    "lbr_gru_forward_primitive_desc_create": (_OUT, _P, c_int, c_int, *(_P,) * 7, c_uint, _P),
    "vanilla_rnn_forward_primitive_desc_create": (
        *(_OUT, _P, c_int, c_int, c_int, *(_P,) * 7, c_uint),
        *(c_float, c_float, _P),
    ),
    "lstm_forward_primitive_desc_create": (_OUT, _P, c_int, c_int, *(_P,) * 11, c_uint, _P),
    "set_primitive_cache_capacity": (c_int,),
    "version": (),
    "get_effective_cpu_isa": (),
}
_RETURNS = {"memory_desc_get_size": c_size_t, "primitive_desc_query_md": c_void_p, "version": c_void_p}


class Version(Structure):
    """What dnnl_version points to."""

    major: int
    minor: int
    patch: int

    _fields_ = (
        ("major", c_int),
        ("minor", c_int),
        ("patch", c_int),
        ("hash", c_char_p),
        ("cpu_runtime", c_uint),
        ("gpu_runtime", c_uint),
    )


def declare(lib: CDLL) -> None:
    """Set argument and result types of every function: without them a pointer is passed as a 32-bit int.

    Raises AttributeError when the library lacks one, so it is no oneDNN 3.
    """
    for name, arguments in _ARGUMENTS.items():
        function = getattr(lib, f"dnnl_{name}")
        function.argtypes = arguments
        function.restype = _RETURNS.get(name, c_int)
