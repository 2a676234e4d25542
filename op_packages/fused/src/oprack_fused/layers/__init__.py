"""Layers of this pack: functions that append its ops to a program; ops.toml names them."""
