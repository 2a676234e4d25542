"""Ops and kernels that a program or a notebook brings itself, without a pack."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from oprack.errors import DefinitionError
from oprack.packs.catalog import OpCatalog
from oprack.packs.discovery import HERE

if TYPE_CHECKING:
    from oprack.op import OpDef


class ProcessRegistrations(OpCatalog):
    """A catalog to which this process adds; what can't be added leaves nothing behind."""

    def register_op(self, definition: type[OpDef]) -> None:
        """Bring an op by its definition class, in this process. Raises DuplicateOpError, DefinitionError."""
        with self._adding():
            self._register.op(definition)
            self._use_here()
            # Built now, so that a wrong definition fails here and is taken back.
            self.op_info(definition.op_type)

    def register_operator(self, op: str | type[OpDef], *facets: Any) -> None:
        """Bring an op, or facets of one, in this process; see `oprack.register_operator`."""
        if isinstance(op, type):
            if facets:
                raise DefinitionError(
                    f"register_operator({op.__name__}, ...) got {len(facets)} facets beside a definition class, which "
                    "holds all of them; give the op type and facets, or the class alone"
                )
            self.register_op(op)
            return
        with self._adding():
            self._register.operator(op, *facets)
            self._use_here()
            if self.has_op(op):
                self.op_info(op)

    def register_kernel(self, function: Callable[..., Any]) -> None:
        """Bring the kernels that @kernel declared on a function, in this process.

        Raises DefinitionError when it is no kernel or does not match its op, DuplicateKernelError.
        """
        from oprack.kernel import bind_signature

        count = len(self._here.contributions.kernels)
        with self._adding():
            self._register.kernel(function)
            self._use_here()
            for spec in self._here.contributions.kernels[count:]:
                if self.has_op(spec.op_type):
                    bind_signature(spec.function, self.op_info(spec.op_type).proto)
                    self.kernel_map(spec.op_type, spec.place).require_untied(spec, HERE.distribution)

    def has_registrations(self) -> bool:
        """Whether this process brought ops, facets or kernels itself, of which no file says what they are."""
        brought = self._here.contributions
        return bool(brought.definitions or brought.facets or brought.kernels)

    def _use_here(self) -> None:
        self._use(self._packs or [])

    @contextmanager
    def _adding(self) -> Iterator[None]:
        """Take back what was added when it turns out to be wrong."""
        with self._lock:
            self._loaded()
            brought = self._here.contributions
            # Copies, as the register adds to these very containers.
            before = (dict(brought.definitions), list(brought.facets), list(brought.kernels))
            try:
                yield
            except BaseException:
                brought.definitions, brought.facets, brought.kernels = before
                self._use_here()
                raise
