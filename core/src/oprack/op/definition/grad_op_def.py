"""GradOpDef: the definition of a gradient op, derived from that of its forward op."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar, NoReturn

from oprack.errors import DefinitionError, did_you_mean
from oprack.op.attrs import Attr
from oprack.op.definition.op_def import OpDef
from oprack.op.facets import GradOpMaker
from oprack.op.grad import ForwardOp, GradOp, SlotRef
from oprack.op.infer import dtype_of
from oprack.op.proto import Input, Output
from oprack.types import EMPTY_VAR, GRAD_SUFFIX


class GradOpDef(OpDef):
    """Base of gradient ops: members spelled `Out_grad` are the slot `Out@GRAD`.

    With `of`, everything follows from the forward op; what the class body says itself overrides it:

        class MatmulGrad(GradOpDef, of=Matmul, reads="X Y"):
            "$$X@GRAD = Out@GRAD Y^T$$ ..."

    * The type is that of the forward op with `_grad`.
    * Inputs are the slots of the forward op that the gradient reads, then the gradients of its outputs; outputs are the
      gradients of its inputs; attributes are the forward op's, with its defaults and checks.
    * The forward op gets a make_grad that binds these slots and passes its attributes on, unless it has its own. Both
      classes then have to be in one module, since definitions are imported one by one.
    * infer_shape: each gradient has the shape and LoD of its variable. infer_var_type: and its kind and dtype.
    * expected_kernel_type: where inputs may differ in dtype (the forward op has a rule of its own, or something is read
      for its shape only), the dtype of the first gradient that flows in.
    * no_need_buffer_vars: the slots of `shape_of`.

    Class arguments; those that name slots are the slots of the forward op with spaces in between, and a base class may
    give them for a family:

    of: the definition of the forward op.
    reads: inputs and outputs of the forward op that the gradient reads. They stand in the OpProto in the forward op's
        order, and gradients of all outputs but intermediate ones follow. When `reads` names a gradient ("Out@GRAD X"),
        the order is as written, and no others are read. "Mask?" makes a slot dispensable.
    shape_of: inputs and outputs of which only shape and LoD are read, in addition to `reads` or marked among them.
    grads_of: inputs whose gradients it computes, by default all; "X?" makes that slot dispensable.
    like: the slot that gives shape and LoD to the gradients of inputs that are not read themselves; or a table
        {"X": "Out"} for some inputs, read or not.
    dims: slot that is read -> a function of the InferShapeContext that gives the dims it must have, for the gradient of
        an output whose shape kernels rely on.
    lod: False where gradients get no LoD.
    linear: True where the forward op is linear in the inputs of `grads_of` together, so that the gradient of its
        gradient is the forward op.
    attrs: the attributes that it takes over, by default all.
    names: slots with another name than in the forward op: {"Out@GRAD": "grad_out"}. Gradients of gradient ops need it.
    grad_names: gradients with another name than that of the slot and @GRAD: {"X@GRAD": "DDX"}.
    when: slot -> a function of the ForwardOp; make_grad leaves the slot out where it gives False.

    Slots that the body, or a base class, declares as Input or Output are bound to the forward op's slot of that name
    like those of `reads` and `grads_of`, and take the place of these arguments where they are missing.

    Raises DefinitionError when a class argument names a slot that the forward op does not have, and when shape or
    make_grad don't follow from what is declared.
    """

    grads = True
    _arguments: ClassVar[Mapping[str, Any]] = {}
    _derived: ClassVar[tuple[Callable[..., Any], ...]] = ()

    def __init_subclass__(
        cls,
        type: str = "",
        *,
        of: type[OpDef] | None = None,
        reads: str | None = None,
        shape_of: str | None = None,
        grads_of: str | None = None,
        like: str | Mapping[str, str] | None = None,
        dims: Mapping[str, Callable[[Any], Sequence[int]]] | None = None,
        lod: bool | None = None,
        linear: bool | None = None,
        attrs: str | None = None,
        names: Mapping[str, str] | None = None,
        grad_names: Mapping[str, str] | None = None,
        when: Mapping[str, Callable[[ForwardOp], bool]] | None = None,
        **kwargs: Any,
    ) -> None:
        if of is not None and not of.op_type:
            raise DefinitionError(
                f"definition of op {type or cls.__name__!r}: of={of.__name__} has no op type; expected the definition "
                'of the forward op, class ...(OpDef, type="...")'
            )
        super().__init_subclass__(type=type or (of.op_type + "_grad" if of is not None else ""), **kwargs)
        plain: dict[str, Any] = {
            "reads": reads,
            "shape_of": shape_of,
            "grads_of": grads_of,
            "like": like,
            "lod": lod,
            "linear": linear,
            "attrs": attrs,
        }
        tables: dict[str, Any] = {"names": names, "grad_names": grad_names, "when": when, "dims": dims}
        inherited = cls._arguments
        given = {k: v for k, v in plain.items() if v is not None}
        given |= {k: {**inherited.get(k, {}), **v} for k, v in tables.items() if v is not None}
        cls._arguments = {**inherited, **given}
        if of is not None:
            Derivation(cls, of, **cls._arguments).complete()


Condition = Callable[[ForwardOp], bool]
Dims = Callable[[Any], Sequence[int]]


class DerivedGradOpMaker(GradOpMaker):
    """The gradient op that a GradOpDef declares for its forward op; slots that the forward op lacks are left out."""

    def __init__(
        self,
        op_type: str,
        inputs: Mapping[str, SlotRef],
        outputs: Mapping[str, SlotRef],
        when: Mapping[str, Condition] | None = None,
    ) -> None:
        self.op_type, self.inputs, self.outputs, self.when = op_type, inputs, outputs, when or {}

    def __call__(self, fwd: ForwardOp) -> GradOp:
        inputs, outputs = self._present(fwd, self.inputs), self._present(fwd, self.outputs)
        return GradOp(self.op_type, attrs=fwd.attrs, inputs=inputs, outputs=outputs)

    def _present(self, fwd: ForwardOp, refs: Mapping[str, SlotRef]) -> dict[str, SlotRef]:
        left_out = {slot for slot, condition in self.when.items() if slot in refs and not condition(fwd)}
        return {
            slot: ref
            for slot, ref in refs.items()
            if slot not in left_out
            and (fwd.has_input(ref.slot) if ref.role.startswith("input") else fwd.has_output(ref.slot))
        }


def shapes_like(
    pairs: Sequence[tuple[str, str, bool]], dims: Sequence[tuple[str, Dims]], *, lod: bool
) -> Callable[[Any], None]:
    """Make the shape rule of a gradient op.

    Args:
        pairs: (gradient, the input whose shape it gets, whether both hold lists).
        dims: (input, the dims that it must have).
        lod: Whether gradients get the LoD as well.
    """

    def infer_shape(ctx: Any) -> None:
        for slot, expected in dims:
            ctx.require_dims(slot, expected(ctx), why="what the forward op gives")
        for grad, source, is_list in pairs:
            for i in range(ctx.input_count(source)) if is_list else (0,) if ctx.has_input(source) else ():
                ctx.set_dim(grad, ctx.dim(source, i), i)
                if lod:
                    ctx.share_lod(source, grad, i, i)

    return infer_shape


def types_like(pairs: Sequence[tuple[str, Sequence[str], bool]]) -> Callable[[Any], None]:
    """Make the type rule of a gradient op.

    Args:
        pairs: (gradient, inputs of which the first present one gives container and dtype, whether it holds a list).
    """

    def infer_var_type(ctx: Any) -> None:
        for grad, sources, is_list in pairs:
            source = next((s for s in sources if ctx.has_input(s)), None)
            for i, name in enumerate(ctx.output_names(grad) if source is not None else ()):
                if name != EMPTY_VAR:
                    # where the list itself is absent, one gradient may stand for all of it: stack_grad reads Y@GRAD
                    j = i if is_list and i < ctx.input_count(source) else 0
                    ctx.set_kind(grad, ctx.kind(source, j), i)
                    ctx.set_dtype(grad, ctx.dtype(source, j), i)

    return infer_var_type


class Derivation:
    """One gradient op's definition while it is completed; arguments as those of GradOpDef."""

    def __init__(
        self,
        grad: type[GradOpDef],
        of: type[OpDef],
        *,
        reads: str | None = None,
        shape_of: str = "",
        grads_of: str | None = None,
        like: str | Mapping[str, str] = "",
        dims: Mapping[str, Dims] | None = None,
        lod: bool = True,
        linear: bool = False,
        attrs: str | None = None,
        names: Mapping[str, str] | None = None,
        grad_names: Mapping[str, str] | None = None,
        when: Mapping[str, Condition] | None = None,
    ) -> None:
        self.grad, self.of, self.names, self.grad_names = grad, of, names or {}, grad_names or {}
        self.forward_inputs: dict[str, Input] = _members(of, Input)
        self.forward_outputs: dict[str, Output] = _members(of, Output)
        self.flowing = {slot + GRAD_SUFFIX: slot for slot in self.forward_outputs}
        self.like, self.lod, self.linear, self.dims = like, lod, linear, dims or {}
        self.attrs: dict[str, Any] = _members(of, Attr)
        if attrs is not None:
            self.attrs = {name: self.attrs[name] for name in self._slots("attrs", attrs, self.attrs)}
        self.own_inputs, self.own_outputs = _members(grad, Input), _members(grad, Output)
        # our slot -> what it is bound to; None where only the forward op's own make_grad knows
        self.inputs: dict[str, SlotRef | None] = {}
        self.outputs: dict[str, SlotRef | None] = {}
        self.shape_only: list[str] = []
        self._bind_inputs(reads, shape_of)
        self._bind_outputs(grads_of)
        self.when = when or {}
        for argument, slots in (("names", self.names), ("grad_names", self.grad_names)):
            for slot in slots:
                self._require(argument, slot, {**self.forward_inputs, **self.forward_outputs}, of.op_type)
        for slot in self.when:
            self._require("when", slot, {**self.inputs, **self.outputs}, "this op")

    def complete(self) -> None:
        """Set on the gradient op's class what it does not say itself, and make_grad on the forward op's."""
        grad = self.grad
        grad.declared = self._members() | _members(grad, Attr)
        # A base's does not count, since its slots may have other names.
        if self.shape_only and "no_need_buffer_vars" not in vars(grad):
            grad.no_need_buffer_vars = tuple(self.shape_only)
        if self._lacks("infer_shape"):
            self._set("infer_shape", shapes_like(self._shapes(), self._required_dims(), lod=self.lod))
        if self._lacks("infer_var_type"):
            self._set("infer_var_type", types_like(self._types()))
        if self._lacks("expected_kernel_type") and (self.of.expected_kernel_type is not None or self.shape_only):
            self._set("expected_kernel_type", dtype_of(*self._flowing_first(with_shapes=False)))
        self._set_make_grad()
        if self.linear and grad.make_grad is None:
            grad.make_grad = self._forward_again()

    def _members(self) -> dict[str, Input | Output | Attr]:
        """Attributes and slots by the class's names for them: its own where it declares them, else derived."""
        members: dict[str, Input | Output | Attr] = dict(self.attrs)
        own = {d.name or key: key for key, d in self.grad.declared.items()}
        for slot, ref in self.inputs.items():
            members[own.get(slot, slot)] = self.own_inputs.get(slot) or self._derived_input(slot, ref)
        for slot, ref in self.outputs.items():
            members[own.get(slot, slot)] = self.own_outputs.get(slot) or self._derived_output(slot, ref)
        return members

    # Slots ----------------------------------------------------------------------------------------------------------
    def _bind_inputs(self, reads: str | None, shape_of: str) -> None:
        known = self._readable()
        names = {slot: self._name(ref) for slot, ref in known.items()}
        read = {} if reads is None else self._slots("reads", reads, known)
        for slot, marked in self._slots("shape_of", shape_of, known).items():
            read[slot] = marked or read.get(slot, False)
            self.shape_only.append(names[slot])
        bound = {name: slot for slot, name in reversed(names.items())}
        own = [bound[name] for name in self.own_inputs if name in bound]
        # the order of the slots is that of the wire: the class's own declarations lead unless `reads` says an order
        slots = self._with_flowing([*own, *read] if reads is None else [*read, *own], known)
        self.inputs = {names[slot]: known[slot] for slot in slots}
        self.inputs |= {name: None for name in self.own_inputs if name not in bound}
        self.dispensable = {names[slot] for slot, marked in read.items() if marked}

    def _with_flowing(self, slots: list[str], known: Mapping[str, SlotRef]) -> list[str]:
        """The slots, and the gradients of all outputs where none of them is named; then in the forward op's order."""
        if any(known[slot].role == "output_grad" for slot in slots):
            return slots
        flowing = [g for g, slot in self.flowing.items() if not self.forward_outputs[slot].intermediate]
        return [slot for slot in known if slot in slots] + flowing

    def _readable(self) -> dict[str, SlotRef]:
        """What can be read, by its name in the forward op; an output hides an input of the same name."""
        inputs = {slot: SlotRef("input", slot) for slot in self.forward_inputs}
        outputs = {slot: SlotRef("output", slot) for slot in self.forward_outputs}
        gradients = {slot: SlotRef("output_grad", base) for slot, base in self.flowing.items()}
        return inputs | outputs | gradients

    def _bind_outputs(self, grads_of: str | None) -> None:
        known = {slot: SlotRef("input_grad", slot) for slot in self.forward_inputs}
        names = {slot: self._name(ref) for slot, ref in known.items()}
        bound = {name: slot for slot, name in names.items()}
        own = [bound[name] for name in self.own_outputs if name in bound]
        if grads_of is None:
            wanted = dict.fromkeys(own or known, False)
        else:
            wanted = self._slots("grads_of", grads_of, known) | dict.fromkeys(own, False)
        self.outputs = {names[slot]: known[slot] for slot in wanted}
        self.outputs |= {name: None for name in self.own_outputs if name not in bound}
        self.dispensable |= {names[slot] for slot, marked in wanted.items() if marked}
        self._require_apart()

    def _require_apart(self) -> None:
        """Fail when one name would be an input and an output of the gradient op."""
        both = [name for name in self.outputs if name in self.inputs]
        if both:
            self._fail(
                f"slot {both[0]!r} would be an input and an output; expected another name for one of them, such as "
                f'names={{"{both[0]}": "grad_{both[0].removesuffix(GRAD_SUFFIX).lower()}"}}'
            )

    def _derived_input(self, slot: str, ref: SlotRef | None) -> Input:
        assert ref is not None  # slots that are bound to nothing are declared by the class itself
        if ref.role == "output_grad":
            d: Any = self.forward_outputs[ref.slot]
            doc, dispensable = f"Gradient of {ref.slot} of {self.of.op_type}.", False
        else:
            d = (self.forward_inputs if ref.role == "input" else self.forward_outputs)[ref.slot]
            only = "; only its shape and LoD are read" if slot in self.shape_only else ""
            doc, dispensable = f"As {ref.slot} of {self.of.op_type}{only}.", d.dispensable
        return Input(
            doc,
            dispensable=dispensable or slot in self.dispensable,
            duplicable=d.duplicable,
            extra=d.extra and ref.role == "input",
            name=slot,
        )

    def _derived_output(self, slot: str, ref: SlotRef | None) -> Output:
        assert ref is not None
        doc = f"Gradient of {ref.slot} of {self.of.op_type}."
        return Output(doc, dispensable=slot in self.dispensable, duplicable=self._is_list(ref), name=slot)

    def _name(self, ref: SlotRef) -> str:
        """What the gradient op calls a slot of the forward op, or the gradient of one."""
        name = self.names.get(ref.slot, ref.slot)
        return self.grad_names.get(ref.slot, name + GRAD_SUFFIX) if ref.role.endswith("grad") else name

    def _slots(self, argument: str, text: str, known: Collection[str]) -> dict[str, bool]:
        """Slots that a class argument names -> whether they are marked as dispensable."""
        found = {word.removesuffix("?"): word.endswith("?") for word in text.split()}
        for slot in found:
            self._require(argument, slot, known, self.of.op_type)
        return found

    def _require(self, argument: str, slot: str, known: Collection[str], owner: str) -> None:
        if slot not in known:
            self._fail(
                f"{argument} names {slot!r}, which {owner} does not have{did_you_mean(slot, known)}; expected "
                f"some of {', '.join(known) or 'none'}"
            )

    # Rules ----------------------------------------------------------------------------------------------------------
    def _shapes(self) -> list[tuple[str, str, bool]]:
        """(gradient, the input that gives its shape and LoD, whether both hold lists)."""
        found = []
        for name, ref in self.outputs.items():
            source = "" if ref is None else self._shape_source(ref.slot)
            if not source:
                self._fail(
                    f"the shape of {name} does not follow, since {ref.slot if ref else name} is not read; expected "
                    'shape_of="..." for its shape, like="..." for a slot of the same shape, or infer_shape'
                )
            found.append((name, source, self._is_list(ref)))
        return found

    def _read_as(self, slot: str) -> str:
        """Our name of an input or output of the forward op, or of the gradient of an output; "" when it is not read."""
        for name, ref in self.inputs.items():
            if ref is not None and slot == ref.slot + (GRAD_SUFFIX if ref.role == "output_grad" else ""):
                return name
        return ""

    def _shape_source(self, slot: str) -> str:
        """Our input whose shape and LoD the gradient of a slot gets; "" when there is none."""
        if isinstance(self.like, str):
            like = "" if self._read_as(slot) else self.like
        else:
            like = self.like.get(slot, "")
        found = self._read_as(like or slot)
        if like and not found:
            self._fail(f"like names {like!r}, which is not read; expected one of {', '.join(self.inputs)}")
        return found

    def _required_dims(self) -> list[tuple[str, Dims]]:
        found = []
        for slot, expected in self.dims.items():
            if not self._read_as(slot):
                self._fail(f"dims names {slot!r}, which is not read; expected some of {', '.join(self.inputs)}")
            found.append((self._read_as(slot), expected))
        return found

    def _types(self) -> list[tuple[str, list[str], bool]]:
        """(gradient, inputs of which the first one that is present gives kind and dtype, whether it holds a list)."""
        flowing, found = self._flowing_first(), []
        for name, ref in self.outputs.items():
            own = "" if ref is None else self._read_as(ref.slot)
            found.append((name, [own, *flowing] if own else flowing, bool(own) and self._is_list(ref)))
        return found

    def _is_list(self, ref: SlotRef | None) -> bool:
        return ref is not None and self.forward_inputs[ref.slot].duplicable

    def _flowing_first(self, *, with_shapes: bool = True) -> list[str]:
        """Our inputs, gradients of outputs first; with_shapes: those included of which only the shape is read."""
        names = [n for n in self.inputs if with_shapes or n not in self.shape_only]
        return sorted(names, key=lambda n: getattr(self.inputs[n], "role", "") != "output_grad")

    def _lacks(self, facet: str) -> bool:
        """Whether neither the class nor a base of it says this rule; one derived for a base does not count."""
        rule = getattr(self.grad, facet)
        return rule is None or (rule in self.grad._derived and facet not in vars(self.grad))

    def _set(self, facet: str, rule: Callable[..., Any]) -> None:
        setattr(self.grad, facet, staticmethod(rule))
        self.grad._derived = (*self.grad._derived, rule)

    # make_grad ------------------------------------------------------------------------------------------------------
    def _set_make_grad(self) -> None:
        of, present = self.of, self.of.make_grad
        own = "make_grad" in vars(of)
        if own and isinstance(present, DerivedGradOpMaker):
            self._fail(f"{of.op_type} has the gradient {present.op_type} already; expected one gradient op of an op")
        if present is not None and (own or not isinstance(present, DerivedGradOpMaker)):
            return
        refs = {**self.inputs, **self.outputs}
        loose = [name for name, ref in refs.items() if ref is None]
        if loose:
            known = [*self.forward_inputs, *self.forward_outputs, *self.flowing]
            self._fail(
                f"slot {loose[0]!r} can't be bound to one of {of.op_type}{did_you_mean(loose[0], known)}; expected "
                f"some of {', '.join(known)}, gradients of its inputs, or a make_grad in {of.__name__}"
            )
        if of.__module__ != self.grad.__module__:
            self._fail(
                f"{of.__name__} is in module {of.__module__}; expected both in one module, or a make_grad in "
                f"{of.__name__}, since definitions are imported one by one"
            )
        of.make_grad = DerivedGradOpMaker(self.grad.op_type, _bound(self.inputs), _bound(self.outputs), self.when)

    def _forward_again(self) -> DerivedGradOpMaker:
        """The gradient of a gradient that is linear in the gradients it reads: the forward op."""
        read, computed = _bound(self.inputs), _bound(self.outputs)
        inputs = {ref.slot: SlotRef("input", name) for name, ref in read.items() if ref.role == "input"}
        inputs |= {ref.slot: SlotRef("output_grad", name) for name, ref in computed.items()}
        outputs = {ref.slot: SlotRef("input_grad", name) for name, ref in read.items() if ref.role == "output_grad"}
        return DerivedGradOpMaker(self.of.op_type, inputs, outputs)

    def _fail(self, what: str) -> NoReturn:
        pack = self.grad.__module__.partition(".")[0]
        raise DefinitionError(f"definition of op {self.grad.op_type!r} (pack {pack}): {what}")


def _members(definition: type[OpDef], kind: type[Any]) -> dict[str, Any]:
    return {d.name or key: d for key, d in definition.declared.items() if isinstance(d, kind)}


def _bound(refs: Mapping[str, SlotRef | None]) -> dict[str, SlotRef]:
    return {name: ref for name, ref in refs.items() if ref is not None}
