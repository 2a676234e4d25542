"""Ops on SelectedRows for oprack."""
