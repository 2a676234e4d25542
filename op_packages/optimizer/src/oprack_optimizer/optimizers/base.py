"""Optimizer: what all optimizers share: gradients, clipping, decay, learning rates, and the variables of the state."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from oprack import initializer
from oprack.autodiff import OpRole
from oprack.errors import InvalidArgumentError, NotFoundError, PreconditionNotMetError
from oprack.layers import (
    LayerHelper,
    Parameter,
    Variable,
    append_backward,
    append_op,
    check_variable,
    default_startup_program,
    name_scope,
    op_role_guard,
    unique_name,
)
from oprack.names.spellings import InitSignature, accept_other_names, require_keywords

from oprack_optimizer.clip import GradientClip
from oprack_optimizer.optimizers.accumulators import Accumulator, beta_powers
from oprack_optimizer.optimizers.eager import EagerSteps
from oprack_optimizer.optimizers.groups import settings_of, split_groups
from oprack_optimizer.optimizers.parameters import checked_parameters
from oprack_optimizer.optimizers.rates import Rates, checked_rate
from oprack_optimizer.regularizer import L2Decay, WeightDecay, append_regularization

if TYPE_CHECKING:
    from oprack import Program


__all__ = ["Accumulator", "Optimizer", "Pair", "beta_powers"]

Pair = tuple[Parameter, Variable]
_SHARED = {
    "learning_rate": "A number, or a scheduler of oprack.optimizer.lr.",
    "parameters": 'What to train, as `net.parameters()` gives it; or groups, dicts with "params" and settings for\n'
    "        them alone. None: in a program, all that are trainable.",
    "parameter_list": "Fluid's name of parameters.",
    "weight_decay": "The coefficient of L2Decay, or a WeightDecay, for parameters without one of their own.",
    "regularization": "Fluid's name of weight_decay.",
    "grad_clip": "A GradientClip, such as ClipGradByGlobalNorm(1.0).",
    "name": "Goes into the names of the state.",
}
"""What the arguments mean that all optimizers share, for their docstrings."""


def _rate_first(args: tuple[Any, ...], options: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of PyTorch's order, `SGD(net.parameters(), 0.1)`, in the order here."""
    if not args or len(args) > 2 or not (isinstance(args[0], list | tuple) or hasattr(args[0], "__next__")):
        return args, options
    if "parameters" in options or "parameter_list" in options:
        return args, options
    return args[1:], {**options, "parameters": args[0]}


