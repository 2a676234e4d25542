"""Entry point of the plugin: hook implementations only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack import hookimpl

if TYPE_CHECKING:
    from oprack.packs import Register


@hookimpl
def oprack_ops(register: Register) -> None:
    """Kernels for ops of other packs, by the strings in ops.toml."""
    register.manifest(__package__)


@hookimpl
def oprack_places(register: Register) -> None:
    """Memory of a GPU, and the page-locked memory of the host that copies to it start from."""
    register.place("cuda", f"{__package__}.context:open_cuda")
    register.place("cuda_pinned", f"{__package__}.context:open_pinned")


@hookimpl
def oprack_libraries(register: Register) -> None:
    """What speaks for CuPy and the driver, and for cuDNN."""
    register.library("cuda", f"{__package__}.library:CUDA")
    register.library("cudnn", f"{__package__}.dnn:CUDNN", attr="use_cudnn")


@hookimpl
def oprack_communicators(register: Register) -> None:
    """Collectives among GPUs; several ranks need a launcher of MPI, which the plugin mpi brings."""
    register.communicator("nccl", f"{__package__}.nccl:open_world")


@hookimpl
def oprack_passes(register: Register) -> None:
    """Ops that go over an array once instead of twice; last, when the generic passes are done."""
    register.pass_(
        "cuda_fuse_bias_act",
        f"{__package__}.passes.bias_act:fuse_bias_act",
        stage="lower",
        place="cuda",
        library="cuda",
        reorders_sums=True,  # 16-bit sums are not rounded before the activation
    )
