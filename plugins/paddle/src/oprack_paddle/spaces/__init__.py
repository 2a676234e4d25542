"""Modules of Paddle that are no functions of tensors: sound, devices, text, vision, distributions, programs ..."""