class Optimizer(EagerSteps, Rates):
    """Base of the optimizers; a subclass says its op, its state and its attributes.

    An optimizer serves either one program, whose variables hold its state, or eager tensors. In a program,
    `minimize(loss)` appends what trains it; with eager tensors, `loss.backward(); optimizer.step();
    optimizer.clear_grad()` is a step.

    Args:
        learning_rate: A number, a scheduler of oprack.optimizer.lr, or a Variable of one element.
        parameters: What to train. In a program Parameters or their names; None: all that are trainable. Otherwise eager
            tensors, as `net.parameters()` gives them, or (path, tensor) pairs, as `net.named_parameters()` gives them,
            so that the paths name the state. Or groups: dicts with "params" and settings of this class for them alone,
            where "learning_rate" is a factor of the optimizer's.
        parameter_list: Fluid's name of parameters.
        weight_decay: The coefficient of L2Decay, or a WeightDecay, for parameters without one of their own.
        regularization: Fluid's name of weight_decay.
        grad_clip: A GradientClip, such as ClipGradByGlobalNorm(1.0).
        name: Goes into the names of the state.

    Raises:
        InvalidArgumentError: An argument is of another kind, or is given under both of its names.
    """

    __signature__: ClassVar[Any] = InitSignature()
    op_type: ClassVar[str] = ""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        *,
        parameters: Iterable[Any] | None = None,
        parameter_list: Iterable[Any] | None = None,
        weight_decay: WeightDecay | float | None = None,
        regularization: WeightDecay | float | None = None,
        grad_clip: GradientClip | None = None,
        name: str | None = None,
    ) -> None:
        self._kind = type(self).__name__
        parameter_list = _one(self._kind, "parameters", parameters, "parameter_list", parameter_list)
        regularization = _one(self._kind, "weight_decay", weight_decay, "regularization", regularization)
        self._learning_rate = checked_rate(learning_rate, self._kind)
        if isinstance(regularization, int | float) and not isinstance(regularization, bool):
            regularization = L2Decay(regularization)
        for what, value, kind in (
            ("regularization", regularization, WeightDecay),
            ("grad_clip", grad_clip, GradientClip),
        ):
            if value is not None and not isinstance(value, kind):
                raise InvalidArgumentError(
                    f"{self._kind}: {what} is {value!r}; expected a {kind.__name__} of oprack.optimizer, such as "
                    + ("L2Decay(0.01)" if kind is WeightDecay else "ClipGradByGlobalNorm(1.0)")
                )
        parameter_list, self._groups = split_groups(parameter_list)
        self.parameter_list, self._paths = checked_parameters(parameter_list, self._kind)
        # the loop above refused all else
        self.regularization = cast("WeightDecay | None", regularization)
        self.grad_clip, self.name = grad_clip, name
        self._rate_var: Variable | None
        self._rates: dict[float, Variable]
        self._state: dict[tuple[str, str], Variable]
        self.forget_program()

    def __new__(cls, *args: Any, **options: Any) -> Self:
        if options:
            require_keywords(cls, options)
        args, _ = _rate_first(args, options)
        if args and not isinstance(args[0], int | float):
            checked_rate(args[0], cls.__name__)  # before Python counts the arguments
        return super().__new__(cls)

    def __init_subclass__(cls, **options: Any) -> None:
        """Let help() and editors show the arguments of this class where a subclass passes on `**options`."""
        super().__init_subclass__(**options)
        accept_other_names(cls, _rate_first)
        own = inspect.signature(cls.__init__)
        more = [p for p in inspect.signature(Optimizer.__init__).parameters.values() if p.kind is p.KEYWORD_ONLY]
        named = [p for p in own.parameters.values() if p.kind is not p.VAR_KEYWORD and p.name != "self"]
        known = {p.name for p in named}
        every = [*named, *(p for p in more if p.name not in known)]
        cls.__doc__ = _with_shared(inspect.cleandoc(cls.__doc__ or f"{cls.__name__}."), [p.name for p in every])
        cls.__signature__ = inspect.Signature(every)

    # What a subclass says -------------------------------------------------------------------------------------------
    def accumulators(self) -> Sequence[Accumulator]:
        """The state of each parameter."""
        return ()

    def attrs(self, parameter: Parameter) -> dict[str, Any]:
        """Attributes of the op that updates `parameter`."""
        return {}

    def decays_itself(self, regularizer: WeightDecay) -> bool:
        """Whether the update op applies this regularizer, so that no ops are needed for it."""
        return False

    def finish(self, pairs: Sequence[Pair]) -> None:
        """Append ops that follow all updates."""

    # Use ------------------------------------------------------------------------------------------------------------
    def minimize(
        self,
        loss: Variable,
        startup_program: Any = None,
        parameter_list: Sequence[Any] | None = None,
        no_grad_set: Any = None,
    ) -> tuple[list[Any], list[Pair]]:
        """Append to the loss's program what trains it in one step; returns the update ops and (parameter, gradient).

        loss: one floating element. startup_program: fills the state; default: the default one. Raises as
        `append_backward`, and InvalidArgumentError for parameters of another program.
        """
        pairs = self.backward(loss, startup_program, parameter_list, no_grad_set)
        return self.apply_gradients(pairs, startup_program), pairs

    def backward(
        self,
        loss: Variable,
        startup_program: Any = None,
        parameter_list: Sequence[Any] | None = None,
        no_grad_set: Any = None,
    ) -> list[Pair]:
        """Append the gradient ops alone; returns (parameter, gradient), for `apply_gradients`. Raises as `minimize`."""
        if hasattr(loss, "__oprack_value__"):
            raise InvalidArgumentError(
                f"{self._kind}.minimize: loss is an eager tensor, and minimize writes programs; call loss.backward() "
                "and step() instead"
            )
        check_variable(loss, "loss", f"{self._kind}.minimize")
        self._claim(loss.program, loss.name)
        chosen = parameter_list if parameter_list is not None else self.parameter_list
        for p in chosen or ():
            if isinstance(p, Variable) and p.program is not loss.program:
                raise InvalidArgumentError(
                    f"{self._kind}: parameter {p.name!r} is of another program than loss {loss.name!r}; pass "
                    "parameters of the loss's program, or None for all of them"
                )
        return append_backward(loss, chosen, no_grad_set)

    def apply_gradients(self, params_grads: Sequence[Pair], startup_program: Program | None = None) -> list[Any]:
        """Append clipping, decay and updates for (parameter, gradient) pairs; returns the update ops.

        Raises InvalidArgumentError for pairs of several programs, PreconditionNotMetError when there are none.
        """
        pairs = sorted(params_grads, key=lambda pair: pair[0].name)
        if not pairs:
            raise PreconditionNotMetError(
                f"{self._kind}: there is no gradient to apply; expected (parameter, gradient) pairs, as backward "
                "returns them"
            )
        program, block = pairs[0][1].program, pairs[0][1].block
        for p, g in pairs:
            if p.program is not program or g.program is not program:
                raise InvalidArgumentError(
                    f"{self._kind}: parameter {p.name!r} or its gradient {g.name!r} is of another program than "
                    f"{pairs[0][0].name!r}; apply the gradients of one program at a time"
                )
        self._claim(program, pairs[0][1].name)
        startup = startup_program or default_startup_program()
        helper = LayerHelper(self.op_type, main_program=program, startup_program=startup)
        pairs = self._regularized(self._clipped(pairs))
        self._make_rate(helper, str(pairs[0][0].dtype))
        for p, _ in pairs:
            self._make_state(helper, p)
        ops = []
        for p, g in pairs:
            with name_scope("optimizer"):
                rate = self._of(p)._rate_of(block, p)
                with op_role_guard(OpRole.OPTIMIZE, [p, g]):
                    ops.append(self._update(block, p, g, rate))
        self.finish(pairs)
        return ops

    def state(self, parameter: Parameter | str, name: str) -> Variable:
        """The state variable `name` of a parameter, such as "moment1". Raises NotFoundError before `minimize`."""
        owner = parameter if isinstance(parameter, str) else parameter.name
        found = self._state.get((name, owner))
        if found is None:
            known = ", ".join(a.name for a in self.accumulators()) or "no state"
            raise NotFoundError(
                f"{self._kind}: there is no {name!r} of parameter {owner!r}; it has {known}, made by minimize"
            )
        return found

    # Steps ----------------------------------------------------------------------------------------------------------
    def _claim(self, program: Program, name: str) -> None:
        """This optimizer's state lives in one program."""
        if self._program is not None and self._program is not program:
            raise InvalidArgumentError(
                f"{self._kind}: this optimizer trains another program than that of {name!r} already, which has the "
                f"state of its parameters {', '.join(sorted({p for _, p in self._state})) or 'none yet'}; make an "
                "optimizer of its own for each program"
            )
        self._program = program

    def _of(self, parameter: Parameter) -> Self:
        """This optimizer with the settings of the parameter's group."""
        settings = settings_of(self, parameter.name, self._groups) if self._groups else {}
        if not settings:
            return self
        twin = copy.copy(self)
        twin._factor = float(settings.pop("learning_rate", 1.0))
        twin.__dict__.update(settings)
        return twin

    def _clipped(self, pairs: Sequence[Pair]) -> list[Pair]:
        found, block = list(pairs), pairs[0][1].block
        clips = {id(clip): clip for clip in (self._of(p).grad_clip for p, _ in pairs) if clip is not None}
        for clip in clips.values():
            chosen = [(p.name, g.name) for p, g in found if p.need_clip and self._of(p).grad_clip is clip]
            found = _replaced(found, clip(block, chosen))
        return found

    def _regularized(self, pairs: Sequence[Pair]) -> list[Pair]:
        regularizers = {p.name: self._of(p)._regularizer(p) for p, _ in pairs}
        regularizers = {n: None if r is not None and self.decays_itself(r) else r for n, r in regularizers.items()}
        names = [(p.name, g.name) for p, g in pairs]
        return _replaced(pairs, append_regularization(pairs[0][1].block, names, regularizers))

    def _regularizer(self, parameter: Parameter) -> WeightDecay | None:
        """The parameter's own, or the optimizer's."""
        return parameter.regularizer if parameter.regularizer is not None else self.regularization

    def _make_state(self, helper: LayerHelper, parameter: Parameter) -> None:
        for a in self._of(parameter).accumulators():
            if (a.name, parameter.name) in self._state:
                continue
            label = f"{self.name}_{a.name}" if self.name else a.name
            self._state[a.name, parameter.name] = helper.create_global_variable(
                parameter.shape if a.shape is None else a.shape,
                parameter.dtype,
                name=unique_name.generate(f"{parameter.name}_{label}"),
                persistable=True,
                initializer=initializer.Constant(a.fill),
            )

    def _update(self, block: Any, parameter: Parameter, gradient: Variable, rate: Variable) -> Any:
        inputs = {"Param": parameter, "Grad": gradient, "LearningRate": rate}
        outputs: dict[str, Any] = {"ParamOut": parameter}
        for a in self.accumulators():
            inputs[a.slot] = self._state[a.name, parameter.name]
            if a.out != "":
                outputs[a.out or f"{a.slot}Out"] = inputs[a.slot]
        return append_op(
            self.op_type, inputs, outputs, self._of(parameter).attrs(parameter), program=self._program, block=block
        )


accept_other_names(Optimizer, _rate_first)


def _with_shared(doc: str, parameters: Sequence[str]) -> str:
    """A docstring whose section Args also has what _SHARED says of those parameters that it does not name itself."""
    head, _, rest = doc.partition("\n\nArgs:\n")
    own, blank, sections = rest.partition("\n\n")
    missing = [n for n in parameters if n in _SHARED and f"\n    {n}: " not in f"\n{own}"]
    shared = [f"    {n}: {_SHARED[n]}" for n in missing]
    return "\n".join([head, "", "Args:", *filter(None, [own]), *shared]) + blank + sections


def _one(owner: str, name: str, value: Any, other: str, old: Any) -> Any:
    """What was given under one of two names."""
    if value is not None and old is not None:
        raise InvalidArgumentError(f"{owner}: {name} and {other} are given; they are one argument, so give one of them")
    return old if value is None else value


def _replaced(pairs: Sequence[Pair], names: Sequence[tuple[str, str]]) -> list[Pair]:
    """The pairs, with the gradients that `names` gives for their parameters."""
    new = dict(names)
    found = []
    for p, g in pairs:
        name = new.get(p.name, g.name)
        found.append((p, g if name == g.name else Variable(g.program, g.block, g.block.var(name))))
    return found
