"""Entry point of the pack."""

from __future__ import annotations

from oprack import hookimpl

# Module in layers/ -> the functions of it that are layers.
LAYERS = {
    "recurrent": """
        dynamic_gru dynamic_lstm dynamic_lstmp gru_unit lstm_unit row_conv
    """,
    "sequence": """
        add_position_encoding im2sequence lod_append lod_reset sequence_concat sequence_conv
        sequence_enumerate sequence_expand sequence_expand_as sequence_first_step sequence_last_step
        sequence_mask sequence_pad sequence_pool sequence_reshape sequence_reverse sequence_scatter
        sequence_slice sequence_softmax sequence_unpad
    """,
    "labeling": """
        beam_search beam_search_decode crf_decoding ctc_greedy_decoder edit_distance linear_chain_crf
        warpctc
    """,
}

# Functions of layers/nets.py, found as oprack.nets.<name>.
NETS = ("sequence_conv_pool",)


# Blocks of nets in fuzz.py, which oprack.testing.fuzz puts together.
BLOCKS = ("convolved", "gru", "labels", "lstm", "pooled", "reversed_rows")


@hookimpl
def oprack_ops(register):
    """Register every op of ops.toml."""
    register.manifest(__package__)


@hookimpl
def oprack_layers(register):
    """Functions that append ops to a program, found as oprack.layers.<name> and imported on first use."""
    for module, names in LAYERS.items():
        register.layers(f"{__package__}.layers.{module}", *names.split())
    register.layers(f"{__package__}.fuzz", *BLOCKS, namespace="fuzz")
    register.layers(f"{__package__}.layers.nets", *NETS, namespace="nets")
    register.layers(f"{__package__}.modules.recurrent", "GRU", "LSTM", "SimpleRNN", namespace="nn")
