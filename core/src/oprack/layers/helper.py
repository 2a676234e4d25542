"""LayerHelper: reads a layer's arguments, creates its variables, appends its ops, bias and activation; `int_list`."""

from __future__ import annotations

import numbers
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from oprack.desc import OpDesc
from oprack.errors import InvalidArgumentError
from oprack.layers import unique_name
from oprack.layers.append import append_op
from oprack.layers.framework import default_main_program, default_startup_program
from oprack.layers.user_line import errors_at_user_line
from oprack.layers.variable import (
    Initializer,
    ParamAttr,
    Parameter,
    Variable,
    check_variable,
    default_initializer,
    variable_of,
)
from oprack.packs import op_for
from oprack.packs.manager import default_manager
from oprack.program import ParameterInfo, Program
from oprack.types import VarType, dtype_name

_FLOATING = ("float16", "bfloat16", "float32", "float64")


class LayerHelper:
    """Created at the start of a layer: `helper = LayerHelper("fc", name=name, input=input, act=act)`.

    Args:
        layer_type: Prefix of the names of the layer's variables and parameters.
        kwargs: The layer's arguments, of which the helper uses `name`, `input`, `param_attr`, `bias_attr` and `act`;
            `main_program` and `startup_program` replace the default programs.
    """

    def __init__(self, layer_type: str, **kwargs: Any) -> None:
        self.layer_type, self.kwargs = layer_type, kwargs
        self.main_program: Program = kwargs.get("main_program") or default_main_program()
        self.startup_program: Program = kwargs.get("startup_program") or default_startup_program()
        self._name: str = kwargs.get("name") or ""

    @property
    def name(self) -> str:
        """The `name` argument, or a new name such as "fc_0"; begins the names of variables and parameters."""
        if not self._name:
            self._name = unique_name.generate(self.layer_type)
        return self._name

    def multiple_input(self, argument: str = "input") -> list[Variable]:
        """An argument that is a Variable or a list of them, as a list. Raises InvalidArgumentError."""
        value = self.kwargs.get(argument)
        values = list(value) if isinstance(value, list | tuple) else [value]
        return [check_variable(v, argument, self.layer_type) for v in values]

    def input(self, argument: str = "input") -> Variable:
        """An argument that is one Variable. Raises InvalidArgumentError."""
        return check_variable(self.kwargs.get(argument), argument, self.layer_type)

    def input_dtype(self, argument: str = "input") -> str:
        """The dtype that all Variables of an argument share.

        Raises:
            InvalidArgumentError: They differ.
        """
        values = self.multiple_input(argument)
        dtypes = {v.name: v.dtype for v in values}
        if len(set(dtypes.values())) != 1:
            with errors_at_user_line():
                raise InvalidArgumentError(f"{self.layer_type}: {argument} has dtypes {dtypes}; expected one dtype")
        return str(values[0].dtype)

    def inputs_and_attrs(self, argument: str = "input") -> Iterator[tuple[Variable, Any]]:
        """Each Variable of an argument with its `param_attr`: one for all, or a list.

        Yields:
            (Variable, attr) for each.

        Raises:
            InvalidArgumentError: The lists differ in length.
        """
        values = self.multiple_input(argument)
        attr = self.kwargs.get("param_attr")
        attrs = list(attr) if isinstance(attr, list | tuple) else [attr] * len(values)
        if len(attrs) != len(values):
            with errors_at_user_line():
                raise InvalidArgumentError(
                    f"{self.layer_type}: {len(values)} variables in {argument} but {len(attrs)} in param_attr; "
                    "expected one for each, or one for all"
                )
        return zip(values, attrs, strict=True)

    @property
    def param_attr(self) -> ParamAttr | None:
        """The argument `param_attr` of the layer, as a ParamAttr."""
        return ParamAttr.of(self.kwargs.get("param_attr"))

    @property
    def bias_attr(self) -> ParamAttr | None:
        """The argument `bias_attr` of the layer, as a ParamAttr; None when there is to be no bias."""
        return ParamAttr.of(self.kwargs.get("bias_attr"))

    # Variables --------------------------------------------------------------------------------------------------------
    def create_variable_for_type_inference(self, dtype: object = None, stop_gradient: bool = False) -> Variable:
        """A new variable of the current block for an output; its op sets shape, dtype and LoD level."""
        return self.create_variable(unique_name.generate(f"{self.name}.tmp"), dtype=dtype, stop_gradient=stop_gradient)

    def create_variable(self, name: str | None = None, **fields: Any) -> Variable:
        """A new variable of the current block; `fields` are arguments of VarDesc."""
        block = self.main_program.current_block()
        return Variable(
            self.main_program, block, block.create_var(name or unique_name.generate(f"{self.name}.tmp"), **fields)
        )

    def create_global_variable(
        self,
        shape: Sequence[int],
        dtype: object = "float32",
        *,
        name: str | None = None,
        persistable: bool = False,
        initializer: Initializer | None = None,
        type: VarType = VarType.LOD_TENSOR,
    ) -> Variable:
        """A new variable of block 0 through which no gradient flows, such as a counter or a moment of an optimizer.

        Args:
            shape: Its dims.
            dtype: Its dtype.
            name: Its name; default: generated.
            persistable: Whether it outlives a run; required for an initializer.
            initializer: Fills it in the startup program.
            type: What it holds.
        """
        name = name or unique_name.generate(f"{self.name}.tmp")
        fields: dict[str, Any] = {"dtype": dtype, "shape": shape, "type": type, "persistable": persistable}
        block = self.main_program.global_block()
        var = Variable(self.main_program, block, block.create_var(name, **fields, stop_gradient=True))
        if initializer is not None:
            self.set_variable_initializer(var, initializer)
        return var

    def set_variable_initializer(self, var: Variable, initializer: Initializer) -> Variable:
        """Let the startup program create and fill a variable, unless it does so already.

        Returns:
            The variable of the startup program.
        """
        block = self.startup_program.global_block()
        existing = block.find_var(var.name)
        # Layers that share a parameter by name fill it once.
        if existing is not None and any(var.name in op.output_arg_names() for op in block.ops):
            return Variable(self.startup_program, block, existing)
        # A copy, since the two programs are saved and changed independently.
        desc = var.desc.clone()
        desc.persistable = True
        block.vars[var.name] = desc
        startup_var = Variable(self.startup_program, block, desc)
        initializer(startup_var)
        return startup_var

    # Parameters -------------------------------------------------------------------------------------------------------
    def create_parameter(
        self,
        attr: Any,
        shape: Sequence[int],
        dtype: object = "float32",
        is_bias: bool = False,
        default_initializer: Initializer | None = None,
    ) -> Parameter:
        """Create a parameter of block 0, and the op that fills it in the startup program.

        If the program already has a parameter of that name, that one is returned.

        Args:
            attr: Anything that ParamAttr.of accepts.
            shape: Its dims.
            dtype: Its dtype.
            is_bias: Whether the default initializer is that of biases, 0, instead of Xavier.
            default_initializer: The initializer, when `attr` has none.

        Returns:
            The parameter.

        Raises:
            InvalidArgumentError: The shape has unknown or empty dims, attr is False, or the existing parameter has
                another shape or dtype.
        """
        with errors_at_user_line():
            param_attr = ParamAttr.of(attr)
            if param_attr is None:
                raise InvalidArgumentError(
                    f"{self.layer_type}: this parameter can't be left out with False; pass a ParamAttr or None"
                )
            return self._parameter(param_attr, shape, dtype_name(dtype), is_bias, default_initializer)

    def _parameter(
        self, attr: ParamAttr, shape: Sequence[int], dtype: str, is_bias: bool, default: Initializer | None
    ) -> Parameter:
        if not all(isinstance(d, numbers.Integral) and d > 0 for d in shape):
            raise InvalidArgumentError(
                f"{self.layer_type}: a parameter would have shape {list(shape)}; expected sizes greater than 0, so "
                "give the input fixed dims there, or another size"
            )
        name = attr.name or unique_name.generate(f"{self.name}.{'b' if is_bias else 'w'}")
        block = self.main_program.global_block()
        existing = block.find_var(name)
        if existing is not None:
            if not existing.is_parameter or existing.shape != tuple(shape) or existing.dtype_name() != dtype:
                raise InvalidArgumentError(
                    f"{self.layer_type}: parameter {name!r} would be {dtype}{list(shape)}, but the program has "
                    f"{existing}; share a parameter among layers that agree on it, or choose another name"
                )
            return Parameter(self.main_program, block, existing)
        initializer = attr.initializer or default or default_initializer(is_bias)
        if not isinstance(initializer, Initializer):
            raise InvalidArgumentError(
                f"{self.layer_type}: initializer of parameter {name!r} is {initializer!r}; expected one of "
                "oprack.initializer, for example oprack.initializer.Constant(0.0)"
            )
        desc = block.create_var(
            name, dtype=dtype, shape=shape, persistable=True, is_parameter=True, stop_gradient=not attr.trainable
        )
        self.main_program.parameters[name] = ParameterInfo(
            attr.learning_rate, attr.regularizer, attr.need_clip, initializer
        )
        parameter = Parameter(self.main_program, block, desc)
        try:
            self.set_variable_initializer(parameter, initializer)
        except BaseException:
            # Leave both programs as they were, so that the call can be repeated with another initializer.
            block.remove_var(name)
            self.startup_program.global_block().remove_var(name)
            del self.main_program.parameters[name]
            raise
        return parameter

    def parameter(self, name: str) -> Parameter:
        """Look up an existing parameter.

        Raises:
            NotFoundError: There is no such variable.
            InvalidArgumentError: It is not a parameter.
        """
        with errors_at_user_line():
            variable = variable_of(self.main_program, name, self.main_program.global_block())
            if not isinstance(variable, Parameter):
                raise InvalidArgumentError(f"{self.layer_type}: variable {name!r} is no parameter")
            return variable

    # Ops --------------------------------------------------------------------------------------------------------------
    def append_op(
        self,
        type: str,
        inputs: Mapping[str, Any] | None = None,
        outputs: Mapping[str, Any] | None = None,
        attrs: Mapping[str, Any] | None = None,
    ) -> OpDesc:
        """Append an op to the current block and infer its outputs; see `oprack.layers.append_op`."""
        return append_op(type, inputs, outputs, attrs, program=self.main_program)

    def apply(
        self,
        op_type: str,
        inputs: Mapping[str, Any],
        attrs: Mapping[str, Any] | None = None,
        *,
        outs: Mapping[str, Any] | None = None,
        num: int = 1,
        stop_gradient: bool = False,
    ) -> Any:
        """Append an op to the current block with new variables for its outputs, and return these.

        Dispensable outputs are left out; intermediate ones are created but not returned. Raises as `append_op`.

        Args:
            op_type: The op.
            inputs: Variables by input slot.
            attrs: Attributes; None means the default.
            outs: Variables for some output slots, instead of new ones.
            num: How many variables a duplicable output gets.
            stop_gradient: Whether gradients stop at the new variables.

        Returns:
            A Variable, a list for a duplicable output, a tuple of several.
        """
        with errors_at_user_line():
            slots = default_manager().op_info(op_type).proto.outputs
        outputs = dict(outs or {})
        for slot in slots.values():
            if slot.name in outputs or slot.dispensable:
                continue
            stop = stop_gradient or slot.intermediate
            variables = [
                self.create_variable_for_type_inference(stop_gradient=stop)
                for _ in range(num if slot.duplicable else 1)
            ]
            outputs[slot.name] = variables if slot.duplicable else variables[0]
        self.append_op(op_type, inputs, outputs, attrs)
        results = [outputs[n] for n, slot in slots.items() if n in outputs and not slot.intermediate]
        return results[0] if len(results) == 1 else tuple(results)

    def append_bias_op(self, input: Variable, dim_start: int = 1, dim_end: int | None = None) -> Variable:
        """input + bias, whose shape is input's dims from dim_start to dim_end; input itself when bias_attr is False."""
        attr = self.bias_attr
        if attr is None:
            return input
        bias = self.create_parameter(attr, input.shape[dim_start:dim_end], input.dtype, is_bias=True)
        out = self.create_variable_for_type_inference(input.dtype)
        self.append_op(op_for("add"), {"X": input, "Y": bias}, {"Out": out}, {"axis": dim_start})
        return out

    def append_activation(self, input: Variable) -> Variable:
        """Apply the layer's argument `act`: the type of an op, or {"type": op, attribute: value}.

        Args:
            input: The input of the activation.

        Returns:
            Its output; the input itself when `act` is None.

        Raises:
            InvalidArgumentError: `act` is neither of these.
            UnknownOpError: There is no such op.
        """
        act = self.kwargs.get("act")
        if act is None:
            return input
        attrs = {"type": act} if isinstance(act, str) else dict(act) if isinstance(act, Mapping) else {}
        op_type = attrs.pop("type", None)
        if not isinstance(op_type, str):
            with errors_at_user_line():
                raise InvalidArgumentError(
                    f"{self.layer_type}: act is {act!r}; expected the type of an activation op such as 'relu', a dict "
                    "with 'type' and attributes, or None"
                )
        out = self.create_variable_for_type_inference(input.dtype)
        self.append_op(op_type, {"X": input}, {"Out": out}, attrs)
        return out


