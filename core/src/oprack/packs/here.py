"""Ops and kernels that a program or a notebook brings itself, without a pack."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from oprack.errors import DefinitionError
from oprack.packs.installed.entry_points import HERE
from oprack.packs.pack import Pack
from oprack.packs.register import Register

if TYPE_CHECKING:
    from oprack.op import OpDef, OpFacets
    from oprack.packs.manager import PackManager


class Here:
    """What this process adds to the packs of a manager; what can't be added leaves nothing behind.

    Attributes:
        pack: The pack that stands for this process.
        register: Takes what it brings.
    """

    def __init__(self, manager: PackManager) -> None:
        self._manager = manager
        self.register = Register(HERE.name, HERE.distribution)
        self.pack = Pack(HERE)
        self.pack.contributions = self.register.contributions

    def register_op(self, definition: type[OpDef]) -> None:
        """Bring an op by its definition class, in this process.

        A class of the same name, as when a cell of a notebook is run again, takes the place of the one before. Raises
        DuplicateOpError, DefinitionError.
        """
        with self._adding():
            brought = self.pack.contributions
            if _same_source(brought.definitions.get(getattr(definition, "op_type", "")), definition):
                del brought.definitions[definition.op_type]
            self.register.op(definition)
            self._manager.refresh()
            # Built now, so that a wrong definition fails here and is taken back.
            self._manager.op_info(definition.op_type)

    def register_operator(self, op: str | type[OpDef] | OpFacets, *facets: Any) -> None:
        """Bring an op, or facets of one, in this process; see `oprack.register_operator`."""
        from oprack.op import OpFacets

        if isinstance(op, OpFacets):
            self.register_operator(op.op_type, *op.facets, *facets)
            return
        if isinstance(op, type):
            if facets:
                raise DefinitionError(
                    f"register_operator({op.__name__}, ...) got {len(facets)} facets beside a definition class, which "
                    "holds all of them; give the op type and facets, or the class alone"
                )
            self.register_op(op)
            return
        if len(facets) == 1 and (definition := _definition(op, facets[0])) is not None:
            self.register_op(definition)
            return
        with self._adding():
            self.register.operator(op, *facets)
            self._manager.refresh()
            if self._manager.has_op(op):
                self._manager.op_info(op)

    def register_kernel(self, function: Callable[..., Any]) -> None:
        """Bring the kernels that @kernel declared on a function, in this process.

        A function of the same name and module takes the place of the one before, as when a cell of a notebook is run
        again. Raises DefinitionError when it is no kernel or does not match its op, DuplicateKernelError.
        """
        from oprack.kernel import bind_signature

        with self._adding():
            brought = self.pack.contributions
            brought.kernels = [s for s in brought.kernels if not _same_source(_declared(s.function), function)]
            count = len(brought.kernels)
            self.register.kernel(function)
            self._manager.refresh()
            for spec in brought.kernels[count:]:
                if self._manager.has_op(spec.op_type):
                    bind_signature(spec.function, self._manager.op_info(spec.op_type).proto)
                    self._manager.kernel_map(spec.op_type, spec.place).require_untied(spec, HERE.distribution)

    def has_registrations(self) -> bool:
        """Whether this process brought ops, facets or kernels itself, of which no file says what they are."""
        brought = self.pack.contributions
        return bool(brought.definitions or brought.facets or brought.kernels)

    @contextmanager
    def _adding(self) -> Iterator[None]:
        """Take back what was added when it turns out to be wrong."""
        with self._manager.lock:
            self._manager.op_types()  # so that packs are found, and what they bring is not taken back
            brought = self.pack.contributions
            # Copies, as the register adds to these very containers.
            before = (dict(brought.definitions), list(brought.facets), list(brought.kernels))
            try:
                yield
            except BaseException:
                brought.definitions, brought.facets, brought.kernels = before
                self._manager.refresh()
                raise


def _same_source(one: Any, other: Any) -> bool:
    """Whether two objects were written at one place, so that the later is the earlier anew."""

    def source(value: Any) -> tuple[str, str]:
        return getattr(value, "__module__", ""), getattr(value, "__qualname__", "")

    return one is not None and one is not other and source(one) == source(other) and "<locals>" not in source(one)[1]


def _declared(kernel: Any) -> Any:
    """What @kernel stands on: the function, or the class whose method it is."""
    return type(kernel.__self__) if hasattr(kernel, "__self__") else kernel


def _definition(op_type: str, facet: Any) -> type[OpDef] | None:
    """The definition class that was passed for a facet, as a class of this op type; None for another facet."""
    import types

    from oprack.op import OpDef

    if not (isinstance(facet, type) and issubclass(facet, OpDef)):
        return None
    if facet.op_type == op_type:
        return facet
    if facet.op_type:
        raise DefinitionError(
            f"register_operator({op_type!r}, {facet.__name__}): the class defines op {facet.op_type!r}; give "
            f"the class alone, or write class {facet.__name__}(OpDef) without a type"
        )
    about = {name: getattr(facet, name) for name in ("__doc__", "__module__", "__qualname__")}
    return types.new_class(facet.__name__, (facet,), {"type": op_type}, lambda body: body.update(about))
