"""Checks of kernels for place cuda on a machine without a GPU."""

from oprack_cuda.testing.cases import check_case
from oprack_cuda.testing.context import OpWatch, StrictDeviceContext, strict_executor
from oprack_cuda.testing.namespace import xp
from oprack_cuda.testing.strict import LOG, StrictArray

__all__ = ["LOG", "OpWatch", "StrictArray", "StrictDeviceContext", "check_case", "strict_executor", "xp"]
