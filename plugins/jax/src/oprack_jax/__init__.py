"""Ops of oprack's packs in JAX: `oprack_jax.ops.<op>`, called as the functions of oprack.functional."""

from oprack_jax import ops
from oprack_jax.sequences import Sequences

__all__ = ["Sequences", "ops"]
