"""Entry point of the plugin: hook implementations only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from oprack import hookimpl

if TYPE_CHECKING:
    from oprack.packs import Register


@hookimpl
def oprack_ops(register: Register) -> None:
    """Kernels for ops of other packs, by the strings in ops.toml."""
    register.manifest(__package__)


@hookimpl
def oprack_libraries(register: Register) -> None:
    """What speaks for the library: whether it serves, and how many threads it uses."""
    register.library("onednn", f"{__package__}.kernel_library:KERNEL_LIBRARY", attr="use_mkldnn")


@hookimpl
def oprack_variables(register: Register) -> None:
    """What switches parts of the library off."""
    register.variable(
        "OPRACK_ONEDNN_RUNNER",
        default="1",
        meaning="0: the compiled runner runs no ops; a loop in Python does the same.",
    )


@hookimpl
def oprack_passes(register: Register) -> None:
    """Rewrites of graphs for primitives that do several ops at once; they run last, when the generic ones are done."""
    convolutions = ["onednn_fuse_conv2d", "onednn_fuse_squeeze_excite", "onednn_upsampled_conv2d", "onednn_winograd"]

    def add(
        name: str,
        function: str,
        after: Sequence[str] = (),
        before: Sequence[str] = (),
        reorders_sums: bool = True,
        ops: Sequence[str] = (),
        precision: str = "bfloat16",
        stage: str = "lower",
    ) -> None:
        register.pass_(
            f"onednn_{name}",
            function if function.startswith("oprack_") else f"{__package__}.passes.{function}",
            stage=stage,
            place="cpu",
            library="onednn",
            after=list(after),
            before=list(before),
            reorders_sums=reorders_sums,
            precision=precision if ops else "",
            ops=list(ops),
        )

    add("fuse_attention", "attention:fuse_attention", before=["onednn_fuse_matmul"])
    add("batch_norm", "affine:batch_norm_as_convolution", before=convolutions[:1])
    add("fuse_conv2d", "oprack_nn.passes.post_ops:fuse_conv2d")
    add("fuse_matmul", "oprack_nn.passes.post_ops:fuse_matmul")
    add("fuse_recurrent", "recurrent:fuse_recurrent", ["onednn_fuse_matmul"])
    add("pair_conv2d_transpose", "conv2d_transpose_pair:pair_conv2d_transpose", convolutions[:1])
    add("fuse_squeeze_excite", "squeeze_excite:fuse_squeeze_excite", convolutions[:1])
    add("upsampled_conv2d", "upsampled_conv2d:upsampled_conv2d", convolutions[:2])
    add("winograd", "winograd_conv2d:fuse_winograd", convolutions[:3])
    add("chain_conv2d", "conv2d_chain:chain_convolutions", convolutions)
    fused = ["onednn_fuse_conv2d", "onednn_fuse_matmul"]
    add("chain_eltwise", "chains:chain_eltwise", fused, reorders_sums=False)
    last = ["onednn_upsampled_conv2d", "onednn_chain_eltwise", "onednn_chain_conv2d"]
    add("read_early", "early:read_early", last, reorders_sums=False)
    fused_floats = ["onednn_fuse_squeeze_excite", "onednn_upsampled_conv2d", "onednn_winograd", "onednn_chain_conv2d"]
    convs, products = ["conv2d", "depthwise_conv2d"], ["mul", "matmul", "matmul_v2", "fc"]
    add("int8_conv2d", "int8:convolutions", fused, fused_floats, ops=convs, precision="int8")
    add("int8_matmul", "int8:products", fused, ["onednn_fuse_recurrent"], ops=products, precision="int8")
    old = "int8:restore_factors"
    add("int8_restored", old, ops=convs + products, precision="int8", stage="canonicalize")
    steps = ["onednn_int8_conv2d", "onednn_int8_matmul"]
    add("int8_results", "int8:join", steps, reorders_sums=False, ops=convs + products, precision="int8")
    first = ["onednn_fuse_conv2d", "onednn_fuse_matmul", "onednn_batch_norm", "onednn_fuse_attention"]
    add("bfloat16_said", "bfloat16:said", before=first, ops=convs + products)
    # what stays one convolution is known before others are rewritten for float32
    add("bfloat16_first", "bfloat16:first", convolutions[:3], ["onednn_winograd"], ops=convs)
    add("bfloat16_conv2d", "bfloat16:convolutions", ["onednn_read_early"], ops=convs)
    transposed = ["conv2d_transpose", "depthwise_conv2d_transpose"]
    add("bfloat16_conv2d_transpose", "bfloat16:transposed", ["onednn_pair_conv2d_transpose"], ops=transposed)
    add("bfloat16_matmul", "bfloat16:products", ["onednn_read_early"], ops=products)
    add("bfloat16_results", "bfloat16:join", ["onednn_bfloat16_conv2d"], ops=convs)
