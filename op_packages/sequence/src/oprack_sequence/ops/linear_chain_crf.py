"""linear_chain_crf: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import GradOp, GradOpDef, Input, OpDef, Output, dtype_of

from oprack_sequence.ops._infer import same_as, same_dim


class LinearChainCrf(OpDef, type="linear_chain_crf"):
    r"""Negative log-likelihood of a label path in a linear-chain conditional random field.

    With a_l, b_l the weights of starting and ending at label l and w those of following: the score of a path s is
    $$a_{s_1} + b_{s_L} + \sum_l x_{l, s_l} + \sum_{l>1} w_{s_{l-1}, s_l}$$
    and the loss the log of the sum of exp(score) over all paths minus the score of Label. An empty sequence costs 0.
    """

    Emission = Input("Unnormalised weights x: [N, D] with LoD, or [B, T, D] with Length.")
    Transition = Input("[D + 2, D]: row 0 holds a, row 1 holds b, the others w (from row to column).")
    Label = Input("int64 [N, 1] with LoD, or [B, T] (or [B, T, 1]) with Length.")
    Length = Input("int64 [B] or [B, 1].", dispensable=True)
    Alpha = Output("Forward probabilities, normalised in each row; shape of Emission.", intermediate=True)
    EmissionExps = Output("exp(x - largest of its row).", intermediate=True)
    TransitionExps = Output("exp(Transition).", intermediate=True)
    LogLikelihood = Output("[number of sequences, 1].")
    expected_kernel_type = dtype_of("Emission")

    def infer_shape(ctx):
        if not ctx.has_input("Length"):
            ctx.require_lod("Emission")
        emission = ctx.require_rank("Emission", *((3,) if ctx.has_input("Length") else (2,)))
        tags = emission[-1]
        states = tags + 2 if tags >= 0 else -1
        ctx.require_dims("Transition", (states, tags), why=f"for the {tags} columns of Emission")
        ctx.set_dim("Alpha", emission)
        ctx.set_dim("EmissionExps", emission)
        ctx.set_dim("TransitionExps", ctx.dim("Transition"))
        ctx.set_dim("LogLikelihood", (emission[0] if ctx.has_input("Length") else -1, 1))

    def make_grad(fwd):
        return GradOp(
            "linear_chain_crf_grad",
            **{slot: fwd.input(slot) for slot in ("Emission", "Transition", "Label", "Length")},
            **{slot: fwd.output(slot) for slot in ("Alpha", "EmissionExps", "TransitionExps")},
            LogLikelihood_grad=fwd.output_grad("LogLikelihood"),
            Emission_grad=fwd.input_grad("Emission"),
            Transition_grad=fwd.input_grad("Transition"),
        )


class LinearChainCrfGrad(GradOpDef, type="linear_chain_crf_grad"):
    """Marginal probabilities of labels and of pairs of labels, minus what Label has."""

    Emission = Input("Only its LoD and shape are read.")
    Transition = Input("Only its shape is read.")
    Label = Input("As in linear_chain_crf.")
    Length = Input("As in linear_chain_crf.", dispensable=True)
    Alpha = Input("From linear_chain_crf.")
    EmissionExps = Input("From linear_chain_crf.")
    TransitionExps = Input("From linear_chain_crf.")
    LogLikelihood_grad = Input("Gradient of LogLikelihood.")
    Emission_grad = Output("Shape and LoD of Emission.")
    Transition_grad = Output("Shape of Transition.")
    no_need_buffer_vars = ("Emission", "Transition")
    expected_kernel_type = dtype_of("LogLikelihood@GRAD")

    def infer_shape(ctx):
        same_as(ctx, "Emission", "Emission@GRAD")
        same_dim(ctx, "Transition", "Transition@GRAD")
