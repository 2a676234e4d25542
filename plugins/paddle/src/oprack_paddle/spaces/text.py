"""paddle.text: the likeliest sequence of tags."""

from __future__ import annotations

from typing import Any

from oprack import functional as F
from oprack import nn


def viterbi_decode(
    potentials: Any, transition_params: Any, lengths: Any, include_bos_eos_tag: bool = True, name: Any = None
) -> Any:
    """The scores of the likeliest sequences of tags, and the sequences."""
    return F.viterbi_decode(potentials, transition_params, lengths, include_bos_eos_tag=include_bos_eos_tag)


class ViterbiDecoder(nn.Module):
    """viterbi_decode with fixed transitions."""

    def __init__(self, transitions: Any, include_bos_eos_tag: bool = True, name: Any = None) -> None:
        super().__init__()
        self.__dict__["transitions"] = transitions
        self.include_bos_eos_tag = include_bos_eos_tag

    def forward(self, potentials: Any, lengths: Any) -> Any:
        """The scores of the likeliest sequences of tags, and the sequences."""
        return viterbi_decode(potentials, self.transitions, lengths, self.include_bos_eos_tag)
