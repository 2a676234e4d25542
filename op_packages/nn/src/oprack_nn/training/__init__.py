"""What training loops need beside networks: utils, found as `oprack.nn.utils`."""

from oprack_nn.training import utils

__all__ = ["utils"]