def shared_attr(attr: Any, index: int) -> Any:
    """`param_attr` for parameter `index` of a layer that has several: after the first, a name gets a suffix."""
    param_attr = ParamAttr.of(attr)
    if param_attr is None or index == 0 or param_attr.name is None:
        return param_attr if param_attr is not None else False
    return replace(param_attr, name=f"{param_attr.name}_{index}")


# Arguments that are lists of ints, some of them known only in a run, such as shapes and the starts of slices ----------
class IntList(NamedTuple):
    """A list of ints in the forms in which ops accept it.

    Attributes:
        values: The ints, with -1 for those that Variables hold.
        tensor: One Variable that holds all of them; None if there is none.
        tensors: One Variable for each of them; empty if all are known.
    """

    values: list[int]
    tensor: Variable | None
    tensors: list[Variable]

    @property
    def known(self) -> bool:
        """Whether all values are known, without Variables."""
        return self.tensor is None and not self.tensors


def int_list(helper: LayerHelper, values: Any, argument: str) -> IntList:
    """Convert an argument of a layer: a list of ints and Variables, or one Variable for the whole list.

    Where some items are Variables, Variables are made for the ints as well, since ops take one for each item or none.

    Args:
        helper: The layer's LayerHelper.
        values: The argument.
        argument: Its name, for errors.

    Returns:
        The list in the forms that ops accept.

    Raises:
        InvalidArgumentError: The argument has another type.
    """
    if isinstance(values, Variable):
        return IntList([], values, [])
    items = list(values) if isinstance(values, list | tuple) else [values]
    for item in items:
        if not isinstance(item, Variable | numbers.Integral) or isinstance(item, bool):
            with errors_at_user_line():
                raise InvalidArgumentError(
                    f"{helper.layer_type}: {argument} is {values!r}; expected a list of ints, of which some may be "
                    "integer Variables of one element, or one integer Variable"
                )
    ints = [-1 if isinstance(v, Variable) else int(v) for v in items]
    if not any(isinstance(v, Variable) for v in items):
        return IntList(ints, None, [])
    return IntList(ints, None, [v if isinstance(v, Variable) else _constant(helper, int(v)) for v in items])


def _constant(helper: LayerHelper, value: int) -> Variable:
    attrs = {"shape": [1], "dtype": int(VarType.INT32), "value": float(value), "str_value": str(value)}
    return helper.apply(op_for("constant"), {}, attrs, stop_gradient=True)  # type: ignore[no-any-return]
