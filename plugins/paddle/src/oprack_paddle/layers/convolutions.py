"""paddle.nn: convolutions that pad otherwise than with zeros, and whole transformers."""

from __future__ import annotations

from typing import Any

from oprack import nn
from oprack.nn import functional as NF

from oprack_paddle.adapter import Adapted


def _padded(name: str, dims: int, default: str) -> type:
    """Conv1D, 2D or 3D with Paddle's `padding_mode`."""
    base: Any = getattr(nn, name)

    class Conv(base, metaclass=Adapted):
        _adapts = base

        def __init__(
            self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
            dilation: Any = 1, groups: int = 1, padding_mode: str = "zeros", weight_attr: Any = None,
            bias_attr: Any = None, data_format: str = default,
        ) -> None:  # fmt: skip
            if padding_mode not in ("zeros", "reflect", "replicate", "circular"):
                raise ValueError(
                    f"{name}: padding_mode is {padding_mode!r}; expected 'zeros', 'reflect', 'replicate' or 'circular'"
                )
            plain = padding_mode == "zeros"
            settings = (stride, padding if plain else 0, dilation, groups, weight_attr, bias_attr, data_format)
            base.__init__(self, in_channels, out_channels, kernel_size, *settings)
            self._padding_mode = padding_mode
            if not plain:
                sizes = [padding] * dims if isinstance(padding, int) else list(padding)
                self._pads = [n for size in reversed(sizes) for n in (size, size)]
                self._layout = data_format

        def forward(self, x: Any) -> Any:
            """The convolution of the padded tensor."""
            if self._padding_mode != "zeros":
                x = NF.pad(x, self._pads, mode=self._padding_mode, data_format=self._layout)
            return base.forward(self, x)

    Conv.__name__ = Conv.__qualname__ = name
    Conv.__doc__ = base.__doc__
    return Conv


Conv1D = _padded("Conv1D", 1, "NCL")
Conv2D = _padded("Conv2D", 2, "NCHW")
Conv3D = _padded("Conv3D", 3, "NCDHW")


class Transformer(nn.Transformer, metaclass=Adapted):
    """An encoder and a decoder, each of which ends with a LayerNorm."""

    _adapts = nn.Transformer

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
        dim_feedforward: int = 2048, dropout: float = 0.1, activation: str = "relu", attn_dropout: Any = None,
        act_dropout: Any = None, normalize_before: bool = False, weight_attr: Any = None, bias_attr: Any = None,
        custom_encoder: Any = None, custom_decoder: Any = None,
    ) -> None:  # fmt: skip
        nn.Module.__init__(self)
        if weight_attr is not None or bias_attr is not None:
            raise NotImplementedError("Transformer: weight_attr and bias_attr are not served by oprack; leave them out")
        settings = (d_model, nhead, dim_feedforward, dropout, activation, attn_dropout, act_dropout, normalize_before)
        self.encoder = custom_encoder or nn.TransformerEncoder(
            nn.TransformerEncoderLayer(*settings), num_encoder_layers, nn.LayerNorm(d_model)
        )
        self.decoder = custom_decoder or nn.TransformerDecoder(
            nn.TransformerDecoderLayer(*settings), num_decoder_layers, nn.LayerNorm(d_model)
        )
        self.d_model, self.nhead = d_model, nhead
