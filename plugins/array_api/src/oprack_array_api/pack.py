"""Entry point of the plugin: hook implementations only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack import hookimpl

if TYPE_CHECKING:
    from oprack.packs import Register

# Module of this package -> the names of the standard that it brings
NAMES = {
    "dtypes": """
        bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128
        e inf nan newaxis pi
        array_namespace_info astype can_cast finfo iinfo isdtype result_type
    """,
    "creation": """
        arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid ones ones_like tril triu zeros
        zeros_like
    """,
    "elementwise": """
        abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_invert bitwise_left_shift bitwise_or
        bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh divide equal exp expm1 floor floor_divide
        greater greater_equal hypot imag isfinite isinf isnan less less_equal log log10 log1p log2 logaddexp logical_and
        logical_not logical_or logical_xor maximum minimum multiply negative nextafter not_equal positive pow real
        reciprocal remainder round sign signbit sin sinh sqrt square subtract tan tanh trunc
    """,
    "manipulation": """
        broadcast_arrays broadcast_to concat expand_dims flip moveaxis permute_dims repeat reshape roll squeeze stack
        take take_along_axis tile unstack
    """,
    "products": "matmul matrix_transpose tensordot vecdot",
    "reductions": "all any count_nonzero cumulative_prod cumulative_sum diff max mean min prod std sum var",
    "searching": """
        argmax argmin argsort nonzero searchsorted sort unique_all unique_counts unique_inverse unique_values where
    """,
}


@hookimpl
def oprack_layers(register: Register) -> None:
    """`oprack.array_api` and its extensions linalg and fft."""
    for module, names in NAMES.items():
        register.layers(f"{__package__}.{module}", *names.split(), namespace="array_api")
    for extension in ("linalg", "fft"):
        register.layer(extension, f"{__package__}:{extension}", namespace="array_api")
