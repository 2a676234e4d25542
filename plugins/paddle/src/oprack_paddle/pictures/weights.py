"""What nets of paddle.vision.models say when trained weights are asked for."""

from __future__ import annotations


def without_download(name: str, pretrained: bool) -> None:
    """Refuse to fetch trained weights.

    Raises:
        NotImplementedError: They are asked for.
    """
    if pretrained:
        raise NotImplementedError(
            f"{name}: pretrained=True would download weights, which oprack does not; "
            'write net.set_state_dict(paddle.load("weights.pdparams")) with a file of Paddle\'s weights'
        )
