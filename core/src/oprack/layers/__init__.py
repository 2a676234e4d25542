"""Writing programs by hand: programs, variables, and the layers that packs bring (Fluid's `fluid.layers`).

`oprack.layers.fc` and its like come from packs, through the hook oprack_layers; every other op is a layer made from its
OpProto, with arguments spelled as those of its function in oprack.functional. The names below are the core's own, for
users (`data`, `program_guard` ...) and for authors of layers (`LayerHelper`, `append_op` ...).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from oprack.errors import UnknownLayerError
from oprack.layers.namespace import core_and_packs

if TYPE_CHECKING:  # what _HOMES says, for editors and type checkers; a test compares
    # isort: off
    from oprack.layers import unique_name as unique_name
    from oprack.layers.append import append_op as append_op
    from oprack.layers.backward import append_backward as append_backward, gradients as gradients
    from oprack.layers.framework import (
        current_op_role as current_op_role,
        default_main_program as default_main_program,
        default_startup_program as default_startup_program,
        name_scope as name_scope,
        op_role_guard as op_role_guard,
        program_guard as program_guard,
    )
    from oprack.layers.generate import generated_layers as generated_layers, layer_of_op as layer_of_op
    from oprack.layers.helper import LayerHelper as LayerHelper
    from oprack.layers.inputs import (
        create_global_var as create_global_var,
        create_parameter as create_parameter,
        data as data,
    )
    from oprack.layers.helper import int_list as int_list
    from oprack.layers.variable import (
        ParamAttr as ParamAttr,
        ParamAttrLike as ParamAttrLike,
        Parameter as Parameter,
        Variable as Variable,
        check_dtype as check_dtype,
        check_type as check_type,
        check_variable as check_variable,
        variable_of as variable_of,
    )
    # isort: on

_HOMES = {
    "LayerHelper": "oprack.layers.helper",
    "ParamAttr": "oprack.layers.variable",
    "ParamAttrLike": "oprack.layers.variable",
    "Parameter": "oprack.layers.variable",
    "Variable": "oprack.layers.variable",
    "append_backward": "oprack.layers.backward",
    "append_op": "oprack.layers.append",
    "check_dtype": "oprack.layers.variable",
    "check_type": "oprack.layers.variable",
    "check_variable": "oprack.layers.variable",
    "create_global_var": "oprack.layers.inputs",
    "create_parameter": "oprack.layers.inputs",
    "current_op_role": "oprack.layers.framework",
    "data": "oprack.layers.inputs",
    "default_main_program": "oprack.layers.framework",
    "default_startup_program": "oprack.layers.framework",
    "generated_layers": "oprack.layers.generate",
    "gradients": "oprack.layers.backward",
    "int_list": "oprack.layers.helper",
    "layer_of_op": "oprack.layers.generate",
    "name_scope": "oprack.layers.framework",
    "op_role_guard": "oprack.layers.framework",
    "program_guard": "oprack.layers.framework",
    "unique_name": "oprack.layers",
    "variable_of": "oprack.layers.variable",
}
__all__ = sorted(_HOMES)


# GENERATED of oprack.layers.generate, once that is imported: most programs need no generated layer.
_generated: Mapping[str, Any] = {}


def __getattr__(name: str) -> Any:
    global _generated
    if name in _generated:
        return _generated[name]
    try:
        return _getattr(name)
    except UnknownLayerError:
        from oprack.layers.generate import GENERATED, layer_of_any_op

        _generated = GENERATED
        layer = layer_of_any_op(name)
        if layer is None:
            raise
        return layer


def __dir__() -> list[str]:
    from oprack.op import param_name
    from oprack.packs.manager import default_manager

    return sorted({*_dir(), *map(param_name, default_manager().op_types())})


_getattr, _dir = core_and_packs("layers", _HOMES)
