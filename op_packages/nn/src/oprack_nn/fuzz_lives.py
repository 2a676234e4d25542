"""Parts of nets that live, for oprack.testing.fuzz.lives.life: rows of WIDTH numbers to as many.

Each is a Module with `formula(x)`, the same in NumPy, which reads the module's own parameters, buffers and attributes.
`program(x, rows)` is the part as layers of a static program, where it has one; rows are numbers of rows, 0 and on.

A part says what it is like: `trains = True`, it computes something else in training; `writes = True`, a call writes to
its buffers; `fails = True`, it fails when `rows` has other numbers; `counts_rows = True`, it computes with the number
of rows, and may be refused where that is open; `eager_only = True`, it matters in eager calls alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import oprack
from oprack import functional as F
from oprack import layers
from oprack.nn import Module
from oprack.testing.fuzz.lives.subjects import WIDTH, scaled

from oprack_nn.modules.common import Dropout, Linear
from oprack_nn.modules.norm import BatchNorm1D

if TYPE_CHECKING:
    from oprack import Parameter


class Affine(Linear):
    """A fully connected layer."""

    bias: Parameter

    def __init__(self) -> None:
        super().__init__(WIDTH, WIDTH)

    def formula(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(x @ self.weight.numpy() + self.bias.numpy())

    @staticmethod
    def program(x: Any, rows: Any) -> Any:
        return layers.fc(x, WIDTH)


class Squashed(Module):
    """tanh."""

    def forward(self, x: Any) -> Any:
        return x.tanh()

    def formula(self, x: np.ndarray) -> np.ndarray:
        return np.tanh(x)

    @staticmethod
    def program(x: Any, rows: Any) -> Any:
        return layers.tanh(x)


class Dropped(Dropout):
    """x beside its dropout by probability 1, so that nothing is random: x in training, 2 x in evaluation."""

    trains = True

    def __init__(self) -> None:
        super().__init__(1.0)

    def forward(self, x: Any) -> Any:
        return x + super().forward(x)

    def formula(self, x: np.ndarray) -> np.ndarray:
        return x.copy() if self.training else 2 * x

    @staticmethod
    def program(x: Any, rows: Any) -> Any:
        return x + layers.dropout(x, 1.0, dropout_implementation="upscale_in_train")


class Normalised(BatchNorm1D):
    """A batch norm."""

    writes = trains = True
    weight: Parameter
    bias: Parameter

    def __init__(self) -> None:
        super().__init__(WIDTH)

    def formula(self, x: np.ndarray) -> np.ndarray:
        mean, variance = self.mean.numpy(), self.variance.numpy()
        # attributes are float32: columns of little variance show what is cut off
        momentum, epsilon = (float(np.float32(self.attrs[name])) for name in ("momentum", "epsilon"))
        if self.training and len(x) == 1:
            return x.copy()  # as Paddle: one number has no variance
        if self.training:
            old, mean, variance = (mean, variance), x.mean(axis=0), x.var(axis=0)
            self.mean.set_value(momentum * old[0] + (1 - momentum) * mean)
            self.variance.set_value(momentum * old[1] + (1 - momentum) * variance)
        rows = (x - mean) / np.sqrt(variance + epsilon)
        return np.asarray(rows * self.weight.numpy() + self.bias.numpy())

    @staticmethod
    def program(x: Any, rows: Any) -> Any:
        return layers.batch_norm(x)


class Product(Module):
    """A matrix product and nothing else, whose result has the dtype that autocast computes in."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = self.create_parameter([WIDTH, WIDTH])

    def forward(self, x: Any) -> Any:
        return x @ self.weight

    def formula(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(x @ self.weight.numpy())


class Counted(Module):
    """x and how often it was called, which is counted in a buffer, in place."""

    writes = True

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", np.zeros(1))

    def forward(self, x: Any) -> Any:
        with oprack.no_grad():
            self.count.add_(oprack.to_tensor(np.ones(1, self.count.dtype)))
        return x + self.count

    def formula(self, x: np.ndarray) -> np.ndarray:
        self.count.set_value(self.count.numpy() + 1)
        return np.asarray(x + self.count.numpy())


class Scaled(Module):
    """x times a plain attribute: True subtracts 1, a negative zero negates, None fails."""

    def __init__(self) -> None:
        super().__init__()
        self.setting = 1.0

    def forward(self, x: Any) -> Any:
        return scaled(x, self.setting)

    formula = forward


class Viewed(Module):
    """x through ops whose results may lie in the memory of what they get."""

    def forward(self, x: Any) -> Any:
        return x.reshape([-1, WIDTH])

    def formula(self, x: np.ndarray) -> np.ndarray:
        return x.copy()

    @staticmethod
    def program(x: Any, rows: Any) -> Any:
        return layers.reshape(x, [-1, WIDTH])


class Sliced(Viewed):
    """All rows of x, as a slice."""

    def forward(self, x: Any) -> Any:
        return x[0:]


class Reshaped(Viewed):
    """x as a vector, and back."""

    def forward(self, x: Any) -> Any:
        return x.reshape([-1]).reshape([-1, WIDTH])


class Turned(Viewed):
    """x transposed, and back."""

    def forward(self, x: Any) -> Any:
        return x.transpose([1, 0]).transpose([1, 0])


class Squeezed(Viewed):
    """x with one dim more, and without it again."""

    def forward(self, x: Any) -> Any:
        return x.unsqueeze(0).squeeze(0)


class Picked(Viewed):
    """x by the numbers of its rows, which in a program are fed: it fails when it is given one that there is not."""

    fails = counts_rows = True

    def forward(self, x: Any) -> Any:
        return F.gather(x, oprack.arange(x.shape[0]))

    @staticmethod
    def program(x: Any, rows: Any) -> Any:
        return layers.gather(x, rows)


class Listed(Viewed):
    """x by an op that takes a list, and gets a tensor alone: a list of one, at each call."""

    eager_only = True

    def __init__(self) -> None:
        super().__init__()
        for x in (oprack.ones([1, WIDTH]), oprack.ones([2, WIDTH])):
            self.forward(x)  # so that the call of interest is never a process' first

    def forward(self, x: Any) -> Any:
        return F.sum([x, x]) - F.sum(x)


class _OfRows(Module):
    """x beside something computed with its number of rows as a number of Python."""

    counts_rows = True
    of: Callable[[int], Any] = staticmethod(lambda n: n)

    def forward(self, x: Any) -> Any:
        return x * type(self).of(x.shape[0])

    formula = forward


class Rows(_OfRows):
    """x times the number of rows."""


class RowsLessOne(_OfRows):
    """x times one less than the number of rows."""

    of = staticmethod(lambda n: n - 1)


class Halved(_OfRows):
    """x times half the number of rows."""

    of = staticmethod(lambda n: n // 2)


class Manifold(_OfRows):
    """x times the largest number in a range."""

    of = staticmethod(lambda n: max(range(2 * n), default=0))


class Centred(_OfRows):
    """x without its mean, by hand."""

    def forward(self, x: Any) -> Any:
        return x - x.sum(0) / x.shape[0]

    formula = forward


class Branched(_OfRows):
    """2 x if there are more than two rows, else a new x."""

    def forward(self, x: Any) -> Any:
        return x * (2.0 if x.shape[0] > 2 else 1.0)

    formula = forward


class Leading(_OfRows):
    """x less the sum of all rows but the last."""

    def forward(self, x: Any) -> Any:
        return x - x[: x.shape[0] - 1].sum(0)

    formula = forward


class Expanded(_OfRows):
    """x and its first row, as often as there are rows."""

    def forward(self, x: Any) -> Any:
        return x + oprack.expand(x[0:1], [x.shape[0], WIDTH])

    def formula(self, x: np.ndarray) -> np.ndarray:
        return x + x[0:1]


class Flattened(_OfRows):
    """x as one row, and back."""

    def forward(self, x: Any) -> Any:
        return x.reshape([x.shape[0] * WIDTH]).reshape([x.shape[0], WIDTH])

    def formula(self, x: np.ndarray) -> np.ndarray:
        return x.copy()
