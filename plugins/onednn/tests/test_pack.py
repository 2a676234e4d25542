"""The conformance suite over the pack onednn: ops that its passes make, and kernels of ops that other packs define."""

from __future__ import annotations

from pathlib import Path

from oprack.testing import Conformance

PASSES = {
    "onednn_attention": "test_attention.py",
    "conv2d_post_ops": "test_passes.py",
    "onednn_conv2d_chain": "test_conv2d_chain.py",
    "conv2d_transpose_post_ops": "test_passes.py",
    "onednn_conv2d_transpose_pair": "test_conv2d_transpose_pair.py",
    "onednn_eltwise": "test_chains.py",
    "onednn_fc_gru": "test_recurrent.py",
    "onednn_fc_lstm": "test_recurrent.py",
    "onednn_lstm_step": "test_small_nets.py",
    "matmul_post_ops": "test_passes.py",
    "onednn_pointwise_conv2d": "test_any_shape.py",
    "onednn_quantized_conv2d": "test_int8.py",
    "onednn_quantized_matmul": "test_int8.py",
    "onednn_squeeze_excite": "test_squeeze_excite.py",
    "onednn_take": "test_small_nets.py",
    "onednn_upsampled_conv2d": "test_upsampled_conv2d.py",
    "onednn_winograd_conv2d": "test_winograd_conv2d.py",
}
"""Op -> the file whose tests run it."""


class TestOnednn(Conformance):
    pack = "onednn"
    case_files = Path(__file__).parents[3] / "tests" / "data" / "cases"
    without_cases = {op: f"a pass makes it, from parameters that it lays out: {file}" for op, file in PASSES.items()}
    test_case_file = None  # test_cases.py runs them, with and without what passes make of them
