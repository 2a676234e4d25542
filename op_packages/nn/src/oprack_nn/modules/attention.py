"""Attention and the layers of transformers, on padded batches [batch, length, width]."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from oprack import functional as F
from oprack.errors import InvalidArgumentError
from oprack.nn import Module, ModuleList

from oprack_nn.functional import common as C
from oprack_nn.modules.common import Dropout, Linear
from oprack_nn.modules.norm import LayerNorm

if TYPE_CHECKING:
    from oprack import Tensor


class MultiHeadAttention(Module):
    r"""$$softmax(Q K^T / \sqrt d + mask) V$$ for each head, of linear maps of query, key and value.

    Args:
        embed_dim: The width, a multiple of num_heads.
        num_heads: Number of heads.
        dropout: Probability with which a weight of attention is 0 in training.
        kdim: Width of the keys; default: embed_dim.
        vdim: Width of the values; default: embed_dim.
        bias_attr: False leaves the biases out.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        kdim: int | None = None,
        vdim: int | None = None,
        bias_attr: bool | None = None,
    ) -> None:
        super().__init__()
        if embed_dim % num_heads:
            raise InvalidArgumentError(
                f"MultiHeadAttention: embed_dim is {embed_dim} and num_heads {num_heads}; expected a multiple of it"
            )
        self.embed_dim, self.num_heads, self.dropout = embed_dim, num_heads, dropout
        self.q_proj = Linear(embed_dim, embed_dim, bias_attr=bias_attr)
        self.k_proj = Linear(kdim or embed_dim, embed_dim, bias_attr=bias_attr)
        self.v_proj = Linear(vdim or embed_dim, embed_dim, bias_attr=bias_attr)
        self.out_proj = Linear(embed_dim, embed_dim, bias_attr=bias_attr)

    def forward(
        self, query: Tensor, key: Tensor | None = None, value: Tensor | None = None, attn_mask: Tensor | None = None
    ) -> Tensor:
        """Attend.

        Args:
            query: [batch, length, embed_dim].
            key: [batch, places, kdim]; default: query.
            value: [batch, places, vdim]; default: key.
            attn_mask: Added to the scores, or bool with True where to look; broadcast to
                [batch, heads, length, places].

        Returns:
            [batch, length, embed_dim].
        """
        key = query if key is None else key
        value = key if value is None else value
        q, k, v = self.q_proj(query), self.k_proj(key), self.v_proj(value)
        q, k, v = (t.reshape([0, 0, self.num_heads, self.embed_dim // self.num_heads]) for t in (q, k, v))
        found = C.scaled_dot_product_attention(q, k, v, attn_mask, self.dropout, training=self.training)
        return self.out_proj(found.reshape([0, 0, self.embed_dim]))


class _TransformerLayer(Module):
    """What layers of encoder and decoder share: the part that looks at each place alone."""

    def _make(self, width: int, inner: int, dropout: float, activation: str, act_dropout: float | None) -> None:
        self.linear1, self.linear2 = Linear(width, inner), Linear(inner, width)
        self.dropout = Dropout(dropout if act_dropout is None else act_dropout)
        self.activation = activation

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(getattr(F, self.activation)(self.linear1(x))))


class TransformerEncoderLayer(_TransformerLayer):
    """Self-attention, then two linear maps, each added to its input and normalised.

    Args:
        d_model: The width.
        nhead: Number of heads.
        dim_feedforward: Width between the linear maps.
        dropout: Probability of dropout after each part.
        activation: Name of the function between the linear maps.
        attn_dropout: Of the weights of attention; default: dropout.
        act_dropout: After the activation; default: dropout.
        normalize_before: Whether the input of each part is normalised instead of its result.
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int,
        dropout: float = 0.1,
        activation: str = "relu",
        attn_dropout: float | None = None,
        act_dropout: float | None = None,
        normalize_before: bool = False,
    ) -> None:
        super().__init__()
        self.self_attn = MultiHeadAttention(d_model, nhead, dropout if attn_dropout is None else attn_dropout)
        self._make(d_model, dim_feedforward, dropout, activation, act_dropout)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)
        self.dropout1, self.dropout2 = Dropout(dropout), Dropout(dropout)
        self.normalize_before = normalize_before

    def forward(self, src: Tensor, src_mask: Tensor | None = None) -> Tensor:
        """[batch, length, d_model] to the same; src_mask: as attn_mask of MultiHeadAttention."""
        if self.normalize_before:
            x = self.norm1(src)
            src = src + self.dropout1(self.self_attn(x, attn_mask=src_mask))
            return src + self.dropout2(self._feed_forward(self.norm2(src)))
        src = self.norm1(src + self.dropout1(self.self_attn(src, attn_mask=src_mask)))
        return self.norm2(src + self.dropout2(self._feed_forward(src)))


class TransformerDecoderLayer(_TransformerLayer):
    """Layer of a decoder: self-attention, attention to the encoder's result, then two linear maps.

    Each part is added to its input and normalized.

    Args:
        d_model: Width of the inputs and of the result.
        nhead: Number of heads, of which d_model is a multiple.
        dim_feedforward: Width between the two linear maps.
        dropout: Probability of dropout after each part.
        activation: Name of the function of oprack.functional between the linear maps, such as "relu" or "gelu".
        attn_dropout: Probability of dropout of attention weights; None: dropout.
        act_dropout: Probability of dropout after the activation; None: dropout.
        normalize_before: Whether the input of each part is normalized instead of its result.
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int,
        dropout: float = 0.1,
        activation: str = "relu",
        attn_dropout: float | None = None,
        act_dropout: float | None = None,
        normalize_before: bool = False,
    ) -> None:
        super().__init__()
        attention = dropout if attn_dropout is None else attn_dropout
        self.self_attn = MultiHeadAttention(d_model, nhead, attention)
        self.cross_attn = MultiHeadAttention(d_model, nhead, attention)
        self._make(d_model, dim_feedforward, dropout, activation, act_dropout)
        self.norm1, self.norm2, self.norm3 = LayerNorm(d_model), LayerNorm(d_model), LayerNorm(d_model)
        self.dropout1, self.dropout2, self.dropout3 = Dropout(dropout), Dropout(dropout), Dropout(dropout)
        self.normalize_before = normalize_before

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None
    ) -> Tensor:
        """[batch, length, d_model] and the encoder's [batch, places, d_model] to [batch, length, d_model]."""
        if self.normalize_before:
            tgt = tgt + self.dropout1(self.self_attn(self.norm1(tgt), attn_mask=tgt_mask))
            tgt = tgt + self.dropout2(self.cross_attn(self.norm2(tgt), memory, memory, memory_mask))
            return tgt + self.dropout3(self._feed_forward(self.norm3(tgt)))
        tgt = self.norm1(tgt + self.dropout1(self.self_attn(tgt, attn_mask=tgt_mask)))
        tgt = self.norm2(tgt + self.dropout2(self.cross_attn(tgt, memory, memory, memory_mask)))
        return self.norm3(tgt + self.dropout3(self._feed_forward(tgt)))


