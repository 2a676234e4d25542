"""What speaks for the library: scipy.special, whose functions are ufuncs on one thread."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext


class Library:
    """The kernel library scipy_special."""

    def status(self) -> str:
        """One line for `oprack doctor`."""
        import scipy

        return f"SciPy {scipy.__version__}"

    def limit_threads(self, count: int) -> AbstractContextManager[None]:
        """It uses one thread anyway."""
        return nullcontext()


LIBRARY = Library()
