"""The library as the core knows it: whether it serves, how many threads it uses, and which sizes it takes."""

from __future__ import annotations

from contextlib import AbstractContextManager

from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.kernels.declare import no_limits


class KernelLibrary:
    """What `register.library` names: above all that it speaks for, which knows nothing of it."""

    def usable(self) -> bool:
        """Whether it serves this process; opens oneDNN."""
        return LIBRARY.usable()

    def status(self) -> str:
        """One line: the version and what it runs on, or why it does not serve."""
        return LIBRARY.status()

    def identity(self) -> str:
        """The version and the instructions that it uses, by which optimised models are kept on disk."""
        return LIBRARY.identity()

    def limit_threads(self, count: int) -> AbstractContextManager[None]:
        """Let primitives that the calling Python thread runs use `count` threads, for the length of a with block."""
        return THREAD.limited(count)

    def without_size_limits(self) -> AbstractContextManager[None]:
        """Let kernels take arrays of any size, in all threads, for the length of a with block; meant for tests."""
        return no_limits()


KERNEL_LIBRARY = KernelLibrary()
