"""Layers of paddle.nn, called with the same numbers by Paddle 2.6.2 and by oprack, forwards and backwards.

    python layer_calls.py OUT.npz                      # Paddle 2.6.2: writes layers.npz
    python -m oprack_paddle layer_calls.py OUT.npz     # oprack: test_layers.py compares

Weights are the same random numbers by the order of parameters, whose names and shapes are written, too.
"""

from __future__ import annotations

import json
import sys
import warnings

import numpy as np
import paddle

warnings.filterwarnings("ignore")
r = np.random.default_rng(0)
T = paddle.to_tensor


def f(*shape):
    return r.uniform(-1, 1, shape).astype("float32")


def i64(high, *shape):
    return r.integers(0, high, shape).astype("int64")


ACTIVATIONS = """CELU ELU GELU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid LogSoftmax Mish ReLU ReLU6
SELU Sigmoid Silu Softmax Softplus Softshrink Softsign Swish Tanh Tanhshrink ThresholdedReLU"""
CALLS = [
    ("BatchNorm1D(3)", [f(4, 3)]),
    ("BatchNorm1D(3)", [f(4, 3, 5)]),
    ("BatchNorm1D(3, data_format='NLC')", [f(4, 5, 3)]),
    ("BatchNorm2D(3)", [f(2, 3, 4, 4)]),
    ("BatchNorm3D(3)", [f(2, 3, 4, 4, 2)]),
    ("BatchNorm2D(3, data_format='NHWC')", [f(2, 4, 4, 3)]),
    ("BatchNorm3D(3, data_format='NDHWC')", [f(2, 4, 2, 4, 3)]),
    ("BatchNorm(3)", [f(2, 3, 4, 4)]),
    ("BatchNorm(3, act='relu')", [f(2, 3, 4, 4)]),
    ("InstanceNorm1D(3)", [f(2, 3, 5)]),
    ("InstanceNorm2D(3)", [f(2, 3, 5, 4)]),
    ("InstanceNorm3D(3)", [f(2, 3, 5, 4, 2)]),
    ("LayerNorm(4)", [f(2, 3, 4)]),
    ("LayerNorm([3,4])", [f(2, 3, 4)]),
    ("GroupNorm(2,4)", [f(2, 4, 3, 3)]),
    ("GroupNorm(2,4,data_format='NHWC')", [f(2, 3, 3, 4)]),
    ("LocalResponseNorm(3)", [f(2, 4, 3, 3)]),
    ("Conv1D(3,4,3)", [f(2, 3, 8)]),
    ("Conv1D(3,4,3,padding='same',data_format='NLC')", [f(2, 8, 3)]),
    ("Conv1D(3,4,3,stride=2,padding=1,padding_mode='reflect')", [f(2, 3, 8)]),
    ("Conv2D(3,4,3)", [f(2, 3, 8, 8)]),
    ("Conv2D(4,4,3,groups=2,dilation=2)", [f(2, 4, 8, 8)]),
    ("Conv2D(3,4,3,padding=1,padding_mode='circular')", [f(2, 3, 8, 8)]),
    ("Conv2D(3,4,[3,2],padding=[1,0],data_format='NHWC')", [f(2, 8, 8, 3)]),
    ("Conv3D(2,3,2)", [f(1, 2, 4, 4, 4)]),
    ("Conv1DTranspose(3,4,3)", [f(2, 3, 8)]),
    ("Conv1DTranspose(3,4,3,stride=2,output_padding=1)", [f(2, 3, 8)]),
    ("Conv2DTranspose(3,4,3,stride=2)", [f(2, 3, 5, 5)]),
    ("Conv2DTranspose(3,4,3,stride=2,padding='SAME')", [f(2, 3, 5, 5)]),
    ("Conv3DTranspose(2,3,2)", [f(1, 2, 3, 3, 3)]),
    ("Linear(3,4)", [f(2, 3)]),
    ("Linear(3,4,bias_attr=False)", [f(2, 5, 3)]),
    ("Bilinear(3,4,5)", [f(2, 3), f(2, 4)]),
    ("Embedding(6,4)", [i64(6, 2, 3)]),
    ("Embedding(6,4,padding_idx=1)", [i64(6, 2, 3)]),
    ("PReLU()", [f(2, 3)]),
    ("PReLU(3)", [f(2, 3, 4)]),
    ("RReLU()", [f(2, 3)]),
    ("LSTM(3,4)", [f(2, 5, 3)]),
    ("LSTM(3,4,2,direction='bidirect')", [f(2, 5, 3)]),
    ("GRU(3,4)", [f(2, 5, 3)]),
    ("GRU(3,4,time_major=True)", [f(5, 2, 3)]),
    ("SimpleRNN(3,4)", [f(2, 5, 3)]),
    ("SimpleRNN(3,4,activation='relu')", [f(2, 5, 3)]),
    ("LSTMCell(3,4)", [f(2, 3)]),
    ("GRUCell(3,4)", [f(2, 3)]),
    ("SimpleRNNCell(3,4)", [f(2, 3)]),
    ("RNN(paddle.nn.LSTMCell(3,4))", [f(2, 5, 3)]),
    ("BiRNN(paddle.nn.GRUCell(3,4),paddle.nn.GRUCell(3,4))", [f(2, 5, 3)]),
    ("MultiHeadAttention(4,2)", [f(2, 3, 4)]),
    ("MultiHeadAttention(4,2,kdim=3,vdim=5)", [f(2, 3, 4), f(2, 6, 3), f(2, 6, 5)]),
    ("TransformerEncoderLayer(4,2,8,dropout=0.0)", [f(2, 3, 4)]),
    ("TransformerEncoder(paddle.nn.TransformerEncoderLayer(4,2,8,dropout=0.0,normalize_before=True),2)", [f(2, 3, 4)]),
    ("TransformerDecoderLayer(4,2,8,dropout=0.0)", [f(2, 3, 4), f(2, 5, 4)]),
    ("Transformer(4,2,1,1,8,0.0)", [f(2, 3, 4), f(2, 5, 4)]),
    ("MaxPool1D(2)", [f(2, 3, 8)]),
    ("MaxPool2D(2,return_mask=True)", [f(2, 3, 6, 6)]),
    ("MaxPool3D(2)", [f(1, 2, 4, 4, 4)]),
    ("AvgPool1D(2,exclusive=False,padding=1)", [f(2, 3, 8)]),
    ("AvgPool2D(3,ceil_mode=True)", [f(2, 3, 7, 7)]),
    ("AvgPool3D(2)", [f(1, 2, 4, 4, 4)]),
    ("AdaptiveAvgPool1D(3)", [f(2, 3, 8)]),
    ("AdaptiveAvgPool2D([3,None])", [f(2, 3, 8, 5)]),
    ("AdaptiveAvgPool3D(2)", [f(1, 2, 5, 4, 3)]),
    ("AdaptiveMaxPool1D(3,return_mask=True)", [f(2, 3, 8)]),
    ("AdaptiveMaxPool2D(3)", [f(2, 3, 8, 7)]),
    ("AdaptiveMaxPool3D(2)", [f(1, 2, 5, 4, 3)]),
    ("Pad1D([1,2])", [f(2, 3, 4)]),
    ("Pad2D([1,2,0,1],mode='reflect')", [f(2, 3, 4, 4)]),
    ("Pad3D(1,mode='replicate')", [f(1, 2, 3, 3, 3)]),
    ("ZeroPad2D(1)", [f(1, 2, 3, 3)]),
    ("Flatten()", [f(2, 3, 4)]),
    ("Unflatten(1,[3,2])", [f(2, 6)]),
    ("Fold([4,4],2,2)", [f(1, 8, 4)]),
    ("Unfold(2)", [f(1, 2, 4, 4)]),
    ("PixelShuffle(2)", [f(1, 4, 3, 3)]),
    ("PixelUnshuffle(2)", [f(1, 1, 4, 4)]),
    ("ChannelShuffle(2)", [f(1, 4, 3, 3)]),
    ("Upsample(scale_factor=2)", [f(1, 2, 3, 3)]),
    ("Upsample(size=[5,4],mode='bilinear',align_corners=True)", [f(1, 2, 3, 3)]),
    ("UpsamplingBilinear2D(scale_factor=2)", [f(1, 2, 3, 3)]),
    ("UpsamplingNearest2D(size=[5,5])", [f(1, 2, 3, 3)]),
    ("CosineSimilarity()", [f(3, 4), f(3, 4)]),
    ("PairwiseDistance()", [f(3, 4), f(3, 4)]),
    ("Maxout(2)", [f(1, 4, 3, 3)]),
    ("Softmax2D()", [f(1, 4, 3, 3)]),
    ("Dropout(0.0)", [f(3, 3)]),
    ("AlphaDropout(0.0)", [f(3, 3)]),
    ("Identity()", [f(3, 3)]),
    ("GLU()", [f(3, 4)]),
    ("MaxUnPool2D(2)", [f(1, 1, 2, 2), np.array([[[[0, 3], [9, 15]]]], "int32")]),
    *[(f"{n}()", [f(3, 4)]) for n in ACTIVATIONS.split()],
    ("CrossEntropyLoss()", [f(3, 4), i64(4, 3)]),
    ("CrossEntropyLoss()", [f(3, 4), np.int64([0, -100, 2])]),
    ("CrossEntropyLoss()", [f(2, 4), np.int64([-100, -100])]),
    ("CrossEntropyLoss(soft_label=True)", [f(3, 4), np.float32([[0.1, 0.2, 0.3, 0.4]] * 3)]),
    ("CrossEntropyLoss(weight=T(np.float32([1,2,3,4])),reduction='sum')", [f(3, 4), i64(4, 3)]),
    ("CrossEntropyLoss(label_smoothing=0.1)", [f(3, 4), i64(4, 3)]),
    ("NLLLoss()", [f(3, 4), i64(4, 3)]),
    ("NLLLoss()", [f(3, 4, 2, 2), i64(4, 3, 2, 2)]),
    ("BCELoss()", [abs(f(3, 4)), abs(f(3, 4))]),
    ("BCEWithLogitsLoss()", [f(3, 4), abs(f(3, 4))]),
    ("BCEWithLogitsLoss(pos_weight=T(np.float32([1,2,3,4])))", [f(3, 4), abs(f(3, 4))]),
    ("MSELoss()", [f(3, 4), f(3, 4)]),
    ("L1Loss('sum')", [f(3, 4), f(3, 4)]),
    ("SmoothL1Loss()", [f(3, 4), f(3, 4)]),
    ("SmoothL1Loss(delta=0.3)", [f(3, 4), f(3, 4)]),
    ("KLDivLoss('batchmean')", [f(3, 4), abs(f(3, 4))]),
    ("MarginRankingLoss(0.1)", [f(3), f(3), np.sign(f(3))]),
    ("HingeEmbeddingLoss()", [f(3, 4), np.sign(f(3, 4))]),
    ("CosineEmbeddingLoss()", [f(3, 4), f(3, 4), np.int64([1, -1, 1])]),
    ("TripletMarginLoss()", [f(3, 4), f(3, 4), f(3, 4)]),
    ("TripletMarginWithDistanceLoss()", [f(3, 4), f(3, 4), f(3, 4)]),
    ("SoftMarginLoss()", [f(3, 4), np.sign(f(3, 4))]),
    ("MultiLabelSoftMarginLoss()", [f(3, 4), abs(np.sign(f(3, 4)))]),
    ("MultiMarginLoss()", [f(3, 4), i64(4, 3)]),
    ("PoissonNLLLoss()", [f(3, 4), abs(f(3, 4))]),
    ("GaussianNLLLoss()", [f(3, 4), f(3, 4), abs(f(3, 4)) + 0.1]),
    ("CTCLoss()", [f(6, 2, 5), (i64(4, 2, 3) + 1).astype("int32"), np.int64([6, 5]), np.int64([3, 2])]),
    ("RNNTLoss()", [f(2, 4, 3, 5), np.int32([[1, 2], [3, 1]]), np.int32([4, 4]), np.int32([2, 2])]),
    ("HSigmoidLoss(4,6)", [f(3, 4), i64(6, 3, 1)]),
]


