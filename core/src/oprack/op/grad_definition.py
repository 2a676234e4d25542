"""GradOpDef: the definition of a gradient op, derived from that of its forward op."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from oprack.errors import DefinitionError
from oprack.op.definition import OpDef
from oprack.op.grad import ForwardOp


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
            from oprack.op.grad_derivation import Derivation

            Derivation(cls, of, **cls._arguments).complete()
