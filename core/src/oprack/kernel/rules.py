"""KernelRules: which kernels a run may choose among, beside what its ops ask for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


class KernelRules:
    """Set once for an executor; compared by identity, since every look-up of a plan has it in its key.

    excluded: libraries that may not run. by_attr: libraries that run where an attribute of the op asks for them
    (Fluid's use_mkldnn, use_cudnn) and nowhere else; all others run wherever they have the better kernel, whatever the
    attribute says, as in Fluid with its flag for the library set. deterministic: no kernel may run that can't promise
    the same bits on every run.
    """

    __slots__ = ("by_attr", "deterministic", "excluded")

    def __init__(
        self, excluded: Iterable[str] = (), by_attr: Iterable[str] = (), *, deterministic: bool = False
    ) -> None:
        self.excluded, self.by_attr = frozenset(excluded), frozenset(by_attr)
        self.deterministic = bool(deterministic)

    def libraries(self, switches: Mapping[str, str], attrs: Mapping[str, Any]) -> tuple[str, frozenset[str]]:
        """(library that the op asks for, or "plain"; libraries that may not run for it).

        switches: library -> the attribute that switches it. attrs: of the op.
        """
        if not self.by_attr:
            return "plain", self.excluded
        asked = [n for n in sorted(self.by_attr - self.excluded) if attrs.get(switches.get(n, ""))]
        return (asked[0] if asked else "plain"), self.excluded | (self.by_attr - set(asked))

    def __repr__(self) -> str:
        return (
            f"KernelRules(excluded={sorted(self.excluded)}, by_attr={sorted(self.by_attr)}, "
            f"deterministic={self.deterministic})"
        )


ANY_KERNEL = KernelRules()
"""Every kernel may run."""
DETERMINISTIC_KERNELS = KernelRules(deterministic=True)
"""Those that give the same bits on every run."""
