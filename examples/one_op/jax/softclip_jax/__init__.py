"""softclip as a primitive of JAX: limit * tanh(x / limit)."""

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

softclip_p = Primitive("softclip")


def softclip(x, *, limit):
    if limit <= 0:
        raise ValueError(f"limit is {limit}; expected a positive number")
    return softclip_p.bind(x, limit=limit)


def _compute(x, *, limit):
    return limit * jnp.tanh(x / limit)


def _jvp(primals, tangents, *, limit):
    (x,), (t,) = primals, tangents
    out = softclip(x, limit=limit)
    t = ad.instantiate_zeros(t)
    return out, t * (1 - (out / limit) ** 2)


def _batch(args, dims, *, limit):
    return softclip(args[0], limit=limit), dims[0]


softclip_p.def_impl(jax.jit(_compute, static_argnames="limit"))
softclip_p.def_abstract_eval(lambda x, *, limit: jax.core.ShapedArray(x.shape, x.dtype))
ad.primitive_jvps[softclip_p] = _jvp
batching.primitive_batchers[softclip_p] = _batch
for platform in ("cpu", "cuda"):
    mlir.register_lowering(softclip_p, mlir.lower_fun(_compute, multiple_results=False), platform=platform)
