"""Kernels of rnn_memory_helper."""

from __future__ import annotations

from oprack.kernel import kernel


@kernel("rnn_memory_helper", place=("cpu", "cuda"), view=True)
def rnn_memory_helper(X):
    return X.view()


@kernel("rnn_memory_helper_grad", place=("cpu", "cuda"))
def rnn_memory_helper_grad(X, Out_grad=None, *, xp):
    return xp.zeros(X.shape, X.dtype) if Out_grad is None else Out_grad.copy()
