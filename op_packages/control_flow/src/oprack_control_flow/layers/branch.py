"""Blocks that a condition runs or passes over, and what their results are joined by."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeAlias

from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, Variable, variable_of
from oprack.python.containers import with_members
from oprack.types import VarType

from oprack_control_flow.layers._blocks import inside, outer_names, sub_block
from oprack_control_flow.layers._condition import check_condition

Structure: TypeAlias = Variable | list[Variable] | tuple[Variable | dict[str, Variable], ...] | None
"""What the functions of branches return."""


# Layer of conditional_block.
class ConditionalBlock:
    """A block that runs when a Variable of bool is true: `with ConditionalBlock(pred).block(): ...`

    What it writes to outer variables stays; these keep their values when it does not run.

    Args:
        condition: A Variable of bool of one element.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Raises:
        InvalidArgumentError: condition is no such Variable.
    """

    def __init__(self, condition: Variable, name: str | None = None) -> None:
        self.condition = check_condition(condition, "condition", "ConditionalBlock")
        self._helper = LayerHelper("conditional_block", name=name)

    @contextmanager
    def block(self) -> Iterator[ConditionalBlock]:
        """Layers go into the branch inside the with block."""
        with sub_block(self._helper.main_program) as block:
            yield self
        reads, writes = outer_names(block)
        self._helper.append_op(
            "conditional_block",
            {"Cond": self.condition, "Input": reads},
            {"Out": writes, "Scope": self._helper.create_variable(type=VarType.STEP_SCOPES)},
            {"sub_block": block, "is_scalar_condition": True},
        )


# One of two functions of layers, by a condition.
def cond(
    pred: Variable,
    true_fn: Callable[..., Any] | None = None,
    false_fn: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Structure:
    """Runs one of two functions of layers, as a condition says: ops conditional_block, logical_not and select_input.

    Both return the same structure: a Variable, or nested tuples, lists and dicts of Variables of the same dtypes, or
    None.

    Args:
        pred: The condition, a Variable of bool of one element.
        true_fn: Called without arguments, makes what runs if it is true; None: nothing runs.
        false_fn: Called without arguments, makes what runs if it is false; None: nothing runs.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        That structure, with the values of the branch that ran.

    Raises:
        InvalidArgumentError: pred is no such Variable, or the functions return different structures.
    """
    check_condition(pred, "pred", "cond")
    for argument, function in (("true_fn", true_fn), ("false_fn", false_fn)):
        if function is not None and not callable(function):
            raise InvalidArgumentError(f"cond: {argument} is {function!r}; expected a function, or None")
    helper = LayerHelper("cond", name=name)
    when_true = _branch(helper, pred, true_fn)
    when_false = _branch(helper, helper.apply("logical_not", {"X": pred}, stop_gradient=True), false_fn)
    leaves = (_leaves(when_true), _leaves(when_false))
    if _shape_of(when_true) != _shape_of(when_false):
        raise InvalidArgumentError(
            f"cond: true_fn returned {_shape_of(when_true)} and false_fn {_shape_of(when_false)}; expected "
            "one structure"
        )
    if not leaves[0]:
        return when_true
    mask = helper.apply("cast", {"X": pred}, {"in_dtype": int(VarType.BOOL), "out_dtype": int(VarType.INT32)})
    mask.stop_gradient = True
    joined = []
    for true_var, false_var in zip(*leaves, strict=True):
        if true_var.dtype != false_var.dtype:
            raise InvalidArgumentError(
                f"cond: true_fn returned {true_var.dtype} where false_fn returned {false_var.dtype}; expected one "
                "dtype, so cast one of them"
            )
        joined.append(helper.apply("select_input", {"X": [false_var, true_var], "Mask": mask}))
    return _rebuilt(when_true, iter(joined))


# Structures of Variables ----------------------------------------------------------------------------------------------
def _branch(helper: LayerHelper, pred: Variable, function: Callable[..., Any] | None) -> Structure:
    """What a function returns, its Variables copied to variables of the current block."""
    if function is None:
        return None
    program = helper.main_program
    parent = program.current_block()
    with ConditionalBlock(pred).block():
        made = function()
        copies = []
        for var in _leaves(made):
            with inside(program, parent):
                copy = helper.create_variable_for_type_inference(var.dtype)
            helper.append_op("assign", {"X": var}, {"Out": copy})
            copies.append(copy)
    return _rebuilt(made, (variable_of(program, copy.name) for copy in copies))


def _leaves(
    value: Mapping[str, Variable] | Sequence[Mapping[str, Variable] | Variable] | Variable | int | None,
) -> list[Variable]:
    if value is None:
        return []
    if isinstance(value, Variable):
        return [value]
    if isinstance(value, dict):
        return [leaf for key in sorted(value) for leaf in _leaves(value[key])]
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in _leaves(item)]
    raise InvalidArgumentError(
        f"cond: a branch returned {value!r} ({type(value).__name__}); expected Variables, in tuples, lists or dicts, "
        "or None; make a Variable of a number with layers.fill_constant"
    )


def _shape_of(
    value: Mapping[str, Variable] | Sequence[Mapping[str, Variable] | Variable] | Variable | None,
) -> dict[str, str] | list[dict[str, str] | str] | str:
    if isinstance(value, dict):
        return {key: _shape_of(value[key]) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return [_shape_of(item) for item in value]
    return "None" if value is None else "a Variable"


def _rebuilt(
    value: Mapping[str, Variable] | Sequence[Mapping[str, Variable] | Variable] | Variable | None, leaves: Any
) -> Any:
    if isinstance(value, dict):
        return {key: _rebuilt(value[key], leaves) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return with_members(value, [_rebuilt(item, leaves) for item in value])
    return None if value is None else next(leaves)


# One of several functions of layers, by conditions.
def case(
    pred_fn_pairs: Sequence[tuple[Variable, Callable[..., Any]]],
    default: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Structure:
    """Runs the function of the first true condition; see cond.

    Args:
        pred_fn_pairs: [(condition, function), ...].
        default: Runs if no condition is true; None: the last function takes its place.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        What that function returns.

    Raises:
        InvalidArgumentError: pred_fn_pairs is something else, or functions return different structures.
    """
    pairs = list(pred_fn_pairs)
    if not pairs or not all(isinstance(p, list | tuple) and len(p) == 2 for p in pairs):
        raise InvalidArgumentError(
            f"case: pred_fn_pairs is {pred_fn_pairs!r}; expected a list of (condition, function)"
        )
    if default is None:
        default = pairs.pop()[1]
    if not pairs:
        return default()
    (pred, function), *rest = pairs
    return cond(pred, function, (lambda: case(rest, default)) if rest else default, name)


# The first branch whose condition is true.
class Switch:
    """The first case whose condition is true runs, else the default; for blocks that write outer variables.

        with layers.Switch() as switch:
            with switch.case(step < warmup):
                layers.assign(small, lr)
            with switch.default():
                layers.assign(large, lr)

    Ops conditional_block, logical_and, logical_not. Raises InvalidArgumentError.
    """

    def __init__(self, name: str | None = None) -> None:
        self._helper = LayerHelper("switch", name=name)
        self._none_before: Variable | None = None
        self._open = False

    def __enter__(self) -> Switch:
        self._open = True
        return self

    def __exit__(self, *error: object) -> None:
        self._open = False

    def case(self, condition: Variable) -> AbstractContextManager[ConditionalBlock]:
        """A with block that runs when `condition` is true and no earlier one is."""
        self._check("case")
        check_condition(condition, "condition", "Switch.case")
        not_this = self._apply("logical_not", X=condition)
        if self._none_before is None:
            mine, self._none_before = condition, not_this
        else:
            mine = self._apply("logical_and", X=self._none_before, Y=condition)
            self._none_before = self._apply("logical_and", X=self._none_before, Y=not_this)
        return ConditionalBlock(mine).block()

    def default(self) -> AbstractContextManager[ConditionalBlock]:
        """A with block that runs when no condition is true."""
        self._check("default")
        if self._none_before is None:
            raise InvalidArgumentError("Switch: default comes before any case; expected a case first")
        return ConditionalBlock(self._none_before).block()

    def _check(self, what: str) -> None:
        if not self._open:
            raise InvalidArgumentError(
                f"Switch: {what} outside of the switch; write `with Switch() as switch:` around it"
            )

    def _apply(self, op_type: str, **inputs: Variable) -> Variable:
        return self._helper.apply(op_type, inputs, stop_gradient=True)
