"""Ops of object detection for oprack."""
