"""The layer chunk_eval."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.layers import LayerHelper, Variable, check_variable


def chunk_eval(
    input: Variable,
    label: Variable,
    chunk_scheme: str,
    num_chunk_types: int,
    excluded_chunk_types: Sequence[int] | None = None,
    seq_length: Variable | None = None,
    name: str | None = None,
) -> tuple[Variable, Variable, Variable, Variable, Variable, Variable]:
    """(precision, recall, F1, chunks found, chunks of the labels, chunks found rightly) of tagged sequences.

    input, label: int64 tags [rows, 1] with LoD, or [N, T] with seq_length. chunk_scheme: "IOB", "IOE", "IOBES" or
    "plain". excluded_chunk_types: kinds that do not count. Op chunk_eval. Raises InvalidArgumentError.
    """
    inputs = {
        "Inference": check_variable(input, "input", "chunk_eval", {"int64"}),
        "Label": check_variable(label, "label", "chunk_eval", {"int64"}),
        "SeqLength": seq_length,
    }
    attrs = {
        "chunk_scheme": chunk_scheme,
        "num_chunk_types": num_chunk_types,
        "excluded_chunk_types": list(excluded_chunk_types or []),
    }
    return LayerHelper("chunk_eval", name=name).apply("chunk_eval", inputs, attrs, stop_gradient=True)
