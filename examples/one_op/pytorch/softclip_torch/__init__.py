"""softclip as an operator of PyTorch: limit * tanh(x / limit)."""

import torch


@torch.library.custom_op("smooth::softclip", mutates_args=(), device_types=("cpu", "cuda"))
def softclip(x: torch.Tensor, limit: float) -> torch.Tensor:
    return limit * torch.tanh(x / limit)


@torch.library.custom_op("smooth::softclip_grad", mutates_args=(), device_types=("cpu", "cuda"))
def softclip_grad(out: torch.Tensor, grad: torch.Tensor, limit: float) -> torch.Tensor:
    return grad * (1 - (out / limit) ** 2)


@softclip.register_fake
def _(x, limit):
    torch._check(limit > 0, lambda: f"limit is {limit}; expected a positive number")
    return torch.empty_like(x)


@softclip_grad.register_fake
def _(out, grad, limit):
    return torch.empty_like(out)


def _save(ctx, inputs, output):
    ctx.save_for_backward(output)
    ctx.limit = inputs[1]


def _backward(ctx, grad):
    return softclip_grad(*ctx.saved_tensors, grad, ctx.limit), None


softclip.register_autograd(_backward, setup_context=_save)
