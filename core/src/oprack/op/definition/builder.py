"""op("relu").input("x").output("y")...: an op's definition put together call by call, as OneFlow registers ops."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import new_class
from typing import Any, Self

from oprack.errors import AlreadyExistsError, DefinitionError
from oprack.op.attrs import Attr
from oprack.op.definition.grad_op_def import GradOpDef
from oprack.op.definition.op_def import OpDef
from oprack.op.facets import GradOpMaker
from oprack.op.grad import FunctionGradOpMaker
from oprack.op.proto import Input, OpVersion, Output
from oprack.types import AttrType

_RULES = {
    "infer_shape": "infer_shape",
    "infer_dtype": "infer_var_type",
    "grad": "make_grad",
    "expected_kernel_type": "expected_kernel_type",
    "kernel_type_for_var": "kernel_type_for_var",
    "identity": "identity",
    "sbp": "sbp",
}


class OpBuilder:
    """Collects slots, attributes and rules; `definition()` is the class that a definition written by hand would be.

    All other methods return the builder itself.

    Args:
        op_type: The op.
    """

    def __init__(self, op_type: str) -> None:
        self.op_type = op_type
        self._members: dict[str, Input | Output | Attr] = {}
        self._rules: dict[str, Any] = {}
        self._values: dict[str, Any] = {}
        self._doc = ""

    def doc(self, text: str) -> Self:
        """What the op computes, with the formula in LaTeX."""
        self._doc = text
        return self

    # Slots and attributes -------------------------------------------------------------------------------------------
    def input(self, name: str, doc: str = "", *, duplicable: bool = False) -> Self:
        """Add an input slot, which holds a list where it is `duplicable`.

        Args:
            name: The slot.
            doc: What it holds.
            duplicable: Whether it holds a list.

        Returns:
            The builder itself.
        """
        return self._member(name, Input(doc, duplicable=duplicable, name=name))

    def optional_input(self, name: str, doc: str = "", *, duplicable: bool = False) -> Self:
        """An input slot that may be absent.

        Args:
            name: The slot.
            doc: What it holds.
            duplicable: Whether it holds a list.

        Returns:
            The builder itself.
        """
        return self._member(name, Input(doc, dispensable=True, duplicable=duplicable, name=name))

    def output(self, name: str, doc: str = "", *, duplicable: bool = False, intermediate: bool = False) -> Self:
        """Add an output slot; one that is `intermediate` is kept for the gradient and is no part of the result.

        Args:
            name: The slot.
            doc: What it holds.
            duplicable: Whether it holds a list.
            intermediate: Whether it is kept for the gradient alone.

        Returns:
            The builder itself.
        """
        return self._member(name, Output(doc, duplicable=duplicable, intermediate=intermediate, name=name))

    def attr(self, name: str, default: Any, doc: str = "", *, type: AttrType | None = None) -> Self:
        """Add an attribute; `default` is REQUIRED where every op has to give it, or an Attr with checks of its own.

        Args:
            name: The attribute.
            default: Its default, REQUIRED, or an Attr.
            doc: What it means.
            type: Its type on the wire; default: that of the default.

        Returns:
            The builder itself.
        """
        made = default if isinstance(default, Attr) else Attr(default, doc, type=type)
        made.name = name
        return self._member(name, made)

    def _member(self, name: str, member: Input | Output | Attr) -> Self:
        if name in self._members:
            raise AlreadyExistsError(f"op({self.op_type!r}): {name!r} is declared twice")
        self._members[name] = member
        return self

    # Rules ----------------------------------------------------------------------------------------------------------
    def infer_shape(self, rule: Callable[[Any], None]) -> Self:
        """rule(ctx) sets shapes and LoD of the outputs; see InferShapeContext."""
        return self._rule("infer_shape", rule)

    def infer_dtype(self, rule: Callable[[Any], None]) -> Self:
        """Set the type rule: `rule(ctx)` sets container and dtype of the outputs; by default like the first input."""
        return self._rule("infer_dtype", rule)

    def expected_kernel_type(self, rule: Callable[[Any], Any]) -> Self:
        """rule(ctx) says which OpKernelType fits; default: the dtype that all inputs share."""
        return self._rule("expected_kernel_type", rule)

    def kernel_type_for_var(self, rule: Callable[..., Any]) -> Self:
        """rule(slot, actual, expected) says into which OpKernelType an input is transformed; default: it stays."""
        return self._rule("kernel_type_for_var", rule)

    def identity(self, rule: Callable[[Any], bool]) -> Self:
        """rule(ctx) says whether a use of the op returns its first input, so that passes remove it."""
        return self._rule("identity", rule)

    def sbp(self, rule: Callable[[Any], Any]) -> Self:
        """rule(ctx) says how the op's tensors may be split over devices; see SbpFacet."""
        return self._rule("sbp", rule)

    def grad(self, maker: Callable[[Any], Any] | GradOpMaker) -> Self:
        """maker(fwd) returns the gradient ops; `empty_grad` when nothing flows back."""
        return self._rule("grad", maker)

    def inplace(self, pairs: Mapping[str, str]) -> Self:
        """Input -> output that may be written to its memory."""
        self._values["inplace"] = dict(pairs)
        return self

    def no_need_buffer(self, *slots: str) -> Self:
        """Inputs of which only shape and LoD are read."""
        self._values["no_need_buffer_vars"] = slots
        return self

    def versions(self, history: OpVersion) -> Self:
        """Set the history of the op's signature."""
        self._values["versions"] = history
        return self

    def _rule(self, name: str, rule: Any) -> Self:
        if name in self._rules:
            raise AlreadyExistsError(f"op({self.op_type!r}): {name} is set twice")
        if not callable(rule):
            raise DefinitionError(f"op({self.op_type!r}): {name}({rule!r}) is no function; expected rule(ctx)")
        self._rules[name] = rule
        return self

    # The result -----------------------------------------------------------------------------------------------------
    def definition(self) -> type[OpDef]:
        """The definition class, for `register.op` in a pack or `default_manager().register_op`.

        Raises:
            DefinitionError: The message lists everything that is missing.
        """
        missing = []
        if not self.op_type:
            missing.append('the type, op("relu")')
        if not any(isinstance(m, Output) for m in self._members.values()):
            missing.append('an output, .output("y")')
        if "infer_shape" not in self._rules:
            missing.append("the shape rule, .infer_shape(rule)")
        if missing:
            raise DefinitionError(f"op({self.op_type!r}) is not finished; it needs {', '.join(missing)}")
        body: dict[str, Any] = {"__doc__": self._doc or None, "__module__": _module_of(self._rules["infer_shape"])}
        for name, rule in self._rules.items():
            made = FunctionGradOpMaker(rule) if name == "grad" and not isinstance(rule, GradOpMaker) else rule
            body[_RULES[name]] = made if isinstance(made, GradOpMaker) else staticmethod(made)
        body |= self._values
        base = GradOpDef if self.op_type.endswith("_grad") else OpDef
        names = {f"slot{i}": m for i, m in enumerate(self._members.values())}
        made_class: type[OpDef] = new_class(
            self.op_type, (base,), {"type": self.op_type}, lambda namespace: namespace.update(body | names)
        )
        return made_class


def _module_of(rule: Any) -> str:
    return str(getattr(rule, "__module__", __name__))


def op(op_type: str) -> OpBuilder:
    """Start the definition of an op: `op("relu").input("x").output("y").infer_shape(rule).definition()`.

    Args:
        op_type: The op.

    Returns:
        The builder.
    """
    return OpBuilder(op_type)
