"""Sequences of any lengths, from whatever form they come in, and back: rows one after the other, and offsets (LoD).

A batch of sequences is one tensor of all their rows, whose `lod` says where each begins: `[[0, 3, 5]]` are sequences of
3 and 2 rows. Nothing is padded. The functions here make such tensors of lists, padded arrays, offsets, nested tensors
of PyTorch, ragged tensors of TensorFlow and lists of Arrow, and make these of such tensors. Rows are shared, not
copied, wherever the other form has them one after the other as well. `generate` goes on with the sequences of a batch.
"""

from oprack.sequences.generation import Generated, generate, likeliest, sampler, selected
from oprack.sequences.other_forms import (
    from_arrow,
    from_nested,
    from_ragged,
    to_arrow,
    to_nested,
    to_ragged,
)
from oprack.sequences.plain_forms import (
    from_cu_seqlens,
    from_list,
    from_padded,
    lengths,
    to_cu_seqlens,
    to_list,
    to_padded,
)

__all__ = [
    "Generated",
    "from_arrow",
    "from_cu_seqlens",
    "from_list",
    "from_nested",
    "from_padded",
    "from_ragged",
    "generate",
    "lengths",
    "likeliest",
    "sampler",
    "selected",
    "to_arrow",
    "to_cu_seqlens",
    "to_list",
    "to_nested",
    "to_padded",
    "to_ragged",
]
