"""The run itself: what it prints and checks, where it may go, what it drops."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError, PreconditionNotMetError
from oprack.kernel import Array, ArrayModule, kernel


# assert ---------------------------------------------------------------------------------------------------------------
@kernel("assert", place=("cpu", "cuda"), dtypes=("bool",))
def check(Cond: Array, Data: list[Array], *, summarize: int) -> None:
    if Cond.size != 1:
        raise InvalidArgumentError(f"op assert: Cond has shape {list(Cond.shape)}; expected one bool")
    if bool(Cond.reshape(-1)[0]):
        return
    shown = [
        f"{d.dtype}{list(d.shape)}: {d.reshape(-1)[: summarize if summarize >= 0 else None].tolist()}" for d in Data
    ]
    raise PreconditionNotMetError(
        "op assert: Cond is false, but the program asserts that it holds; look at the inputs that led here"
        + "".join(f"\n  {line}" for line in shown)
    )


# is_empty -------------------------------------------------------------------------------------------------------------
@kernel("is_empty", place=("cpu", "cuda"))
def is_empty(X: Array, *, xp: ArrayModule) -> Array:
    return xp.asarray(X.size == 0)
