"""PredictorPool: predictors of one model for several threads."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.inference.config import Config
from oprack.inference.predictor import Predictor, create_predictor


class PredictorPool:
    """A predictor and its clones: `PredictorPool(config, 4).retrive(2)`; Paddle's spelling.

    Args:
        config: What to load, and how to run it.
        size: How many predictors.

    Raises:
        InvalidArgumentError: The size is below 1.
    """

    def __init__(self, config: Config, size: int = 1) -> None:
        if size < 1:
            raise InvalidArgumentError(f"PredictorPool(config, {size}): expected a size of at least 1")
        first = create_predictor(config)
        self._predictors = [first, *(first.clone() for _ in range(size - 1))]

    def retrive(self, index: int) -> Predictor:
        """One of the predictors.

        Args:
            index: Its number.

        Returns:
            The predictor.

        Raises:
            InvalidArgumentError: There is none.
        """
        if not 0 <= index < len(self._predictors):
            raise InvalidArgumentError(f"retrive({index}): the pool has predictors 0 to {len(self._predictors) - 1}")
        return self._predictors[index]

    retrieve = retrive
