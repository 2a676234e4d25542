"""Models of a session for the shapes, and the small integers, that come again and again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto
from oprack.errors import OprackError
from oprack.inference import Config, create_predictor

from oprack_onnx.model import external_locations, subgraphs, without_functions
from oprack_onnx.specialize import specialized

_logger = logging.getLogger(__name__)

AFTER = 3
"""Runs with the same shapes, after which a model is made for them."""

MOST = 4
"""Models that are made for a session: beyond them shapes are taken as ones that change."""

LARGEST = 1 << 26
"""Bytes of a model that is worth a copy for each of its shapes."""

_SCALARS = (TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL)


class Specialized:
    """The models of a session for what is fed in several runs in a row; none where a model has no branches.

    A model with branches asks in each run what its inputs look like, and many small ops do so. Where the shapes are the
    same as in the runs before, and so are integers that are single numbers, such as a sampling rate, one answer holds.

    Args:
        model: The model.
        configure: Makes the configuration of a predictor.
    """

    def __init__(self, model: ModelProto, configure: Callable[[], Config]) -> None:
        self._configure = configure
        small = model.ByteSize() <= LARGEST and not external_locations(model)
        self._model = without_functions(model) if small else None
        if self._model is not None and not _branches(self._model.graph):
            self._model = None
        self._single = {
            i.name
            for i in model.graph.input
            if i.type.tensor_type.elem_type in _SCALARS and not i.type.tensor_type.shape.dim
        }
        self._made: dict[tuple[Any, ...], Any] = {}
        self._last: tuple[Any, ...] | None = None
        self._count = 0

    def choose(self, plain: Any, names: Sequence[str], arrays: list[np.ndarray]) -> tuple[Any, list[np.ndarray]]:
        """The predictor for what is fed, and what to feed it.

        Args:
            plain: The predictor for any shapes.
            names: The inputs.
            arrays: Their arrays.

        Returns:
            A predictor and its arrays.
        """
        if self._model is None:
            return plain, arrays
        single = self._single
        key = tuple([a.tobytes() if n in single else a.shape for n, a in zip(names, arrays, strict=True)])
        found = self._made.get(key)
        if found is None and not self._due(key):
            return plain, arrays
        if found is None:
            found = self._made[key] = self._make(names, arrays) or plain
        if found is plain:
            return plain, arrays
        return found, [a for n, a in zip(names, arrays, strict=True) if n not in single]

    def _due(self, key: tuple[Any, ...]) -> bool:
        """Whether the same was fed so often in a row that a model for it is worth its while."""
        self._count = self._count + 1 if key == self._last else 1
        self._last = key
        return self._count > AFTER and len(self._made) < MOST

    def _make(self, names: Sequence[str], arrays: Sequence[np.ndarray]) -> Any:
        """A predictor for these shapes and numbers; None where it can't be made."""
        assert self._model is not None
        dims = {n: a.shape for n, a in zip(names, arrays, strict=True)}
        known = {n: a for n, a in zip(names, arrays, strict=True) if n in self._single}
        try:
            data = specialized(self._model, dims, known).SerializeToString()
            config = self._configure()
            config.set_model_buffer(data, len(data), b"", 0)
            return create_predictor(config)
        except (OprackError, ValueError, KeyError, IndexError, TypeError, RuntimeError) as error:
            _logger.debug("no model for %s: %s", dims, error)
            return None


def _branches(graph: GraphProto) -> bool:
    """Whether a graph has an If."""
    return any(n.op_type == "If" or any(_branches(g) for g in subgraphs(n)) for n in graph.node)
