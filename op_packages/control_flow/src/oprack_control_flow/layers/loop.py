"""Blocks that run again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Self, cast

from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, Variable, check_type, check_variable
from oprack.types import VarType, dtype_enum

from oprack_control_flow.layers._blocks import inside, outer_names, sub_block
from oprack_control_flow.layers._condition import check_condition
from oprack_control_flow.layers.array import array_write, create_array

if TYPE_CHECKING:
    from oprack.desc import BlockDesc


# The state of a loop, from round to round.
def _hand_over(helper: LayerHelper, values: Sequence[Variable], state: Sequence[Variable]) -> None:
    """Write values into the variables of a loop's state, at the end of its block, all at once."""
    pairs = [(value, var) for value, var in zip(values, state, strict=True) if value is not var]
    names = {var.name for _, var in pairs}
    # one state that becomes another's value must be read before it is written
    pairs = [(helper.apply("assign", {"X": value}) if value.name in names else value, var) for value, var in pairs]
    for value, var in pairs:
        if value.dtype != var.dtype:
            raise InvalidArgumentError(
                f"{helper.layer_type}: {var.dtype} state {var.name!r} would become {value.dtype} variable "
                f"{value.name!r}; expected one dtype, so cast it"
            )
        helper.apply("assign", {"X": value}, outs={"Out": var})


# Loops: While, while_loop.
class While:
    """Repeats a block while a Variable of bool is true; the block has to change it: op while.

            i, n = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 10)
            cond = layers.less_than(i, n)
            loop = layers.While(cond)
            with loop.block():
                ...
                layers.increment(i)
                layers.less_than(i, n, cond=cond)

    What the block makes is gone after each round; write to variables from outside (layers.assign(x, output), arrays) to
    keep it.

    Args:
        cond: A Variable of bool of one element.
        is_test: Whether no gradient follows, so that rounds share memory.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Raises:
        InvalidArgumentError: cond is no such Variable, or the block does not write it.
    """

    def __init__(self, cond: Variable, is_test: bool = False, name: str | None = None) -> None:
        self.cond = check_condition(cond, "cond", "While")
        self._is_test = is_test
        self._helper = LayerHelper("while", name=name)

    @contextmanager
    def block(self) -> Iterator[While]:
        """Layers go into the loop inside the with block."""
        with sub_block(self._helper.main_program) as block:
            yield self
            reads, writes = outer_names(block)
            if self.cond.name not in writes:
                raise InvalidArgumentError(
                    f"While: the block does not write its condition {self.cond.name!r}, so the loop would never end; "
                    "write it with, for example, layers.less_than(i, n, cond=cond)"
                )
        self._helper.append_op(
            "while",
            {"X": [n for n in dict.fromkeys([*reads, *writes]) if n != self.cond.name], "Condition": self.cond},
            {"Out": writes, "StepScopes": self._helper.create_variable(type=VarType.STEP_SCOPES)},
            {"sub_block": block, "is_test": self._is_test},
        )


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Sequence[Variable],
    is_test: bool = False,
    name: str | None = None,
) -> list[Variable]:
    """Repeats loop_vars = body(*loop_vars) while cond(*loop_vars): op while.

    Args:
        cond: Takes the Variables and returns a Variable of bool of one element.
        body: Takes the Variables and returns as many, of the same dtypes.
        loop_vars: Variables, whose own values stay as they are, or tensor arrays, which the body changes in place.
        is_test: Whether no gradient follows, so that rounds share memory.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        The last loop_vars, as a list.

    Raises:
        InvalidArgumentError: loop_vars is empty, or a function returns something else.
    """
    check_type(loop_vars, "loop_vars", "while_loop", (list, tuple))
    if not loop_vars:
        raise InvalidArgumentError("while_loop: loop_vars is empty; expected one Variable or more")
    helper = LayerHelper("while_loop", name=name)
    state = []
    for var in loop_vars:
        check_variable(var, "loop_vars", "while_loop")
        state.append(var if var.type is VarType.LOD_TENSOR_ARRAY else helper.apply("assign", {"X": var}))
    condition = check_condition(cond(*state), "cond(*loop_vars)", "while_loop")
    loop = While(condition, is_test, name)
    with loop.block():
        made = body(*state)
        made = list(made) if isinstance(made, list | tuple) else [made]
        if len(made) != len(state) or not all(isinstance(v, Variable) for v in made):
            raise InvalidArgumentError(
                f"while_loop: body returned {made!r}; expected {len(state)} Variables, as many as loop_vars"
            )
        _hand_over(helper, made, state)
        helper.apply("assign", {"X": cond(*state)}, outs={"Out": condition})
    return state


