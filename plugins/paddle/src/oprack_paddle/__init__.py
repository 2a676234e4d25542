"""Paddle's namespace, served by oprack: `import oprack_paddle as paddle`.

Names are found on their first use. `python -m oprack_paddle script.py` and `oprack exec` serve it under the name
`paddle`, so that programs run unedited.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    from oprack_paddle.namespace import module

    return getattr(module(""), name)


def __dir__() -> list[str]:
    from oprack_paddle.namespace import module

    return dir(module(""))
