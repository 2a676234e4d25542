"""Attention and the layers of transformers, on padded batches [batch, length, width] or rows of sequences.

Rows [N, width] with LoD are sequences one after the other, without padding: attention is within each sequence, all else
row by row, and what comes out has their LoD.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from oprack import functional as F
from oprack.errors import InvalidArgumentError
from oprack.nn import Module, ModuleList

from oprack_nn.functional import common as C
from oprack_nn.modules.common import Dropout, Linear
from oprack_nn.modules.norm import LayerNorm

if TYPE_CHECKING:
    from oprack import Tensor


class KeyValueCache(NamedTuple):
    """Keys and values of the places that were seen, for generation step by step.

    Attributes:
        k: [batch, places, heads, width of a head], or rows [M, heads, width of a head] with LoD; None: none so far.
        v: As k.
        grows: Whether keys and values of what is attended to next are appended; otherwise these are all.
    """

    k: Any = None
    v: Any = None
    grows: bool = True

    def joined(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of these places and of more behind them, of each sequence for itself."""
        if self.k is None:
            return k, v
        if C.is_rows(k, 3):
            return F.sequence_concat([self.k, k]), F.sequence_concat([self.v, v])
        return F.concat([self.k, k], axis=1), F.concat([self.v, v], axis=1)

    def select(self, index: Tensor) -> KeyValueCache:
        """The places of some sequences.

        Args:
            index: Their numbers, int32 or int64 [sequences], in any order: those that are not finished, or the parents
                of the beams of a search.

        Returns:
            A cache of these sequences.
        """
        if self.k is None:
            return self
        chosen = F.sequence_select if C.is_rows(self.k, 3) else F.gather
        return KeyValueCache(chosen(self.k, index), chosen(self.v, index), self.grows)


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
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        attn_mask: Tensor | None = None,
        cache: KeyValueCache | None = None,
        is_causal: bool = False,
    ) -> Any:
        """Attend.

        Args:
            query: [batch, length, embed_dim], or rows [N, embed_dim] with LoD.
            key: [batch, places, kdim], or rows [M, kdim] with LoD of as many sequences; default: query.
            value: [batch, places, vdim], or rows [M, vdim]; default: key.
            attn_mask: Added to the scores, or bool with True where to look; broadcast to
                [batch, heads, length, places]. Rows take none.
            cache: Keys and values from gen_cache or the step before.
            is_causal: Whether a place looks at itself and those before it alone, behind those of the cache.

        Returns:
            [batch, length, embed_dim], or rows [N, embed_dim] with the LoD of query; with a cache, a pair of this and
            the cache of the next step.
        """
        key = query if key is None else key
        q = self._heads(self.q_proj(query))
        if cache is not None and not cache.grows:
            k, v = cache.k, cache.v
        else:
            k, v = self._keys_values(key, key if value is None else value)
            if cache is not None:
                k, v = cache.joined(k, v)
                cache = KeyValueCache(k, v)
        if is_causal and cache is not None and q.ndim == 4:
            attn_mask, is_causal = self._behind(q, k, attn_mask), False
        found = C.scaled_dot_product_attention(q, k, v, attn_mask, self.dropout, is_causal, training=self.training)
        out = self.out_proj(C.lod_of(query, found.reshape([*[0] * (q.ndim - 2), self.embed_dim])))
        return out if cache is None else (out, cache)

    def gen_cache(self, key: Tensor | None = None, value: Tensor | None = None) -> KeyValueCache:
        """Start to generate.

        Args:
            key: What is attended to in every step, such as the result of an encoder; None: what the steps bring.
            value: The same for the values; default: key.

        Returns:
            A cache that stays as it is, or one without places that grows.
        """
        if key is None:
            return KeyValueCache()
        return KeyValueCache(*self._keys_values(key, key if value is None else value), grows=False)

    def _keys_values(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        return self._heads(self.k_proj(key)), self._heads(self.v_proj(value))

    def _heads(self, x: Tensor) -> Tensor:
        """[..., width] as [..., heads, width of a head]."""
        return C.lod_of(x, x.reshape([*[0] * (x.ndim - 1), self.num_heads, self.embed_dim // self.num_heads]))

    @staticmethod
    def _behind(q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
        """The mask by which the last query stands at the last key."""
        length, places = q.shape[1], k.shape[1]
        far = F.fill_constant(shape=[length, places], dtype=q.dtype, value=-1e9)
        later = F.tril_triu(far, diagonal=places - length + 1, lower=False)
        return later if mask is None else later + mask


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

    def forward(self, src: Tensor, src_mask: Tensor | None = None, is_causal: bool = False) -> Tensor:
        """Compute the layer.

        Args:
            src: [batch, length, d_model], or rows [N, d_model] with LoD.
            src_mask: As attn_mask of MultiHeadAttention.
            is_causal: Whether a place looks at itself and those before it alone.

        Returns:
            As src.
        """
        if self.normalize_before:
            x = self.norm1(src)
            src = src + self.dropout1(self.self_attn(x, attn_mask=src_mask, is_causal=is_causal))
            return src + self.dropout2(self._feed_forward(self.norm2(src)))
        src = self.norm1(src + self.dropout1(self.self_attn(src, attn_mask=src_mask, is_causal=is_causal)))
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
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        cache: tuple[KeyValueCache, KeyValueCache] | None = None,
        tgt_is_causal: bool = False,
    ) -> Any:
        """Compute the layer.

        Args:
            tgt: [batch, length, d_model], or rows [N, d_model] with LoD.
            memory: Result of the encoder [batch, places, d_model], or rows [M, d_model] with LoD of as many sequences.
            tgt_mask: As attn_mask of MultiHeadAttention, of tgt to itself.
            memory_mask: The same of tgt to memory.
            cache: From gen_cache or the step before; tgt are the places behind it.
            tgt_is_causal: Whether a place of tgt looks at itself and those before it alone.

        Returns:
            As tgt; with a cache, a pair of this and the cache of the next step.
        """
        own, others = (None, None) if cache is None else cache
        before = self.normalize_before

        def part(norm: Module, dropout: Module, x: Tensor, computed: Callable[[Tensor], Any]) -> tuple[Tensor, Any]:
            found = computed(norm(x) if before else x)
            found, kept = found if isinstance(found, tuple) else (found, None)
            x = x + dropout(found)
            return (x if before else norm(x)), kept

        tgt, own = part(
            self.norm1,
            self.dropout1,
            tgt,
            lambda x: self.self_attn(x, attn_mask=tgt_mask, cache=own, is_causal=tgt_is_causal),
        )
        tgt, others = part(
            self.norm2, self.dropout2, tgt, lambda x: self.cross_attn(x, memory, memory, memory_mask, others)
        )
        tgt, _ = part(self.norm3, self.dropout3, tgt, self._feed_forward)
        return tgt if cache is None else (tgt, (own, others))

    def gen_cache(self, memory: Tensor) -> tuple[KeyValueCache, KeyValueCache]:
        """Start to generate behind nothing; memory: the result of the encoder, as forward takes it."""
        return self.self_attn.gen_cache(), self.cross_attn.gen_cache(memory)


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

    def forward(self, src: Tensor, src_mask: Tensor | None = None, is_causal: bool = False) -> Tensor:
        """As TransformerEncoderLayer, layer by layer."""
        for layer in self.layers:
            src = layer(src, src_mask, is_causal)
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
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        cache: Sequence[tuple[KeyValueCache, KeyValueCache]] | None = None,
        tgt_is_causal: bool = False,
    ) -> Any:
        """As TransformerDecoderLayer, layer by layer; cache: those of all layers, from gen_cache or the step before."""
        kept = []
        for i, layer in enumerate(self.layers):
            tgt = layer(tgt, memory, tgt_mask, memory_mask, None if cache is None else cache[i], tgt_is_causal)
            if cache is not None:
                tgt, of_layer = tgt
                kept.append(of_layer)
        out = tgt if self.norm is None else self.norm(tgt)
        return out if cache is None else (out, kept)

    def gen_cache(self, memory: Tensor) -> list[tuple[KeyValueCache, KeyValueCache]]:
        """Start to generate behind nothing; memory: the result of the encoder."""
        return [layer.gen_cache(memory) for layer in self.layers]


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
        tgt_is_causal: bool = False,
    ) -> Tensor:
        """[batch, places, d_model] and [batch, length, d_model] to [batch, length, d_model]; rows with LoD to rows."""
        memory = self.encoder(src, src_mask)
        found: Tensor = self.decoder(tgt, memory, tgt_mask, memory_mask, tgt_is_causal=tgt_is_causal)
        return found

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
