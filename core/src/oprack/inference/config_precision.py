"""Settings of a predictor that let ops compute in another precision than their own."""

from __future__ import annotations

from collections.abc import Iterable


class PrecisionSettings:
    """bfloat16 and int8, for ops for which oneDNN has such primitives."""

    def __init__(self) -> None:
        super().__init__()
        self._bfloat16 = self._int8 = False
        self._bfloat16_ops: set[str] | None = None
        self._int8_ops: set[str] | None = None

    def enable_mkldnn_bfloat16(self) -> None:
        """Let convolutions and products with weights round their factors to bfloat16, and add up in float32.

        What only such convolutions read of each other is bfloat16 in memory, too. It takes half the time on CPUs that
        have such instructions, and has no effect on others.
        """
        self._bfloat16 = True

    def set_bfloat16_op(self, op_list: Iterable[str]) -> None:
        """Which op types may compute in bfloat16, instead of all that can."""
        self._bfloat16_ops = {*op_list}

    def mkldnn_bfloat16_enabled(self) -> bool:
        """Whether enable_mkldnn_bfloat16 was called."""
        return self._bfloat16

    def enable_mkldnn_int8(self, op_list: Iterable[str] = ()) -> None:
        """Let convolutions and products multiply bytes, and add up in 32 bits, where the model quantises both factors.

        Such models come from `oprack quantize`, PaddleSlim or paddle.static.quantization. Without this setting they
        run in floats, rounded as the model says. It has no effect on CPUs without VNNI. What stays float may be
        bfloat16: `enable_mkldnn_bfloat16` goes together with this.

        Args:
            op_list: Which op types may compute in int8; empty: all that can.
        """
        self._int8, self._int8_ops = True, {*op_list} or None

    def mkldnn_int8_enabled(self) -> bool:
        """Whether enable_mkldnn_int8 was called."""
        return self._int8

    def precisions(self) -> dict[str, list[str] | None]:
        """Dtypes that ops may compute in other than their own, each with the op types that may; None: all."""
        given = (("bfloat16", self._bfloat16, self._bfloat16_ops), ("int8", self._int8, self._int8_ops))
        return {name: None if ops is None else sorted(ops) for name, enabled, ops in given if enabled}

    # The names that Paddle 3 has for them
    enable_onednn_bfloat16 = enable_mkldnn_bfloat16
    onednn_bfloat16_enabled = mkldnn_bfloat16_enabled
    enable_onednn_int8 = enable_mkldnn_int8
    onednn_int8_enabled = mkldnn_int8_enabled
