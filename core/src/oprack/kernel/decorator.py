"""@kernel: declares a function to be a kernel; nothing is registered until a pack names its module."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import field
from types import ModuleType
from typing import Any, TypeVar

from oprack.errors import DefinitionError
from oprack.kernel.predicates import Predicate
from oprack.kernel.specialization import Specialize
from oprack.python.records import dataclass
from oprack.types import ALL_DTYPES

F = TypeVar("F", bound=Callable[..., Any])
_MARK = "__oprack_kernels__"


@dataclass(frozen=True)
class KernelSpec:
    """One declared kernel at one place; its fields are the arguments of `kernel`, which says more of them.

    Attributes:
        op_type: The op.
        place: "cpu" or "cuda".
        dtypes: Names of the dtypes that it computes in.
        function: The kernel.
        library: The library whose functions it calls; "plain" for none.
        when: A condition on attributes, dtypes, containers and the place; None: always.
        priority: Of the kernels that fit, the one with the highest is chosen.
        view: Whether results may be views of the first input's memory.
        min_numel: Number of elements of the first input below which the next kernel takes over.
        specialize: Makes a function for a plan; None: none.
        deterministic: Whether the same inputs give the same bits on every run.
        may_decline: Whether it may leave a call to the next kernel that fits.
        owner: The distribution that brings it, set when it is registered.
        module: The module that declares it; a function that several ops share may be another module's.
    """

    op_type: str
    place: str
    dtypes: frozenset[str]
    function: Callable[..., Any]
    library: str = "plain"
    when: Predicate | None = field(default=None, compare=False)
    priority: int = 0
    view: bool = False
    min_numel: int = 0
    specialize: Specialize | None = None
    deterministic: bool = True
    may_decline: bool = False
    owner: str = ""
    module: str = field(default="", compare=False)

    @property
    def where(self) -> str:
        """file:line of the function; where a decorator wraps it, of the function inside."""
        code = getattr(inspect.unwrap(self.function), "__code__", None)
        return f"{code.co_filename}:{code.co_firstlineno}" if code else repr(self.function)

    @property
    def name(self) -> str:
        """Module and name of the function."""
        return f"{self.function.__module__}.{getattr(self.function, '__qualname__', '?')}"

    def always_ties(self, other: KernelSpec) -> bool:
        """Whether the two tie in every call that both fit, apart from their containers."""
        mine, theirs = ((s.place, s.library, s.priority, s.min_numel) for s in (self, other))
        # Whether two predicates hold together is known only in a call; one predicate always holds together with itself.
        return mine == theirs and self.when is other.when and bool(self.dtypes & other.dtypes)


def kernel(
    op_type: str,
    *,
    place: str | Collection[str] = "cpu",
    dtypes: Collection[str] = ALL_DTYPES,
    library: str = "plain",
    when: Predicate | None = None,
    priority: int = 0,
    view: bool = False,
    min_numel: int = 0,
    specialize: Specialize | None = None,
    deterministic: bool | Collection[str] = True,
    may_decline: bool = False,
) -> Callable[[F], F]:
    """Declare a kernel of an op. The decorator may be stacked for several ops.

    Where several ops share one function of another module, the module of each op names it:
    `conv3d = kernel("conv3d", dtypes=FLOATS)(convolution)`.

    It may be a class as well, with a method `compute(self, ...)` of these parameters: one object is made without
    arguments, and several threads may be in it at once.

    The function's positional parameters are input slots: a list for a duplicable one, None for an absent one, and
    `Out_grad` for the slot `Out@GRAD`. Its keyword-only parameters are attributes, or the injected `out`, `ctx` and
    `xp`. A parameter annotated with a NamedTuple class takes all the slots, or attributes, that are its fields; those
    that the op does not have must have a default.

    It returns the outputs in the order of the OpProto (one value, or a tuple) or as a dict by slot, where None leaves
    an output unset. The program owns what is returned, and an op in place may overwrite it: return no array that the
    kernel keeps for itself.

    Args:
        op_type: The op.
        place: "cpu", "cuda" or both.
        dtypes: Names of the dtypes that the kernel computes in, compared with that of the OpKernelType.
        library: The library whose functions it calls; "plain" for none.
        when: A condition on attributes, dtypes, containers and the place; None means always.
        priority: Of the kernels that fit, the one with the highest priority is chosen.
        view: Whether results may be views of the first parameter's memory.
        min_numel: Number of elements of the first input below which the next kernel that fits takes over. That kernel
            must return its outputs in the same form (an array, a tuple or a dict).
        specialize: Called with a KernelSpecialization when a plan is made. What it returns is called in place of the
            kernel, with the inputs alone, and may decline where the kernel may. It may be a ufunc, or keep what it
            works out for the shapes that it meets, and several threads may be in it at once. It may return None, which
            leaves the kernel as it is.
        deterministic: False where the same inputs may give other bits on the next run, as sums by atomics on a GPU do,
            or the set of places where they give the same. Elsewhere the kernel is left out of runs that ask for
            determinism.
        may_decline: Whether it may return NotImplemented, or `decline("why")`, to leave a call to the next kernel that
            fits. It decides before it writes to `out` and before it draws random numbers.

    Returns:
        A decorator that leaves a KernelSpec for each place on the function or class, and returns it.

    Raises:
        DefinitionError: A class has no method compute, `dtypes` has unknown names, `when` is no predicate, or
            `deterministic` is a string.
    """
    places = (place,) if isinstance(place, str) else tuple(place)
    unknown = set(dtypes) - ALL_DTYPES
    if unknown or not dtypes:
        raise DefinitionError(
            f"@kernel({op_type!r}): dtypes has {sorted(unknown) or 'nothing'}; expected names from {sorted(ALL_DTYPES)}"
        )

    if when is not None and not isinstance(when, Predicate):
        raise DefinitionError(
            f"@kernel({op_type!r}): when={when!r} is no predicate; expected a comparison, such as attr('groups') == 1, "
            "or a function under @predicate('its text')"
        )

    if isinstance(deterministic, str):
        raise DefinitionError(
            f"@kernel({op_type!r}): deterministic={deterministic!r}; expected True, False or a set of places, such as "
            f"{{{deterministic!r}}}"
        )

    def mark(declared: F) -> F:
        if _MARK not in vars(declared):
            setattr(declared, _MARK, [])
        specs = vars(declared)[_MARK]
        function = _compute_of(declared, op_type, specs) if isinstance(declared, type) else declared
        caller = sys._getframe(1)
        # At the top level of a module the kernel is that module's, even if the function is another's. A function that
        # declares kernels for other modules is not at that level.
        module = caller.f_globals.get("__name__") if caller.f_code.co_name == "<module>" else None
        for p in places:
            spec = KernelSpec(
                op_type,
                p,
                frozenset(dtypes),
                function,
                library,
                when,
                priority,
                view,
                module=module or function.__module__,
                may_decline=may_decline,
                min_numel=min_numel,
                specialize=specialize,
                deterministic=deterministic if isinstance(deterministic, bool) else p in deterministic,
            )
            specs.append(spec)
        return declared

    return mark


def kernel_specs(module: ModuleType) -> Iterator[KernelSpec]:
    """The kernels declared in a module, in order, without those that another module declared on what it imported.

    Args:
        module: The module.

    Yields:
        Each KernelSpec.
    """
    functions = {id(f): f for f in list(vars(module).values()) if _MARK in getattr(f, "__dict__", {})}
    for function in functions.values():
        yield from (spec for spec in function.__dict__[_MARK] if spec.module == module.__name__)


def _compute_of(cls: type, op_type: str, specs: Sequence[KernelSpec]) -> Callable[..., Any]:
    """The method of a kernel class that computes, bound to an object that all its calls, and all `specs`, share."""
    if specs:
        return specs[0].function
    where = f"@kernel({op_type!r}) class {cls.__qualname__}"
    compute = getattr(cls, "compute", None)
    if not callable(compute):
        near = [name for name in ("Compute", "__call__", "forward", "run") if name in vars(cls)]
        raise DefinitionError(
            f"{where} has no method compute"
            + (f" (it has {near[0]})" if near else "")
            + "; expected def compute(self, X, *, scale): inputs by position, attributes by keyword, as arrays and "
            "Python values"
        )
    try:
        instance: Any = cls()
    except TypeError as error:
        raise DefinitionError(f"{where} can't be made without arguments: {error}; give __init__ none") from error
    method: Callable[..., Any] = instance.compute
    return method
