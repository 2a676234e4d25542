"""Recurrent layers as ONNX has them, and Fourier transforms of real signals as pairs."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, InferVarTypeContext, Input, Output, dtype_of
from oprack.types import AttrType, dtype_name

from oprack_onnx_ops.ops._common import OnnxOp, dtypes, numbers


class OnnxRecurrent(OnnxOp):
    """What recurrent layers share."""

    X = Input("[steps, batch, inputs]; [batch, steps, inputs] with layout.")
    W = Input("[directions, gates * hidden, inputs].")
    R = Input("[directions, gates * hidden, hidden].")
    B = Input("[directions, 2 * gates * hidden]: of the input, then of the state.", dispensable=True)
    sequence_lens = Input("int32 [batch].", dispensable=True)
    initial_h = Input("[directions, batch, hidden].", dispensable=True)
    Y = Output("[steps, directions, batch, hidden].", dispensable=True)
    Y_h = Output("[directions, batch, hidden].", dispensable=True)
    hidden_size = Attr(REQUIRED, "Size of the state.", type=AttrType.INT)
    direction = Attr("forward", "Which way.").in_set(["forward", "reverse", "bidirectional"])
    activations = Attr([], "Functions of the gates, for each direction.", type=AttrType.STRINGS)
    activation_alpha = Attr([], "Their first parameters.", type=AttrType.FLOATS)
    activation_beta = Attr([], "Their second parameters.", type=AttrType.FLOATS)
    clip = Attr(0.0, "Bound of what enters an activation; 0: none.")
    layout = Attr(False, "The batch comes first.")
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, directions, hidden = ctx.require_rank("X", 3), ctx.dim("W")[0], ctx.attr("hidden_size")
        swapped = ctx.attr("layout")
        steps, batch = (dims[1], dims[0]) if swapped else dims[:2]
        ctx.set_dim("Y", [batch, steps, directions, hidden] if swapped else [steps, directions, batch, hidden])
        for slot in ("Y_h", "Y_c"):
            if slot in ctx.proto.outputs:
                ctx.set_dim(slot, [batch, directions, hidden] if swapped else [directions, batch, hidden])

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        for slot in ctx.proto.outputs:
            dtypes(ctx, **{slot: ctx.dtype("X")})


class OnnxRNN(OnnxRecurrent, type="onnx_rnn"):
    r"""$$h_t = f(x_t W^T + h_{t-1} R^T + b)$$"""


class OnnxGRU(OnnxRecurrent, type="onnx_gru"):
    r"""$$h_t = (1 - z_t) \tilde h_t + z_t h_{t-1}$$ with gates in the order z, r, h."""

    linear_before_reset = Attr(False, "The reset gate multiplies the product with R, not the state.")


class OnnxLSTM(OnnxRecurrent, type="onnx_lstm"):
    r"""$$c_t = f_t c_{t-1} + i_t \tilde c_t, \quad h_t = o_t \, h(c_t)$$ with gates in the order i, o, f, c."""

    initial_c = Input("[directions, batch, hidden].", dispensable=True)
    P = Input("[directions, 3 * hidden]: of the cell in the gates i, o, f.", dispensable=True)
    Y_c = Output("[directions, batch, hidden].", dispensable=True)
    input_forget = Attr(False, "The forget gate is one less the input gate.")


class OnnxDFT(OnnxOp, type="onnx_dft"):
    r"""$$output_k = \sum_j input_j e^{-2 \pi i\, jk / n}$$ with real and imaginary parts in the last dim."""

    input = Input("[..., 1] of real numbers or [..., 2] of complex ones.")
    dft_length = Input("One integer: n; the size of the axis where it is absent.", dispensable=True)
    axis = Input("One integer: the axis; the one before the last where it is absent.", dispensable=True)
    output = Output("[..., 2]; [..., 1] of the inverse with `onesided`.")
    inverse = Attr(False, "The other way, divided by n.")
    onesided = Attr(False, "The half that says it all.")
    expected_kernel_type = dtype_of("input")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("output", [-1] * len(ctx.dim("input")))


class OnnxSTFT(OnnxOp, type="onnx_stft"):
    r"""$$output_{t,k} = \sum_j window_j\, signal_{t s + j}\, e^{-2 \pi i\, jk / n}$$ for steps of s elements."""

    signal = Input("[batch, length, 1] of real numbers or [batch, length, 2] of complex ones.")
    frame_step = Input("One integer: from window to window.")
    window = Input("[n]: factors; 1 where it is absent.", dispensable=True)
    frame_length = Input("One integer: n, where there is no window.", dispensable=True)
    output = Output("[batch, windows, frequencies, 2].")
    onesided = Attr(True, "The half that says it all.")
    expected_kernel_type = dtype_of("signal")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("output", [ctx.dim("signal")[0] if ctx.dim("signal") else -1, -1, -1, 2])


class OnnxMelWeightMatrix(OnnxOp, type="onnx_mel_weight_matrix"):
    r"""$$output_{f,m} = \max(0, \min(\tfrac{f - a_m}{b_m - a_m}, \tfrac{c_m - f}{c_m - b_m}))$$

    for neighbours a, b, c of the mel scale, as numbers of frequencies.
    """

    num_mel_bins = Input("One integer: columns.")
    dft_length = Input("One integer: points of the transform.")
    sample_rate = Input("One integer, in hertz.")
    lower_edge_hertz = Input("One number.")
    upper_edge_hertz = Input("One number.")
    output = Output("[dft_length / 2 + 1, num_mel_bins].")
    output_datatype = Attr(5, "Its dtype.")
    expected_kernel_type = dtype_of("num_mel_bins")

    def infer_shape(ctx: InferShapeContext) -> None:
        bins, points = numbers(ctx, "num_mel_bins"), numbers(ctx, "dft_length")
        ctx.set_dim("output", [-1 if points is None else points[0] // 2 + 1, -1 if bins is None else bins[0]])

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        dtypes(ctx, output=dtype_name(ctx.attr("output_datatype")))
