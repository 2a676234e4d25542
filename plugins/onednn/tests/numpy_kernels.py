"""What the kernels give that run where this library does not."""

from __future__ import annotations

import inspect

from oprack.kernel import KernelContext, KernelRules
from oprack.kernel.context import candidate_for
from oprack.kernel.invoke import call_arrays
from oprack.op import slot_name
from oprack.packs.manager import default_manager

WITHOUT = KernelRules(excluded=["onednn"])


def numpy_result(op, arrays, ctx):
    """What NumPy's kernel of an op gives for arrays by parameter, with the attributes and offsets of a context."""
    inputs = {slot_name(p, grads=op.endswith("_grad")): a for p, a in arrays.items() if a is not None}
    return call_arrays(op, candidate_for(default_manager(), op, inputs, ctx.attrs, WITHOUT), inputs, ctx)


def on_numpy(op, attrs=None):
    """A context of the op in which nothing runs on this library."""
    return KernelContext(op, attrs, packs=default_manager(), rules=WITHOUT)


def call(function, *args, ctx, **named):
    """A kernel, with its context if it takes one."""
    context = {"ctx": ctx} if "ctx" in inspect.signature(function).parameters else {}
    return function(*args, **named, **context)