# Recurrent networks whose step is a block of layers.
class _RNN:
    """A While loop over time steps. Memories are variables outside of the loop, overwritten at the end of each step."""

    kind: str
    if TYPE_CHECKING:

        def _result(self, array: Variable, inner: Variable) -> Variable:
            """The result for an output `inner`, whose values in all steps `array` holds."""

    def __init__(self, name: str | None = None) -> None:
        self._helper = LayerHelper(self.kind, name=name)
        self._program = self._helper.main_program
        self._parent: BlockDesc | None = None
        # name inside the step -> (variable outside, its new value)
        self._memories: dict[str, tuple[Variable, Variable | None]] = {}
        self._outputs: list[tuple[Variable, Variable]] = []
        self._results: list[Variable] | None = None
        self._building = False
        self._steps: Variable | None = None

    @contextmanager
    def _block(self) -> Iterator[Self]:
        if self._parent is not None:
            raise InvalidArgumentError(f"{self._helper.layer_type}: the step is built already; make another one")
        self._parent = self._program.current_block()
        self._zero, self._step = self._integer(0), self._integer(0)
        self._cond = self._helper.create_variable(dtype="bool", shape=[1], stop_gradient=True)
        self._building = True
        try:
            with While(self._cond).block():
                yield self
                self._finish_step()
        finally:
            self._building = False
        self._results = [self._result(array, inner) for array, inner in self._outputs]

    def _finish_step(self) -> None:
        kind = self._helper.layer_type
        if self._steps is None or not self._outputs:
            raise InvalidArgumentError(f"{kind}: the step has no step_input or no output; expected one of each or more")
        missing = [name for name, (_, new) in self._memories.items() if new is None]
        if missing:
            raise InvalidArgumentError(
                f"{kind}: memory {', '.join(missing)} is not updated; call update_memory for each"
            )
        pairs = list(self._memories.values())
        _hand_over(self._helper, [new for _, new in pairs if new is not None], [outside for outside, _ in pairs])
        self._helper.apply("increment", {"X": self._step}, {"step": 1.0}, outs={"Out": self._step})
        self._compare()

    def _compare(self) -> None:
        self._helper.apply("less_than", {"X": self._step, "Y": self._steps}, outs={"Out": self._cond})

    def _integer(self, value: int) -> Variable:
        attrs = {"shape": [1], "dtype": int(VarType.INT64), "value": float(value), "str_value": str(value)}
        return self._helper.apply("fill_constant", {}, attrs, stop_gradient=True)

    def _outside(self) -> AbstractContextManager[None]:
        if not self._building:
            raise InvalidArgumentError(f"{self._helper.layer_type}: call this inside the step's with block")
        return inside(self._program, cast("BlockDesc", self._parent))

    def _outer(self, value: Variable, argument: str) -> Variable:
        """Check that a Variable was created before the step. Raises InvalidArgumentError."""
        kind = self._helper.layer_type
        check_variable(value, argument, kind)
        if self._parent is not None and self._parent.find_var_recursive(value.name) is not value.desc:
            raise InvalidArgumentError(
                f"{kind}: {argument} is variable {value.name!r}, which the step makes itself; expected one made "
                "before the with block"
            )
        return value

    def _remember(self, outside: Variable, seen: Variable) -> Variable:
        self._memories[seen.name] = (outside, None)
        return seen

    def update_memory(self, ex_mem: Variable, new_mem: Variable) -> None:
        """Make `new_mem` the value of memory `ex_mem` in the next step."""
        check_variable(ex_mem, "ex_mem", self._helper.layer_type)
        check_variable(new_mem, "new_mem", self._helper.layer_type)
        if ex_mem.name not in self._memories:
            raise InvalidArgumentError(
                f"{self._helper.layer_type}: {ex_mem.name!r} is no memory of this step; expected what memory() returned"
            )
        self._memories[ex_mem.name] = (self._memories[ex_mem.name][0], new_mem)

    def output(self, *outputs: Variable) -> None:
        """Collect the values of these variables from all steps; they are the results of the network."""
        for var in outputs:
            check_variable(var, "outputs", self._helper.layer_type)
            with self._outside():
                array = create_array(var.dtype)
            array_write(var, self._step, array)
            self._outputs.append((array, var))

    def __call__(self) -> Variable | list[Variable]:
        """The outputs of all steps: a Variable, or a list of them when there are several."""
        if self._results is None:
            raise InvalidArgumentError(f"{self._helper.layer_type}: build the step first, in its with block")
        return self._results[0] if len(self._results) == 1 else list(self._results)


def _filled(
    helper: LayerHelper,
    like: Variable,
    shape: Sequence[int],
    dtype: object,
    value: float,
    input_dim: int,
    output_dim: int,
) -> Variable:
    attrs = {
        "shape": list(shape),
        "dtype": int(dtype_enum(dtype)),
        "value": float(value),
        "input_dim_idx": input_dim,
        "output_dim_idx": output_dim,
    }
    return helper.apply("fill_constant_batch_size_like", {"Input": like}, attrs)
