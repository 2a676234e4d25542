"""Place cuda says why it can't be used, and its kernels are listed where they can't run."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import oprack
import oprack_cuda
import pytest
from oprack.desc import OpDesc
from oprack.errors import PreconditionNotMetError
from oprack.packs.manager import default_manager
from oprack_cuda.library import CUDA

no_gpu = pytest.mark.skipif(CUDA.usable(), reason="place cuda can be used here")


@no_gpu
@pytest.mark.parametrize("place", [oprack.CUDAPlace(0), oprack.CUDAPinnedPlace()])
def test_a_place_that_cant_be_used_says_why(place: oprack.CUDAPlace) -> None:
    with pytest.raises(PreconditionNotMetError, match=r"CUDA\w*Place\(.*\) can't be used: .*Run at oprack.CPUPlace"):
        oprack.Executor(place).pool.get(place)


@no_gpu
def test_status_says_why() -> None:
    assert oprack_cuda.status().startswith("not used: ")
    assert default_manager().extensions.libraries()["cuda"] is CUDA


def test_listing_kernels_imports_no_cupy() -> None:
    code = (
        "import sys; from oprack.packs.manager import default_manager as m; "
        "[list(m().kernel_map(t, 'cuda')) for t in ('conv2d', 'relu', 'adam', 'unique', 'gru')]; "
        "print('cupy' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_import_without_gpu_is_cheap() -> None:
    code = "import sys; import oprack_cuda, oprack_cuda.pack; print([m for m in ('numpy', 'cupy') if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_a_fetch_and_a_feed_copy_once() -> None:
    """Copies of a run at place cuda: one for the feed, one for the parameter, one for the fetch."""
    from oprack_cuda.testing import StrictDeviceContext, strict_executor

    copies = []

    class Counting(StrictDeviceContext):
        def from_host(self, array):
            copies.append(("to", array.shape))
            return super().from_host(array)

        def to_host(self, array):
            copies.append(("from", array.shape))
            return super().to_host(array)

    program, scope = oprack.Program(), oprack.Scope()
    with oprack.program_guard(program, oprack.Program()):
        x = oprack.layers.data("x", [2, 3])
        w = program.global_block().create_var("w", dtype="float32", shape=[2, 3], persistable=True)
        block = program.global_block()
        block.create_var("y", dtype="float32", shape=[2, 3])
        block.create_var("z", dtype="float32", shape=[2, 3])
        block.append_op(OpDesc("elementwise_add", {"X": [x.name], "Y": [w.name]}, {"Out": ["y"]}))
        block.append_op(OpDesc("elementwise_mul", {"X": [x.name], "Y": ["y"]}, {"Out": ["z"]}))
    scope.var("w").set(oprack.LoDTensor(np.ones((2, 3), np.float32)))
    executor = strict_executor()
    executor.pool = type(executor.pool)(lambda kind: Counting)
    feed = {"x": np.full((2, 3), 2, np.float32)}
    for expected in (["to", "to", "from"], ["to", "from"], ["to", "from"]):
        copies.clear()
        (z,) = executor.run(program, feed, ["z"], scope)
        assert (z == 6).all() and [way for way, _ in copies] == expected
    assert scope.find_var("w").get().place == oprack.CUDAPlace(0)


def test_a_profile_waits_for_the_device_after_each_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    from oprack.runtime import Profiler
    from oprack_cuda.testing import StrictDeviceContext, strict_executor

    waits = []
    monkeypatch.setattr(StrictDeviceContext, "synchronize", lambda self: waits.append(1))
    program = oprack.Program()
    block = program.global_block()
    for name in ("x", "y"):
        block.create_var(name, dtype="float32", shape=[3])
    block.append_op(OpDesc("tanh", {"X": ["x"]}, {"Out": ["y"]}))
    executor, feed = strict_executor(prepared=False), {"x": np.ones(3, np.float32)}
    executor.run(program, feed, ["y"])
    plain = len(waits)
    with Profiler():
        executor.run(program, feed, ["y"])
    assert len(waits) == 2 * plain + 1
