"""Tables of which only some rows are there: their rows are looked for on the host."""

from __future__ import annotations

from oprack_nn.kernels.embedding import lookup_table_selected_rows, lookup_table_v2_selected_rows
from oprack_optimizer.kernels.descent import sgd_rows_of_rows

from oprack_cuda.host_kernel import kernels_on_host

_ROWS = lookup_table_selected_rows, lookup_table_v2_selected_rows, sgd_rows_of_rows
globals().update(kernels_on_host(__name__, *_ROWS))
