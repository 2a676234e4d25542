"""Metrics that count over batches on the host, found as `oprack.metrics.Accuracy` and so on."""
