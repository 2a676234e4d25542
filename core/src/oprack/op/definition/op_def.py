"""OpDef: one class that holds every device-independent rule of an op."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from oprack.errors import DefinitionError
from oprack.op.attrs import Attr
from oprack.op.facets import FACETS, MEMBERS, GradOpMaker, near_member
from oprack.op.proto import Input, Output, slot_name

# The members of a definition class that are facets: rules are plain functions without self, the others are values.
_RULES = tuple(kind.member for kind in FACETS if kind.is_rule)
_VALUES = tuple(kind.member for kind in FACETS if kind.member and not kind.is_rule)


class OpDef:
    """Base of op definitions: `class Relu(OpDef, type="relu"): ...`; the docstring is the op's documentation.

    Slots and attributes are class attributes, instances of Input, Output and Attr, in the order of the OpProto (an
    attribute whose name is a Python keyword takes a trailing underscore). The facets, all optional but infer_shape:

    infer_shape(ctx): see InferShapeContext.         infer_var_type(ctx): default "outputs like the first input".
    make_grad(fwd): returns GradOp, a list of them, or is `empty_grad` or a GradOpMaker.
    expected_kernel_type(ctx): default "the dtype that all inputs share".
    kernel_type_for_var(slot, actual, expected): default keeps an input's dtype.
    identity(ctx): whether the op, with these attributes, slots and dims, returns its first input as its first output,
    LoD included; if so, passes remove it.
    sbp(ctx): how the op's tensors may be split over devices; see SbpFacet.
    inplace = {"X": "Out"}.                          no_need_buffer_vars = ("X",).
    versions: an OpVersion.

    Raises DefinitionError when a public member is none of these.
    """

    op_type: ClassVar[str] = ""
    grads: ClassVar[bool] = False
    inplace: ClassVar[Mapping[str, str]] = {}
    no_need_buffer_vars: ClassVar[Sequence[str]] = ()
    versions: ClassVar[Any] = None
    infer_shape: ClassVar[Callable[..., None] | None] = None
    infer_var_type: ClassVar[Callable[..., None] | None] = None
    make_grad: ClassVar[Any] = None
    expected_kernel_type: ClassVar[Callable[..., Any] | None] = None
    kernel_type_for_var: ClassVar[Callable[..., Any] | None] = None
    identity: ClassVar[Callable[..., bool] | None] = None
    sbp: ClassVar[Callable[..., Any] | None] = None
    declared: ClassVar[dict[str, Input | Output | Attr]] = {}

    def __init_subclass__(cls, type: str = "", **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.op_type = type
        declared = dict(cls.declared)  # a family's base class may declare shared slots
        for name, value in list(vars(cls).items()):
            if isinstance(value, Input | Output | Attr):
                declared[slot_name(name, grads=cls.grads)] = value
            elif name in _RULES:
                # Rules have no self: called through an instance or the class, they get the context alone.
                if inspect.isfunction(value):
                    setattr(cls, name, staticmethod(value))
            elif not name.startswith("_") and name not in (*_VALUES, "op_type", "declared", "grads"):
                raise DefinitionError(
                    f"definition of op {type or cls.__name__!r}: {name} = {value!r} is no facet"
                    f"{near_member(name, MEMBERS)}; expected Input(...), "
                    f"Output(...), Attr(...), or one of {', '.join((*_RULES, *_VALUES))} (helpers start with '_' or "
                    "live outside the class)"
                )
        cls.declared = declared

    @classmethod
    def members(cls) -> Iterator[tuple[str, Input | Output | Attr]]:
        """Declared slots and attributes by the names that programs use, in order of declaration.

        Yields:
            (name, declaration) of each.
        """
        for name, declaration in cls.declared.items():
            yield (declaration.name or name), declaration

    @classmethod
    def grad_op_maker(cls) -> GradOpMaker | None:
        """The make_grad member as a GradOpMaker; None when the op is not differentiable."""
        from oprack.op.grad import FunctionGradOpMaker

        maker = cls.make_grad
        if maker is None or isinstance(maker, GradOpMaker):
            return maker
        if isinstance(maker, type) and issubclass(maker, GradOpMaker):
            return maker()
        return FunctionGradOpMaker(maker)
