"""LayerArguments: what a LayerHelper knows of the arguments of its layer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from oprack.errors import InvalidArgumentError
from oprack.layers import unique_name
from oprack.layers.append import errors_at_user_line
from oprack.layers.checks import check_variable
from oprack.layers.framework import default_main_program, default_startup_program
from oprack.layers.param_attr import ParamAttr
from oprack.layers.variable import Variable
from oprack.program import Program


class LayerArguments:
    """The arguments of a layer, and the programs that it appends to.

    Args:
        layer_type: Begins the names of what the layer makes.
        kwargs: The layer's arguments, of which `name`, `input`, `param_attr` and `bias_attr` are known.
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
        given = self.kwargs.get(argument)
        values = list(given) if isinstance(given, list | tuple) else [given]
        return [check_variable(v, argument, self.layer_type) for v in values]

    def input(self, argument: str = "input") -> Variable:
        """An argument that is one Variable. Raises InvalidArgumentError."""
        return check_variable(self.kwargs.get(argument), argument, self.layer_type)

    def input_dtype(self, argument: str = "input") -> str:
        """The dtype that all Variables of an argument share.

        Args:
            argument: The argument.

        Returns:
            The dtype's name.

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

        Args:
            argument: The argument.

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