class TransformerEncoder(Module):
    """Stack of encoder layers, copies of one with parameters of their own.

    Args:
        encoder_layer: The first layer, a TransformerEncoderLayer.
        num_layers: Number of layers.
        norm: A module that is applied to the result, such as LayerNorm; None: none.
    """

    def __init__(self, encoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = ModuleList([encoder_layer, *(_fresh(encoder_layer) for _ in range(num_layers - 1))])
        self.norm = norm

    def forward(self, src: Tensor, src_mask: Tensor | None = None) -> Tensor:
        for layer in self.layers:
            src = layer(src, src_mask)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """Stack of decoder layers, copies of one with parameters of their own.

    Args:
        decoder_layer: The first layer, a TransformerDecoderLayer.
        num_layers: Number of layers.
        norm: A module that is applied to the result, such as LayerNorm; None: none.
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = ModuleList([decoder_layer, *(_fresh(decoder_layer) for _ in range(num_layers - 1))])
        self.norm = norm

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None
    ) -> Tensor:
        for layer in self.layers:
            tgt = layer(tgt, memory, tgt_mask, memory_mask)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """Encoder and decoder of a transformer (Vaswani et al., 2017).

    Args:
        d_model: Width of the inputs and of the result.
        nhead: Number of heads, of which d_model is a multiple.
        num_encoder_layers: Number of layers of the encoder.
        num_decoder_layers: Number of layers of the decoder.
        dim_feedforward: Width between the two linear maps.
        dropout: Probability of dropout after each part.
        activation: Name of the function of oprack.functional between the linear maps, such as "relu" or "gelu".
        normalize_before: Whether the input of each part is normalized instead of its result; then encoder and decoder
            end with a LayerNorm.
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str = "relu",
        normalize_before: bool = False,
    ) -> None:
        super().__init__()
        settings = d_model, nhead, dim_feedforward, dropout, activation, None, None, normalize_before
        ends = (LayerNorm(d_model), LayerNorm(d_model)) if normalize_before else (None, None)
        self.encoder = TransformerEncoder(TransformerEncoderLayer(*settings), num_encoder_layers, ends[0])
        self.decoder = TransformerDecoder(TransformerDecoderLayer(*settings), num_decoder_layers, ends[1])

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        """[batch, places, d_model] and [batch, length, d_model] to [batch, length, d_model]."""
        return self.decoder(tgt, self.encoder(src, src_mask), tgt_mask, memory_mask)

    @staticmethod
    def generate_square_subsequent_mask(length: int) -> Tensor:
        """A mask [length, length] by which each place looks at itself and those before."""
        ones = F.fill_constant(shape=[length, length], dtype="float32", value=1.0)
        return F.tril_triu(ones, diagonal=1, lower=False) * -1e9


def _fresh(layer: Module) -> Module:
    """A copy whose parameters have names of their own, by which optimizers tell them apart."""
    twin = copy.deepcopy(layer)
    for module in twin.modules():
        module.rename()
    return twin
