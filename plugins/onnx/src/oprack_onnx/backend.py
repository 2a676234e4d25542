"""ONNX's own interface of backends, by which its tests run: `oprack_onnx.backend.prepare(model).run(inputs)`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx.checker
from onnx import ModelProto, NodeProto, helper
from onnx.backend.base import Backend, BackendRep, namedtupledict
from oprack import CPUPlace
from oprack.io.inference_model import feed_and_fetch_names
from oprack.runtime import Executor
from oprack.tensor import LoDTensor, LoDTensorArray, Scope
from oprack.types import VarType

from oprack_onnx.reader import translate


class OprackRep(BackendRep):
    """A model that is ready to run.

    Args:
        model: The model.
    """

    def __init__(self, model: ModelProto) -> None:
        read = translate(model)
        self._program, self._executor, self._scope = read.program, Executor(CPUPlace()), Scope()
        self.inputs, self.outputs = feed_and_fetch_names(read.program)
        for name, array in (read.parameters or {}).items():
            self._scope.var(name).value = LoDTensor(array, shared=True)

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Run the model.

        Args:
            inputs: Arrays, or lists of them for sequences, in the order of the model's inputs; or by name.

        Returns:
            Arrays, or lists of them, in the order of the model's outputs; they have its names as well.
        """
        given = inputs if isinstance(inputs, Mapping) else dict(zip(self.inputs, _listed(inputs), strict=False))
        block = self._program.desc.blocks[0]
        feed = {name: _fed(value, block.vars[name].type) for name, value in given.items()}
        results = self._executor.run(
            self._program, feed=feed, fetch_list=self.outputs, scope=self._scope, return_numpy=False
        )
        named = namedtupledict("Outputs", self.outputs)
        return named(*(_plain(value) for value in results))


class OprackBackend(Backend):
    """Runs models of ONNX by oprack."""

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> OprackRep:
        """The model, ready to run.

        Args:
            model: The model.
            device: "CPU".

        Returns:
            What runs it.

        Raises:
            UnimplementedError: It has ops that oprack has none for.
        """
        onnx.checker.check_model(model)
        return OprackRep(model)

    @classmethod
    def run_node(
        cls, node: NodeProto, inputs: Any, device: str = "CPU", outputs_info: Any = None, **kwargs: Any
    ) -> tuple[Any, ...]:
        """Run one node on arrays.

        Args:
            node: The node.
            inputs: Its inputs, in order.
            device: "CPU".
            outputs_info: Not read.

        Returns:
            Its outputs.
        """
        super().run_node(node, inputs, device, outputs_info, **kwargs)
        arrays = [np.asarray(a) for a in _listed(inputs)]
        names = [n for n in node.input if n]
        infos = [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for n, a in zip(names, arrays, strict=True)
        ]
        outputs = [onnx.ValueInfoProto(name=n) for n in node.output if n]
        graph = helper.make_graph([node], "node", infos, outputs)
        version = kwargs.get("opset_version", onnx.defs.onnx_opset_version())
        opsets = [helper.make_opsetid(node.domain, version)]
        return OprackRep(helper.make_model(graph, opset_imports=opsets)).run(arrays)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether models run on a device: "CPU"."""
        return device == "CPU"


def _listed(inputs: Any) -> Sequence[Any]:
    return inputs if isinstance(inputs, list | tuple) else [inputs]


def _fed(value: Any, kind: VarType) -> Any:
    """A value as the executor takes it; what is absent is an array of nothing."""
    if kind is VarType.LOD_TENSOR_ARRAY:
        items = [] if value is None else value if isinstance(value, list) else [value]
        return LoDTensorArray([LoDTensor(np.asarray(v), shared=True) for v in items])
    return np.asarray(value)


def _plain(value: Any) -> Any:
    if isinstance(value, LoDTensorArray | list):
        return [_plain(v) for v in value]
    return np.asarray(value.array if isinstance(value, LoDTensor) else value)


prepare = OprackBackend.prepare
run_model = OprackBackend.run_model
run_node = OprackBackend.run_node
supports_device = OprackBackend.supports_device
is_compatible = OprackBackend.is_compatible