def flat(value, out):
    if isinstance(value, (list, tuple)):
        for v in value:
            flat(v, out)
    elif value is not None and hasattr(value, "numpy"):
        out.append(np.asarray(value.numpy()))


def called(number, text, args):
    """What a layer gives in training, its gradients, its statistics, and what it gives in evaluation."""
    layer, weights, found = eval("paddle.nn." + text), np.random.default_rng(number), []
    names = []
    for name, p in layer.named_parameters():
        p.set_value(T(weights.uniform(-0.5, 0.5, tuple(p.shape)).astype("float32")))
        names.append([name, list(p.shape)])
    if "RReLU" in text:
        layer.eval()
    given = [T(a) for a in args]
    for t in given:
        t.stop_gradient = t.dtype != paddle.float32
    y = layer(*given)
    flat(y, found)
    while isinstance(y, (list, tuple)):
        y = y[0]
    if not y.stop_gradient and "pos_weight" not in text:
        # by pos_weight, Paddle's gradient is not that of its value
        (y * y).sum().backward()
        inputs = given[:1] if "GaussianNLL" in text else given  # Paddle holds the variance constant
        tensors = [*inputs, *(p for p in layer.parameters() if not p.stop_gradient)]
        found += [np.asarray(t.grad.numpy()) for t in tensors if t.grad is not None]
    found += [np.asarray(p.numpy()) for n, p in layer.named_parameters() if n in ("_mean", "_variance")]
    layer.eval()
    flat(layer(*given), found)
    return names, found


if __name__ == "__main__":
    arrays, parameters = {}, {}
    for number, (text, args) in enumerate(CALLS):
        try:
            names, found = called(number, text, args)
        except Exception as error:
            names, found = f"{type(error).__name__}: {error}", []
        parameters[f"{number} {text}"] = names
        for i, array in enumerate(found):
            arrays[f"{number}_{i}"] = array
    np.savez_compressed(sys.argv[1], parameters=np.array(json.dumps(parameters)), **arrays)
