"""ShapeOperator: an op at the place of shapes, which says what its outputs would be and computes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from oprack.errors import OprackError, UnimplementedError
from oprack.op.sbp_signature import SbpContext, product_flops
from oprack.packs.manager import default_manager
from oprack.runtime.kernel_inputs import Values, require_inputs, resolved_attrs
from oprack.runtime.kernel_operator import OperatorWithKernel
from oprack.tensor import LoDTensor, Scope, numpy_dtype
from oprack.tensor.place import ShapesPlace
from oprack.tensor.shape_only import LEDGER, shape_array
from oprack.types import DTYPE_NAMES, EMPTY_VAR, GRAD_SUFFIX, VarType

if TYPE_CHECKING:
    from oprack.runtime.run_context import RunContext

_GRAD_OP = "_grad"


class ShapeOperator(OperatorWithKernel, place=ShapesPlace.kind):
    """An op without a kernel: shapes of its outputs come from its shape rule, dtypes from its type rule."""

    runs_itself: ClassVar[bool] = True

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        """Ask the rules, and write arrays without elements.

        Args:
            scope: Where its variables are.
            run: The run that it is part of.

        Raises:
            UnimplementedError: A shape follows from values, or an output is no dense tensor.
        """
        values = self.input_values(scope)
        require_inputs(self, values)
        attrs = resolved_attrs(self, scope) if self.tensor_attrs else self.attrs
        inferred = self.run_infer_shape(values, attrs)
        lods = {target: source for source, target in inferred.shares}
        made: dict[str, list[Any]] = {}
        for slot in self._out_slots:
            for i, name in enumerate(self.outputs[slot]):
                if name == EMPTY_VAR:
                    continue
                dims = inferred.dims.get((slot, i))
                if dims is None and self.info.proto.outputs[slot].intermediate:
                    continue
                if dims is None or any(d < 0 for d in dims):
                    raise UnimplementedError(
                        f"op {self.type}: the shape of {slot} follows from values, which do not exist where shapes "
                        "alone are computed; simulate a program without this op, or run it on one rank"
                    )
                source, k = lods.get((slot, i), ("", 0))
                lod = values[source][k].lod if source and isinstance(values[source][k], LoDTensor) else []
                self._write(scope, run, slot, name, dims, lod, values)
                made.setdefault(slot, []).append(tuple(dims))
        ledger = LEDGER.get()
        if ledger is not None:
            ledger.ops += 1
            ledger.flops += self._flops(values, made, attrs)

    def _write(self, scope: Scope, run: RunContext, slot: str, name: str, dims: Any, lod: Any, values: Values) -> None:
        var = self.block.find_var_recursive(name)
        if var is not None and var.type not in (None, VarType.LOD_TENSOR):
            raise UnimplementedError(
                f"op {self.type}: {slot} is no dense tensor but {VarType(var.type).name}, which is not computed by "
                "shapes alone; ask for dense gradients"
            )
        dtype = self._dtype(var, values)
        current = scope.find_var(name)
        old = None if current is None else current.value
        if isinstance(old, LoDTensor) and name in self._read_names() and old.array.shape == tuple(dims):
            return  # computed in place
        array = shape_array(dims, dtype)
        self.set_output(scope, name, LoDTensor(array, lod, place=run.place, check=False))

    def _read_names(self) -> set[str]:
        return {n for names in self.inputs.values() for n in names}

    @staticmethod
    def _dtype(var: Any, values: Values) -> Any:
        """What the program declares, as the type rule said; else that of the first input."""
        if var is not None and var.dtype in DTYPE_NAMES:
            return numpy_dtype(var.dtype)
        return next((v.array.dtype for vs in values.values() for v in vs if isinstance(v, LoDTensor)), "float32")

    def _flops(self, values: Values, made: Mapping[str, Any], attrs: Mapping[str, Any]) -> int:
        """Operations of a product, or of the gradients of one, each of which is a product of the same size."""
        info, times = self.info, 1
        dims = {s: [getattr(v, "shape", None) for v in vs] for s, vs in values.items()} | dict(made)
        if self.type.endswith(_GRAD_OP):
            try:
                info = default_manager().op_info(self.type.removesuffix(_GRAD_OP))
            except OprackError:
                return 0
            times = sum(slot.endswith(GRAD_SUFFIX) for slot in made)
            dims = {s.removesuffix(GRAD_SUFFIX): shapes for s, shapes in dims.items()}
        if info.sbp is None or not all(s in dims for s, slot in info.proto.inputs.items() if not slot.dispensable):
            return 0
        ctx = SbpContext(info.type, attrs, dims)
        return times * product_flops(info.sbp(ctx), ctx)
