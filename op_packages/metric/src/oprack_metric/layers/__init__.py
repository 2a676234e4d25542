"""Layers of this pack: functions that append its ops to a program; pack.py names them."""
